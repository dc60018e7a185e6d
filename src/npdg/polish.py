"""The last stage of a run: a linear solve for a correction of u in its own tangent space.

Training moves the parameters as far as the network stays near its linearisation, which for the ill-conditioned
directions is a tiny part of the way. But the tangent space it has learnt holds a function that is better by one to
six orders of magnitude, and in function space the way there is a linear least-squares problem:

    u + ∂_θu·c,   c minimises |r(u) + r'(u) ∂_θu·c|² + λ |u − g + ∂_θu·c|²_{H¹(∂Ω)}.

The same saddle and the same loop solve it, in float64, on as many batches as time allows, which are pooled. The
certificate asks the same question of a larger space.
"""

from collections.abc import Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp

from npdg.fields import Field, Linearised, parameter_count
from npdg.formulations.least_squares import least_squares
from npdg.loop import Recipe
from npdg.measures import Mixture, Sought
from npdg.pde import PDE, Dirichlet
from npdg.pools import pooled
from npdg.saddle import Saddle

LARGEST = 7000  # parameters, beyond which a dense solve takes minutes and gigabytes
MEMORY = 400 * 2**20  # bytes of one batch's Jacobian
SHARE, MOST = 0.2, 40.0  # of the run's seconds, and at most so many, unless they would be too few rows
SPEED = 3e10  # rows times parameters squared a second, on two cores
SOUGHT = 0.2  # of the points, where u is worst
FEWEST, ENOUGH = 2, 8  # rows a parameter: with fewer it is not begun; what a large network gets, in half of the seconds


def seconds_of(seconds: float, u: Field) -> float:
    """How much of a run's seconds the last stage gets: a share, or what the rows take; none if that is over half."""
    size = parameter_count(u)
    one = size**3 / SPEED  # for a row a parameter
    if size > LARGEST or FEWEST * one > seconds / 2:
        return 0.0
    return min(max(min(SHARE * seconds, MOST), ENOUGH * one), seconds / 2)


def as_float64(u: Field) -> Field:
    """The same field in double precision."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), u)


def correction(pde: PDE, base: Field, nets: Sequence[Field], *, per_parameter: int = 8) -> Recipe:
    """A run for the correction of `base` in the tangent spaces of the nets, with so many points a parameter."""
    columns = sum(parameter_count(net) for net in nets)
    # One boundary point, which brings two rows (a given flux one), for two interior ones; as many as the memory holds,
    # but more rows than parameters.
    fewest = (0.6 if isinstance(pde.boundary, Dirichlet) else 0.8) * columns
    interior = int(max(min(max(per_parameter * columns, 2000), MEMORY / (16 * columns)), fewest))
    return Recipe(
        saddle=_sought(least_squares(pde, boundary_norm="h1-sampled"), base),
        start=lambda key: {"u": Linearised.at(base, nets)},
        rules={"u": pooled(columns)},
        sizes={"interior": interior, "boundary": interior // 2},
    )


def _sought(saddle: Saddle, base: Field) -> Saddle:
    """The same, with some of the points sought where the base field's own features are large.

    In ten dimensions a network that is well trained has its largest errors near a few corners that uniform points
    hardly ever see, and that a linear correction may make worse.
    """
    (player,) = saddle.players
    measures = dict(saddle.measures)
    for part in player.metric:
        density = lambda point, part=part: jnp.linalg.norm(part.feature({"u": base}, point))
        uniform = measures[part.over]
        measures[part.over] = Mixture((uniform, Sought(uniform, density)), (1 - SOUGHT, SOUGHT))
    return replace(saddle, measures=measures)

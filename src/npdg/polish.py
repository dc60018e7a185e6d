"""The last stage of a run: a linear solve for a correction of u in its own tangent space.

Training moves the parameters as far as the network stays near its linearisation, which for the ill-conditioned
directions is a tiny part of the way. But the tangent space it has learnt holds a function that is better by one to
two orders of magnitude, and in function space the way there is a linear least-squares problem:

    u + ∂_θu·c,   c minimises |r(u) + r'(u) ∂_θu·c|² + λ |u − g + ∂_θu·c|²_{H¹(∂Ω)}.

The same saddle and the same loop solve it, in float64, on as many batches as time allows; the mean of the batches'
solutions is taken. The certificate asks the same question of a larger space.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from npdg.fields import Field, Linearised, parameter_count
from npdg.formulations.least_squares import least_squares
from npdg.loop import Recipe
from npdg.pde import PDE
from npdg.rules import averaged, by_factors

LARGEST = 3000  # parameters, beyond which a dense solve is no longer a matter of seconds
MEMORY = 400 * 2**20  # bytes of one batch's Jacobian
SHARE, MOST = 0.15, 20.0  # of the run's seconds, and at most so many
SPEED = 3e10  # rows times parameters squared a second, on two cores


def affordable(u: Field) -> bool:
    """Whether a dense correction in the tangent space of this field takes seconds."""
    return parameter_count(u) <= LARGEST


def seconds_of(seconds: float, u: Field, dim: int) -> float:
    """How much of a run's seconds the last stage gets: a share, but at least one batch; none if that is over half."""
    size, (interior, boundary) = parameter_count(u), _points(dim, parameter_count(u), 8)
    batch = (interior + (dim + 1) * boundary) * size**2 / SPEED
    return max(min(SHARE * seconds, MOST), batch) if affordable(u) and batch <= seconds / 2 else 0.0


def as_float64(u: Field) -> Field:
    """The same field in double precision."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), u)


def correction(pde: PDE, base: Field, nets: Sequence[Field], *, per_parameter: int = 8) -> Recipe:
    """A run for the correction of `base` in the tangent spaces of the nets, with so many points a parameter."""
    interior, boundary = _points(pde.dim, sum(parameter_count(net) for net in nets), per_parameter)
    return Recipe(
        saddle=least_squares(pde, boundary_norm="h1"),
        start=lambda key: {"u": Linearised.at(base, nets)},
        rules={"u": averaged(by_factors())},
        sizes={"interior": interior, "boundary": boundary},
    )


def _points(dim: int, columns: int, per_parameter: int) -> tuple[int, int]:
    """Points of a batch in the interior and on the boundary."""
    # One boundary point for eight interior ones; it brings d + 1 rows.
    most = MEMORY // (8 * columns) / (1 + (dim + 1) / 8)
    interior = int(min(max(per_parameter * columns, 2000), most))
    return interior, max(interior // 8, 200)

"""Linear least squares for a correction of u in tangent spaces that training has found.

    u + ∂_θu·c,   c minimises |r(u) + r'(u) ∂_θu·c|² + λ |u − g + ∂_θu·c|²_{H¹(∂Ω)}.

Training moves the parameters as far as the network stays near its linearisation, which for the ill-conditioned
directions is a tiny part of the way. But the tangent space it has learnt holds a function that is better by one to
six orders of magnitude, and in function space the way there is a linear least-squares problem. What that space does not
hold is of second order in c, and a second tangent space, at parameters a little further along c, has it.

The last stage of a run solves it on as many batches as time allows; the error estimate asks the same question of a
larger space.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve_triangular

from npdg.fields.base import Field, Frozen, parameter_count, split
from npdg.fields.tangent import Linearised
from npdg.formulations.least_squares import least_squares
from npdg.measures.adaptive import ImportanceSampled
from npdg.measures.points import Points
from npdg.problem.pde import PDE
from npdg.rules.pooled import pooled
from npdg.saddle.saddle import Saddle
from npdg.training.step import Recipe

LARGEST_DENSE = 7000  # Parameters beyond which a dense solve takes minutes and gigabytes.
BATCH_BYTES = 400 * 2**20  # Memory for the Jacobian of one batch.
BATCH_POINTS = 8  # Interior points of a batch per coefficient.
WORST_POINTS = 0.2, 20  # The part of the points that is sought where u is worst, and among how many each of these is.
RARE_POINTS = 0.1, 100  # The same in two tangent spaces, where what is left is near rarer points.
UNDETERMINED_POINTS = 0.4  # The part of the points that is sought where one batch leaves u most undetermined.
POSTERIOR_DRAWS = 2  # Draws of the coefficients that tell where that is.
LONGEST_MOVE = 1.0  # How far along its correction a network is moved to give a second tangent space.


def as_float64(u: Field) -> Field:
    """The same field in double precision."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), u)


def next_space(corrected: Linearised) -> Field:
    """The network whose tangent space has what those of the correction have not: moved along it, then half as far."""
    net, *others = (net.field for net in corrected.nets)
    vector, build = split(net)
    if others:
        return build((vector + split(others[-1])[0]) / 2)
    c = corrected.coefficients[0]
    return build(vector + LONGEST_MOVE * c / jnp.maximum(jnp.linalg.norm(c), LONGEST_MOVE))


def doubled(corrected: Linearised) -> Linearised:
    """The same field, with room for a correction in a second tangent space."""
    nets = (*corrected.nets, Frozen(next_space(corrected)))
    return Linearised(corrected.base, nets, (*corrected.coefficients, jnp.zeros_like(corrected.coefficients[0])))


def correction(
    pde: PDE,
    start: Linearised,
    *,
    per_coefficient: float = BATCH_POINTS,
    worst: tuple[float, int] = WORST_POINTS,
    draws: Array | None = None,
) -> Recipe:
    """A run for the coefficients of `start`, with so many interior points for each, of which some are where `draws`
    change u most."""
    columns = parameter_count(start)
    # One boundary point for two interior ones; as many as the memory holds, but more rows than coefficients.
    fewest = (0.6 if pde.boundary.rows > 1 else 0.8) * columns
    interior = int(max(min(max(per_coefficient * columns, 2000), BATCH_BYTES / (16 * columns)), fewest))
    uniform = least_squares(pde, boundary_norm="h1-sampled")
    return Recipe(
        # What is trained with every equation anew is data of the program, not a part of it.
        lower=lambda data: _importance_sampled(uniform, data["start"], worst, data.get("draws")),
        start=lambda key: {"u": start},
        rules={"u": pooled(columns)},
        sizes={"interior": interior, "boundary": interior // 2},
        data={"start": start} if draws is None else {"start": start, "draws": draws},
    )


def posterior_draws(factor: Array, key: Array) -> Array:
    """Coefficients drawn as the rows of a triangular factor leave them undetermined."""
    return solve_triangular(factor, jax.random.normal(key, (len(factor), POSTERIOR_DRAWS), factor.dtype)).T


def _importance_sampled(saddle: Saddle, start: Linearised, worst: tuple[float, int], draws: Array | None) -> Saddle:
    """The same, with some of the points sought where the residual is large, and some where a few draws of the first
    coefficients would change it most.

    In ten dimensions a network that is well trained has its largest errors near a few corners that uniform points
    hardly ever see, and that a linear correction may make worse.
    """
    (player,) = saddle.players
    measures = dict(saddle.measures)
    for part in player.metric:
        at = lambda u, point, part=part: part.feature({"u": u}, point)

        def densities(point: Points, at=at) -> Array:
            if draws is None:
                return jnp.linalg.norm(at(start, point))[None]
            moved = lambda c: at(eqx.tree_at(lambda s: s.coefficients[0], start, c), point)
            value, along = jax.linearize(moved, start.coefficients[0])
            return jnp.stack([jnp.linalg.norm(value), jnp.linalg.norm(jax.vmap(along)(draws))])

        share, tries = worst
        shares = (share,) if draws is None else (share, UNDETERMINED_POINTS)
        measures[part.over] = ImportanceSampled(measures[part.over], densities, shares, round(share * tries))
    return replace(saddle, measures=measures)

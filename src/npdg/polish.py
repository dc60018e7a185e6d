"""The last stage of a run: a linear solve for a correction of u in a tangent space that training has found.

Training moves the parameters as far as the network stays near its linearisation, which for the ill-conditioned
directions is a tiny part of the way. But the tangent space it has learnt holds a function that is better by one to
six orders of magnitude, and in function space the way there is a linear least-squares problem:

    u + ∂_θu·c,   c minimises |r(u) + r'(u) ∂_θu·c|² + λ |u − g + ∂_θu·c|²_{H¹(∂Ω)}.

What that space does not hold is of second order in c, and a second tangent space, at parameters a little further
along c, has it. So where there is time one batch tells c, and where it leaves u most undetermined; then both spaces
are solved in.

The same saddle and the same loop solve it, in float64, on as many batches as time allows, which are pooled. The
certificate asks the same question of a larger space.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve_triangular

from npdg.fields import Field, Frozen, Linearised, parameter_count, split
from npdg.formulations.least_squares import least_squares
from npdg.loop import Recipe
from npdg.measures import Mixture, Points, Sought
from npdg.pde import PDE, Dirichlet
from npdg.pools import TRIANGULAR, pooled
from npdg.saddle import Saddle

LARGEST = 7000  # parameters, beyond which a dense solve takes minutes and gigabytes
MEMORY = 400 * 2**20  # bytes of one batch's Jacobian
SHARE, MOST = 0.2, 40.0  # of the run's seconds, and at most so many, unless they would be too few rows
SPEED = 3e10  # rows times parameters squared a second, on two cores; of a triangular factor half as many
SOUGHT = 0.2, 20  # of the points, those where u is worst, and among how many each is sought
RARE = 0.1, 100  # the same in two tangent spaces, where what is left is near rarer points
DOUBTED = 0.4  # of the points: where one batch leaves u most undetermined
DOUBTS = 2  # draws that tell where that is
FEWEST = 2  # rows a parameter, with fewer of which it is not begun
ENOUGH = 8  # what a large network gets, in half of the seconds, and what a second tangent space must have in the share
POINTS = 8  # inside, a parameter, of a batch
ROWS_A_POINT = 2  # one of its own, and of half a boundary point two
POINTS_FIRST, POINTS_TWICE = 2, 1.5  # of the one that tells the second tangent space, and of those in both
MOVE = 1.0  # how far along its correction a network is moved to give a second tangent space


def twice(seconds: float, u: Field) -> bool:
    """Whether a run of so many seconds has the time for a second tangent space: with few rows it fits the samples."""
    columns = 2 * parameter_count(u)
    return columns <= TRIANGULAR and ENOUGH * _row_each(columns) <= _share(seconds)


def seconds_of(seconds: float, u: Field) -> float:
    """How much of a run's seconds the last stage gets: a share, or what the rows take; none if that is over half."""
    size = parameter_count(u)
    one = _row_each(size)
    if size > LARGEST or FEWEST * one > seconds / 2:
        return 0.0
    return min(max(_share(seconds), ENOUGH * one), seconds / 2)


def points(seconds: float, u: Field) -> float:
    """Interior points a parameter of one batch: at most what so many seconds are enough for, but what is begun is begun
    with its fewest rows."""
    rows = max(seconds / _row_each(parameter_count(u)), FEWEST)
    return min(POINTS, rows / ROWS_A_POINT)


def _share(seconds: float) -> float:
    return min(SHARE * seconds, MOST)


def _row_each(columns: int) -> float:
    """Seconds for a row a column."""
    return columns**3 / (SPEED / 2 if columns <= TRIANGULAR else SPEED)


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
    return build(vector + MOVE * c / jnp.maximum(jnp.linalg.norm(c), MOVE))


def doubled(corrected: Linearised) -> Linearised:
    """The same field, with room for a correction in a second tangent space."""
    nets = (*corrected.nets, Frozen(next_space(corrected)))
    return Linearised(corrected.base, nets, (*corrected.coefficients, jnp.zeros_like(corrected.coefficients[0])))


def correction(
    pde: PDE,
    start: Linearised,
    *,
    per_parameter: float = POINTS,
    sought: tuple[float, int] = SOUGHT,
    doubts: Array | None = None,
) -> Recipe:
    """A run for the coefficients of `start`, with so many points inside a coefficient; more where `doubts` matter."""
    columns = parameter_count(start)
    # One boundary point, which brings two rows (a given flux one), for two interior ones; as many as the memory holds,
    # but more rows than parameters.
    fewest = (0.6 if isinstance(pde.boundary, Dirichlet) else 0.8) * columns
    interior = int(max(min(max(per_parameter * columns, 2000), MEMORY / (16 * columns)), fewest))
    return Recipe(
        saddle=_sought(least_squares(pde, boundary_norm="h1-sampled"), start, sought, doubts),
        start=lambda key: {"u": start},
        rules={"u": pooled(columns)},
        sizes={"interior": interior, "boundary": interior // 2},
    )


def doubts(factor: Array, key: Array) -> Array:
    """Coefficients drawn as the rows of a triangular factor leave them undetermined."""
    return solve_triangular(factor, jax.random.normal(key, (len(factor), DOUBTS), factor.dtype)).T


def _sought(saddle: Saddle, start: Linearised, sought: tuple[float, int], doubts: Array | None) -> Saddle:
    """The same, with some of the points sought where the residual is large, and some where a few doubts about the first
    coefficients would change it most.

    In ten dimensions a network that is well trained has its largest errors near a few corners that uniform points
    hardly ever see, and that a linear correction may make worse.
    """
    (player,) = saddle.players
    measures = dict(saddle.measures)
    for part in player.metric:
        at = lambda u, point, part=part: part.feature({"u": u}, point)

        def change(point: Points, at=at) -> Array:
            moved = lambda c: at(eqx.tree_at(lambda s: s.coefficients[0], start, c), point)
            along = lambda doubt: jax.jvp(moved, (start.coefficients[0],), (doubt,))[1]
            return jnp.linalg.norm(jax.vmap(along)(doubts))

        uniform = measures[part.over]
        share, tries = sought
        large = Sought(uniform, lambda point, at=at: jnp.linalg.norm(at(start, point)), tries)
        parts, shares = (uniform, large), (1 - share, share)
        if doubts is not None:
            parts, shares = (*parts, Sought(uniform, change)), (1 - share - DOUBTED, share, DOUBTED)
        measures[part.over] = Mixture(parts, shares)
    return replace(saddle, measures=measures)

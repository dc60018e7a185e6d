"""Whether the source of an equation separates: is it nearly a sum of a few products of functions of one coordinate?"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from npdg.calculus import Scalar
from npdg.compilation import jit
from npdg.fields.products import along_fibres, chebyshev
from npdg.fields.wrappers import Centred
from npdg.measures.adaptive import ImportanceSampled
from npdg.problem.pde import PDE

DEGREES = (6, 10, 16, 24, 32)  # Those that factors may have.
TAIL = 1e-9  # Part of a factor that is of higher degree, below which a degree is enough.
PROBES = 12  # Products by which the source is approximated, to see whether it separates.
POINTS = 2000  # Points at which that is compared with the source.
SEPARATES = 0.15  # Part of the source's deviation from its mean that may be left then.
SUM = 1e-3  # The same that a sum of functions of one coordinate each leaves, below which it is taken for one.


def products(pde: PDE, rank: int, degree: int, key: Array) -> Centred:
    """A sum of products whose factors are those of the source along lines through points where it is large."""
    places, signs = jax.random.split(key)
    return Centred(pde.domain, along_fibres(_source(pde), _places(pde, places, rank), degree, key=signs))


def separating_degree(pde: PDE) -> int | None:
    """The degree that the factors of the source need, or none if it is not nearly a sum of a few products, or nearer to
    a sum of functions of one coordinate each."""
    with jax.enable_x64(True):
        found = jit(lambda key: _probed(pde, key))(jax.random.key(11))
        left, beside, tails = (np.asarray(part) for part in found)
    # Also if it is not finite. A plain sum of functions of one coordinate each is not what products are for.
    if not left <= min(SEPARATES, float(beside)) or beside <= SUM:
        return None
    return next((degree for degree, tail in zip(DEGREES, tails, strict=True) if tail <= TAIL), DEGREES[-1])


def _probed(pde: PDE, key: Array) -> tuple[Array, Array, Array]:
    """What a few products leave of the source, and what a sum of functions of one coordinate leaves, relative to its
    deviation from its mean; and what factors have beyond each degree."""
    places, test, signs = jax.random.split(key, 3)
    source, most = _source(pde), DEGREES[-1] + 8
    found = along_fibres(source, _places(pde, places, PROBES), most, key=signs)
    x = _centred(pde)(pde.interior.sample(test, POINTS).x)
    terms = jax.vmap(lambda c: jax.vmap(_one(c))(x))(found.coefficients).T
    values = jax.vmap(source)(x)
    sums = jax.vmap(lambda y: jnp.ravel(chebyshev(y, DEGREES[0])[:, 1:]))(x)  # of functions of one coordinate each
    left, beside = (_left(columns, values) for columns in (terms, sums))
    squares = found.coefficients**2
    beyond = lambda degree: jnp.max(jnp.sum(squares[:, :, degree + 1 :], axis=2) / jnp.sum(squares, axis=2))
    return left, beside, jnp.sqrt(jnp.stack([beyond(degree) for degree in DEGREES]))


def _left(columns: Array, values: Array) -> Array:
    """What linear least squares leave of the values; infinite or undefined if these are constant."""
    columns = jnp.column_stack([jnp.ones_like(values), columns])
    left = jnp.linalg.norm(values - columns @ jnp.linalg.lstsq(columns, values)[0])
    return left / jnp.linalg.norm(values - jnp.mean(values))


def _one(coefficients: Array) -> Callable[[Array], Array]:
    return lambda x: jnp.prod(jnp.sum(coefficients * chebyshev(x, coefficients.shape[1] - 1), axis=1))


def _places(pde: PDE, key: Array, count: int) -> Array:
    """Points where the source is large, in the coordinates of [−1, 1]^d."""
    large = ImportanceSampled(pde.interior, lambda point: pde.source(point.x) ** 2, tries=100)
    return _centred(pde)(large.sample(key, count).x)


def _centred(pde: PDE) -> Callable[[Array], Array]:
    lower, upper = (jnp.asarray(corner) for corner in pde.domain.bounds())
    return jax.vmap(lambda x: (2 * x - lower - upper) / (upper - lower))


def _source(pde: PDE) -> Scalar:
    """The source as a function on [−1, 1]^d."""
    lower, upper = (jnp.asarray(corner) for corner in pde.domain.bounds())
    return lambda y: pde.source(lower + (y + 1) / 2 * (upper - lower))

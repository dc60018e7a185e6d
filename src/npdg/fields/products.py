"""Sums of products of functions of one coordinate each: what separates, in any dimension, at a cost that grows with it.

Waves, Gaussians and exponentials of many coordinates are sums of a few such products, and so, nearly, is what is made
of them; a network of ridges needs exponentially many units for a product of waves.
"""

from functools import cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from npdg.calculus import Scalar


class Products(eqx.Module):
    """Σ_r Π_k Σ_j c_rkj T_j(x_k) with Chebyshev's polynomials T_j, on [−1, 1]^d.

    Arguments:
        dim: how many coordinates there are.
        rank: how many products.
        degree: the largest degree of the polynomials.
    """

    coefficients: Array

    def __init__(self, dim: int, rank: int, degree: int, *, key: Array):
        sign_key, key = jax.random.split(key)
        # Factors that vary by as much as lets the product of all of them be neither huge nor tiny.
        fade = jnp.asarray(1.0 / np.arange(1, degree + 1))
        spread = min(1.0, dim**-0.5)
        waves = spread * fade[None, None] * jax.random.normal(key, (rank, dim, degree))
        signs = jax.random.rademacher(sign_key, (rank,), waves.dtype) / rank
        constant = jnp.ones((rank, dim, 1)).at[:, 0, 0].set(signs)
        scaled = waves.at[:, 0].multiply(signs[:, None])
        self.coefficients = jnp.concatenate([constant, scaled], axis=2)

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, ""]:
        factors = jnp.einsum("rkj,kj->rk", self.coefficients, chebyshev(x, self.coefficients.shape[2] - 1))
        return jnp.sum(multiplied(factors))


def multiplied(factors: Float[Array, "rank d"]) -> Float[Array, " rank"]:
    """The product along the last axis by halves, whose derivatives are less to compile than those of `jnp.prod`."""
    while (count := factors.shape[1]) > 1:
        half = count // 2
        factors = jnp.concatenate([factors[:, :half] * factors[:, half : 2 * half], factors[:, 2 * half :]], axis=1)
    return factors[:, 0]


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def chebyshev(x: Float[Array, " d"], degree: int) -> Float[Array, "d degrees"]:
    """Chebyshev's polynomials up to a degree at each coordinate of [−1, 1]: 1, then √2 cos(n arccos x)."""
    angles = jnp.arccos(jnp.clip(x, -1.0, 1.0))
    return jnp.cos(angles[:, None] * jnp.arange(degree + 1)[None]) * jnp.asarray(_sizes(degree), x.dtype)[None]


@chebyshev.defjvp
def _chebyshev_jvp(degree: int, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """Their derivatives are sums of themselves."""
    (x,), (direction,) = primals, tangents
    values = chebyshev(x, degree)
    return values, direction[:, None] * (values @ jnp.asarray(_derivatives(degree), x.dtype).T)


def _sizes(degree: int) -> np.ndarray:
    return np.where(np.arange(degree + 1) == 0, 1.0, 2**0.5)


@cache
def _derivatives(degree: int) -> np.ndarray:
    """The matrix that takes the polynomials to their derivatives: T_n' = 2n Σ T_k over k = n − 1, n − 3, …, of which
    T_0 counts half."""
    n, k = np.arange(degree + 1)[:, None], np.arange(degree + 1)[None]
    plain = np.where((k < n) & ((n - k) % 2 == 1), 2.0 * n, 0.0) / np.where(k == 0, 2, 1)
    return plain * _sizes(degree)[:, None] / _sizes(degree)[None]


def along_fibres(function: Scalar, points: Float[Array, "rank d"], degree: int, *, key: Array) -> Products:
    """Products whose factors are those of a function along the lines through each point that are parallel to an axis.

    A function that is one product is told exactly by its values on the lines through one point, and a sum of a few by
    those through a few. The products start small, with random signs.
    """
    rank, dim = points.shape
    angles = np.pi * (np.arange(degree + 4) + 0.5) / (degree + 4)  # the quadrature of Gauss and Chebyshev
    nodes, project = np.cos(angles), np.cos(np.outer(angles, np.arange(degree + 1))) * _sizes(degree) / len(angles)

    def factors(point: Array) -> Array:
        height = function(point)
        along = lambda k: jax.vmap(lambda t: function(point.at[k].set(t)))(jnp.asarray(nodes, points.dtype))
        found = jax.vmap(along)(jnp.arange(dim)) @ jnp.asarray(project, points.dtype)
        return found / jnp.where(height == 0, 1.0, height)

    coefficients = jax.vmap(factors)(points)
    signs = jax.random.rademacher(key, (rank,), coefficients.dtype) / rank
    products = Products(dim, 1, degree, key=key)
    return eqx.tree_at(lambda p: p.coefficients, products, coefficients.at[:, 0].multiply(signs[:, None]))

"""Sample points, and what a measure is: something that can be sampled."""

from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


class Points(eqx.Module):
    """Sample points `x (n, d)`; on a boundary also unit outward normals and random tangent vectors.

    A tangent t has E[t tᵀ] = I − n nᵀ, so that E[(t·∇u)²] is the squared tangential gradient: one number a point
    where the gradient itself has d. After `vmap`, one point.
    """

    x: Array
    normal: Array | None = None
    tangent: Array | None = None


def boundary_points(key: Array, x: Array, normal: Array) -> Points:
    """Points of a boundary, with a random tangent each."""

    gauss, dim = jax.random.normal(key, x.shape), x.shape[1]
    along = gauss - jnp.sum(gauss * normal, axis=1, keepdims=True) * normal
    length = jnp.linalg.norm(along, axis=1, keepdims=True)
    # In one dimension there is no tangent: the vector is zero.
    return Points(x, normal, along * ((dim - 1) ** 0.5 / jnp.where(length > 0, length, 1)))


@runtime_checkable
class Measure(Protocol):
    """A probability measure: `sample(key, n)` gives n independent points."""

    def sample(self, key: Array, n: int) -> Points: ...


@runtime_checkable
class Distribution(Protocol):
    """A probability measure on R^dim with its first two moments; `log_density` is None where it is not known."""

    dim: int
    mean: np.ndarray
    covariance: np.ndarray

    def sample(self, key: Array, n: int) -> Points: ...

    def log_density(self, x: Array) -> Array | None: ...

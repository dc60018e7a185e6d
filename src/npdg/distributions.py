"""Measures on the whole space, for transport: Gaussians, their mixtures, and arrays of samples.

Samples are Sobol's points, shifted at random: means over them are far less noisy than over independent ones, which is
what limits the dual side of transport.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp, ndtri

from npdg.errors import InputError
from npdg.measures import Measure, Points


class Distribution(Protocol):
    """A probability measure on R^dim with its first two moments; `log_density` is None where it is not known."""

    dim: int
    mean: np.ndarray
    covariance: np.ndarray

    def sample(self, key: Array, n: int) -> Points: ...

    def log_density(self, x: Array) -> Array | None: ...


BITS = 32


def spread(key: Array, n: int, dim: int) -> Array:
    """n points of the unit cube: Sobol's, with a random digital shift.

    The shift flips bits of each coordinate, which leaves a digital net one; added modulo 1 it would not, and means over
    8192 points in 5-D are then three times as noisy.
    """
    from scipy.stats import qmc  # slow to import

    base = qmc.Sobol(dim, scramble=False, bits=BITS).random_base2(int(np.ceil(np.log2(n))))[:n]
    flips = jax.random.bits(key, (dim,), jnp.uint32)
    flipped = jax.vmap(lambda row: row ^ flips)(jnp.asarray((base * 2.0**BITS).astype(np.uint32)))
    unit = flipped.astype(float) * 2.0**-BITS
    tiny = jnp.finfo(unit.dtype).eps / 2
    return jnp.clip(unit + tiny, tiny, 1 - tiny)


class Gaussian:
    """The normal distribution of a mean and a covariance matrix."""

    def __init__(self, mean: Any, covariance: Any):
        self.mean = np.atleast_1d(np.asarray(mean, dtype=float))
        self.dim = self.mean.size
        self.covariance = np.asarray(covariance, dtype=float).reshape(self.dim, self.dim)
        if not np.allclose(self.covariance, self.covariance.T) or np.linalg.eigvalsh(self.covariance)[0] <= 0:
            raise InputError("covariance: the matrix is not symmetric and positive definite; give one that is.")
        self.root = np.linalg.cholesky(self.covariance)

    def sample(self, key: Array, n: int) -> Points:
        root, mean = jnp.asarray(self.root), jnp.asarray(self.mean)
        return Points(jax.vmap(lambda z: mean + root @ z)(ndtri(spread(key, n, self.dim))))

    def log_density(self, x: Array) -> Array:
        white = jax.scipy.linalg.solve_triangular(jnp.asarray(self.root), x - jnp.asarray(self.mean), lower=True)
        logdet = float(np.sum(np.log(np.diag(self.root))))
        return -jnp.vdot(white, white) / 2 - logdet - self.dim / 2 * float(np.log(2 * np.pi))


class GaussianMixture:
    """Σ weight_k N(mean_k, variance·I)."""

    def __init__(self, weights: Sequence[float], means: Any, variance: float):
        self.weights, self.means, self.variance = np.asarray(weights, float), np.asarray(means, float), float(variance)
        if self.means.ndim != 2 or len(self.means) != len(self.weights):
            raise InputError(f"means: shape {self.means.shape} is not allowed; give one row for each weight.")
        if np.any(self.weights <= 0) or abs(self.weights.sum() - 1) > 1e-9 or self.variance <= 0:
            raise InputError("weights: give positive numbers of sum 1, and a positive variance.")
        self.dim = self.means.shape[1]
        self.mean = self.weights @ self.means
        offsets = self.means - self.mean
        self.covariance = self.variance * np.eye(self.dim) + (offsets.T * self.weights) @ offsets

    def sample(self, key: Array, n: int) -> Points:
        unit = spread(key, n, self.dim + 1)  # the last coordinate chooses the component
        edges, means = jnp.asarray(np.cumsum(self.weights)), jnp.asarray(self.means)
        component = jnp.minimum(jnp.searchsorted(edges, unit[:, -1]), len(self.weights) - 1)
        return Points(means[component] + self.variance**0.5 * ndtri(unit[:, :-1]))

    def log_density(self, x: Array) -> Array:
        squares = jax.vmap(lambda mean: jnp.vdot(x - mean, x - mean))(jnp.asarray(self.means))
        constant = self.dim / 2 * float(np.log(2 * np.pi * self.variance))
        return logsumexp(jnp.asarray(np.log(self.weights)) - squares / (2 * self.variance)) - constant


class Samples:
    """The empirical measure of an array `(n, d)`; a batch is drawn without replacement, or is all of it."""

    def __init__(self, array: Any, name: str = "samples"):
        points = np.asarray(array)
        if points.dtype == object or not np.issubdtype(points.dtype, np.number) or np.iscomplexobj(points):
            raise InputError(f"{name}: an array of {points.dtype} is not allowed; give real numbers.")
        if points.ndim != 2 or points.shape[1] < 1:
            raise InputError(f"{name}: shape {points.shape} is not allowed; give an array of shape (n, d).")
        if len(points) < 2:
            raise InputError(f"{name}: {len(points)} point is not allowed; give at least 2.")
        if not np.all(np.isfinite(points)):
            raise InputError(f"{name}: it holds NaN or infinite numbers; give finite ones.")
        # An array may be sorted; some of its first points must be like the others.
        self.given = points.astype(float)
        self.points = np.random.default_rng(0).permutation(self.given)
        self.dim = points.shape[1]
        self.mean = self.points.mean(axis=0)
        self.covariance = np.atleast_2d(np.cov(self.points, rowvar=False))

    def sample(self, key: Array, n: int) -> Points:
        points = jnp.asarray(self.points)
        if n >= len(self.points):
            return Points(points)
        return Points(points[jax.random.choice(key, len(self.points), (n,), replace=False)])

    def log_density(self, x: Array) -> None:
        return None


class Matched:
    """Samples of a measure, moved so that their mean and covariance are the measure's own.

    The means of linear and quadratic functions over them are exact: much of what a potential is made of has no noise.
    """

    def __init__(self, measure: Distribution):
        self.measure, self.root = measure, np.linalg.cholesky(measure.covariance)

    def sample(self, key: Array, n: int) -> Points:
        x = self.measure.sample(key, n).x
        mean = jnp.mean(x, axis=0)
        offsets = jax.vmap(lambda row: row - mean)(x)
        white = jax.scipy.linalg.solve_triangular(
            jnp.linalg.cholesky(offsets.T @ offsets / len(x)), offsets.T, lower=True
        )
        moved = (jnp.asarray(self.root) @ white).T
        return Points(jax.vmap(lambda row: jnp.asarray(self.measure.mean) + row)(moved))


def matched(measure: Distribution) -> Measure:
    """The measure with `Matched` samples, where its covariance allows."""
    regular = np.linalg.eigvalsh(measure.covariance)[0] > 1e-10 * np.trace(measure.covariance)
    return Matched(measure) if regular else measure


class Independent:
    """Independent samples of a measure whose own are spread evenly."""

    def __init__(self, measure: Distribution):
        self.measure = measure

    def sample(self, key: Array, n: int) -> Points:
        return Points(jax.vmap(lambda one: self.measure.sample(one, 1).x[0])(jax.random.split(key, n)))


def independent(measure: Distribution) -> Measure:
    """The measure with independent samples; those of an array are so already."""
    return measure if isinstance(measure, Samples) else Independent(measure)


def bures(source: Distribution, target: Distribution) -> tuple[np.ndarray, np.ndarray]:
    """A and b of the optimal map x ↦ Ax + b between Gaussians with the moments of the two measures."""
    matrix = bures_matrix(source.covariance, target.covariance)
    return matrix, target.mean - matrix @ source.mean


def bures_matrix(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """A from the two covariances, the first of which is positive definite."""
    values, vectors = np.linalg.eigh(source)
    values = np.maximum(values, 1e-12 * max(values[-1], 1e-300))
    root, inverse = (vectors * values**0.5) @ vectors.T, (vectors * values**-0.5) @ vectors.T
    inner_values, inner_vectors = np.linalg.eigh(root @ target @ root)
    inner = (inner_vectors * np.maximum(inner_values, 0) ** 0.5) @ inner_vectors.T
    return inverse @ inner @ inverse

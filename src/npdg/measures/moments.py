"""Samples with matched moments or independent ones, and the optimal affine map between two measures."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from npdg.measures.empirical import Empirical
from npdg.measures.points import Distribution, Measure, Points


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
    return measure if isinstance(measure, Empirical) else Independent(measure)


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

"""Gaussians and their mixtures on the whole space."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp, ndtri

from npdg.errors import InputError
from npdg.measures.points import Points
from npdg.measures.sobol import shifted_sobol


class Gaussian:
    """A normal distribution.

    Arguments:
        mean: its mean, one entry per coordinate.
        covariance: its covariance matrix.
    """

    def __init__(self, mean: Any, covariance: Any):
        self.mean = np.atleast_1d(np.asarray(mean, dtype=float))
        self.dim = self.mean.size
        self.covariance = np.asarray(covariance, dtype=float).reshape(self.dim, self.dim)
        if not np.allclose(self.covariance, self.covariance.T) or np.linalg.eigvalsh(self.covariance)[0] <= 0:
            raise InputError("covariance: the matrix is not symmetric and positive definite; give one that is.")
        self.root = np.linalg.cholesky(self.covariance)

    def sample(self, key: Array, n: int) -> Points:
        root, mean = jnp.asarray(self.root), jnp.asarray(self.mean)
        return Points(jax.vmap(lambda z: mean + root @ z)(ndtri(shifted_sobol(key, n, self.dim))))

    def log_density(self, x: Array) -> Array:
        white = jax.scipy.linalg.solve_triangular(jnp.asarray(self.root), x - jnp.asarray(self.mean), lower=True)
        logdet = float(np.sum(np.log(np.diag(self.root))))
        return -jnp.vdot(white, white) / 2 - logdet - self.dim / 2 * float(np.log(2 * np.pi))


class GaussianMixture:
    """Σ weight_k N(mean_k, variance·I).

    Arguments:
        weights: positive numbers of sum 1.
        means: one row for each weight.
        variance: the variance of every component along every axis.
    """

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
        unit = shifted_sobol(key, n, self.dim + 1)  # the last coordinate chooses the component
        edges, means = jnp.asarray(np.cumsum(self.weights)), jnp.asarray(self.means)
        component = jnp.minimum(jnp.searchsorted(edges, unit[:, -1]), len(self.weights) - 1)
        return Points(means[component] + self.variance**0.5 * ndtri(unit[:, :-1]))

    def log_density(self, x: Array) -> Array:
        squares = jax.vmap(lambda mean: jnp.vdot(x - mean, x - mean))(jnp.asarray(self.means))
        constant = self.dim / 2 * float(np.log(2 * np.pi * self.variance))
        return logsumexp(jnp.asarray(np.log(self.weights)) - squares / (2 * self.variance)) - constant

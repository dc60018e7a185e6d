"""The empirical measure of an array of samples."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from npdg.errors import InputError
from npdg.measures.points import Points


class Empirical:
    """The empirical measure of an array; a batch is drawn without replacement, or is all of it.

    Arguments:
        array: the samples, of shape `(n, d)`.
        name: what a message calls them.
    """

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
        with np.errstate(over="ignore", invalid="ignore"):  # a problem refuses what is not finite
            self.mean = self.points.mean(axis=0)
            self.covariance = np.atleast_2d(np.cov(self.points, rowvar=False))

    def sample(self, key: Array, n: int) -> Points:
        return Points(jnp.asarray(self.points)[self._drawn(key, n)])

    def exactly(self, key: Array, n: int) -> np.ndarray:
        """The same points in double precision."""
        return self.points[np.asarray(self._drawn(key, n))]

    def _drawn(self, key: Array, n: int) -> Array:
        count = len(self.points)
        return jnp.arange(count) if n >= count else jax.random.choice(key, count, (n,), replace=False)

    def log_density(self, x: Array) -> None:
        return None

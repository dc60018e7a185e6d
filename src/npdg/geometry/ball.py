"""Balls."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from npdg.errors import InputError
from npdg.geometry.domain import Domain, entries
from npdg.measures.points import Points, boundary_points


@dataclass(frozen=True, init=False)
class Ball(Domain):
    """A ball.

    Arguments:
        radius: its radius.
        dim: how many coordinates there are, if no centre is given.
        center: its centre; the origin if not given.
    """

    radius: float
    center: tuple[float, ...]

    def __init__(self, radius: float, dim: int | None = None, center: Sequence[float] | None = None):
        if not (math.isfinite(radius) and radius > 0):
            raise InputError(f"Ball: radius must be a positive number, got {radius}.")
        if center is None and dim is None:
            raise InputError("Ball: give dim, or the center with one entry per coordinate.")
        middle = entries("center", 0.0 if center is None else center, dim)
        object.__setattr__(self, "radius", float(radius))
        object.__setattr__(self, "center", middle)

    @property
    def dim(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.center)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        center = np.array(self.center)
        return center - self.radius, center + self.radius

    @property
    def volume(self) -> float:
        return math.pi ** (self.dim / 2) / math.gamma(self.dim / 2 + 1) * self.radius**self.dim

    @property
    def surface_ratio(self) -> float:
        return self.dim / self.radius

    def sample_interior(self, key: Array, n: int) -> Points:
        direction, distance = jax.random.split(key)
        # P(|x| ≤ ρ) = (ρ/R)^d, hence ρ = R·U^{1/d}.
        rho = self.radius * jax.random.uniform(distance, (n,)) ** (1.0 / self.dim)
        return Points(self._at(rho, unit_vectors(direction, n, self.dim)))

    def sample_boundary(self, key: Array, n: int) -> Points:
        place, turn = jax.random.split(key)
        normal = unit_vectors(place, n, self.dim)
        return boundary_points(turn, self._at(jnp.full((n,), self.radius), normal), normal)

    def _at(self, rho: Array, direction: Array) -> Array:
        center = jnp.array(self.center)
        return jax.vmap(lambda r, e: center + r * e)(rho, direction)

    def cutoff(self, x: Array) -> Array:
        """(R² − |x|²)/2R: the distance to the sphere to first order, and smooth at the centre."""
        offset = x - jnp.array(self.center)
        return (self.radius**2 - jnp.vdot(offset, offset)) / (2 * self.radius)


def unit_vectors(key: Array, n: int, dim: int) -> Array:
    gauss = jax.random.normal(key, (n, dim))
    return gauss / jnp.linalg.norm(gauss, axis=1, keepdims=True)

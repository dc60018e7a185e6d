"""Boxes."""

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
class Box(Domain):
    """The box [lower₁, upper₁] × … × [lower_d, upper_d].

    Arguments:
        lower, upper: the bounds, one entry per coordinate, or a number for all of them.
        dim: how many coordinates there are, if the bounds are numbers.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]

    def __init__(self, lower: float | Sequence[float], upper: float | Sequence[float], dim: int | None = None):
        low, high = entries("lower", lower, dim), entries("upper", upper, dim)
        if len(low) != len(high):
            raise InputError(f"Box: lower has {len(low)} entries and upper {len(high)}; give as many of each.")
        if not all(a < b for a, b in zip(low, high, strict=True)):
            raise InputError(f"Box: every lower bound must be below its upper bound, got {lower} and {upper}.")
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)

    @property
    def dim(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.lower)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self.lower), np.array(self.upper)

    @property
    def volume(self) -> float:
        return math.prod(high - low for low, high in zip(self.lower, self.upper, strict=True))

    @property
    def surface_ratio(self) -> float:
        return 2 * sum(1 / (high - low) for low, high in zip(self.lower, self.upper, strict=True))

    def spread(self, n: int) -> np.ndarray:
        """Sobol's points, moved by half a step: in one dimension the midpoint rule, where n is a power of two."""
        from scipy.stats import qmc  # slow to import, and rarely needed

        unit = qmc.Sobol(self.dim, scramble=False).random(n) + 0.5 / n
        return np.array(self.lower) + (np.array(self.upper) - np.array(self.lower)) * unit

    def sample_interior(self, key: Array, n: int) -> Points:
        lower, upper = jnp.array(self.lower), jnp.array(self.upper)
        place = jax.vmap(lambda t: lower + (upper - lower) * t)
        return Points(place(jax.random.uniform(key, (n, self.dim))))

    def sample_boundary(self, key: Array, n: int) -> Points:
        """Faces in proportion to their area: one random shift spreads the n points evenly over them."""
        place, shift, turn = jax.random.split(key, 3)
        x = self.sample_interior(place, n).x
        # A face across coordinate k has area |Ω|/(upper_k − lower_k); each coordinate has two.
        area = np.repeat(1.0 / (np.array(self.upper) - np.array(self.lower)), 2)
        edges = jnp.array(np.cumsum(area) / np.sum(area))
        position = (jnp.arange(n) + jax.random.uniform(shift)) / n
        face = jnp.minimum(jnp.sum(edges[None] <= position[:, None], axis=1), 2 * self.dim - 1)
        across = (face // 2)[:, None] == jnp.arange(self.dim)[None]
        at_upper = (face % 2 == 1)[:, None]
        wall = jnp.where(at_upper, jnp.array(self.upper)[None], jnp.array(self.lower)[None])
        sign = jnp.where(at_upper, 1.0, -1.0)
        return boundary_points(turn, jnp.where(across, wall, x), jnp.where(across, sign, 0.0))

    def cutoff(self, x: Array) -> Array:
        return jnp.min(jnp.minimum(x - jnp.array(self.lower), jnp.array(self.upper) - x))

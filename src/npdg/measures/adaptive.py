"""Importance sampling: points where a density is large."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array, lax

from npdg.measures.points import Measure, Points


@dataclass(frozen=True)
class ImportanceSampled:
    """Points of `measure` where `density`, a function of one point, is large.

    Of `tries` times as many as asked for, those are taken that a draw with probabilities proportional to it chooses.
    """

    measure: Measure
    density: Callable[[Points], Array]
    tries: int = 20

    def sample(self, key: Array, n: int) -> Points:
        draw, choose = jax.random.split(key)
        points = self.measure.sample(draw, self.tries * n)
        if n == 0:
            return points
        weights = lax.map(self.density, points, batch_size=min(self.tries * n, 1000))
        whole = jnp.sum(weights)
        share = jnp.where(whole > 0, weights / jnp.where(whole > 0, whole, 1), 1 / weights.size)
        chosen = jax.random.choice(choose, weights.size, (n,), replace=False, p=share)
        return jax.tree.map(lambda leaf: leaf[chosen], points)

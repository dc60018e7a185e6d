"""Mixtures of measures."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from npdg.errors import InputError
from npdg.measures.points import Measure, Points


@dataclass(frozen=True)
class Mixture:
    """Σ weight_k · part_k: more points where a solution needs them.

    Arguments:
        parts: measures.
        weights: positive numbers of sum 1, by which the points are shared out.
    """

    parts: Sequence[Measure]
    weights: Sequence[float]

    def __post_init__(self) -> None:
        if len(self.parts) != len(self.weights) or not self.parts:
            raise InputError(f"Mixture: {len(self.parts)} parts and {len(self.weights)} weights; give as many of each.")
        if not all(weight > 0 for weight in self.weights) or abs(sum(self.weights) - 1) > 1e-9:
            raise InputError(f"weights: {tuple(self.weights)} is not allowed; give positive numbers of sum 1.")

    def sample(self, key: Array, n: int) -> Points:
        # Rounding the running sum keeps the total at n.
        ends = [round(n * sum(self.weights[: k + 1])) for k in range(len(self.weights))]
        counts = [end - begin for begin, end in zip([0, *ends[:-1]], ends, strict=True)]
        keys = jax.random.split(key, len(counts))
        drawn = [part.sample(k, count) for part, k, count in zip(self.parts, keys, counts, strict=True)]
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *drawn)

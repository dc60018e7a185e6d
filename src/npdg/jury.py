"""Points by which a transport map is judged, once or all along a run."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from npdg import scores
from npdg.distributions import Samples
from npdg.pair import Pair

Score = dict[str, float | None]
Evaluation = Callable[[Any], np.ndarray]


class Jury:
    """`n` points of ρ₀, two samples of ρ₁ of the same size, and points where the true map is known, if it is."""

    def __init__(self, pair: Pair, n: int, seed: int, *, densities: int):
        self.pair = pair
        first, second, third = jax.random.split(jax.random.key(seed), 3)
        x, y, z = (
            np.asarray(measure.sample(key, n).x)
            for measure, key in ((pair.source, first), (pair.target, second), (pair.target, third))
        )
        if isinstance(pair.target, Samples) and n > len(pair.target.points) // 2:
            # Two draws of all its points would be the same: the floor is that of its two halves.
            y, z = np.array_split(pair.target.points[: len(pair.target.points) // 2 * 2], 2)
        n = min(len(x), len(y), len(z))
        self.x, self.y, self.z = x[:n], y[:n], z[:n]
        self.densities = densities
        self.truth = None if pair.truth is None else pair.truth(n)

    @cached_property
    def floors(self) -> Score:
        """Distances of two samples of ρ₁: nothing can be seen below them."""
        return {
            "sliced_w2_floor": scores.sliced_w2(self.z, self.y),
            "energy_distance_floor": scores.energy_distance(self.z, self.y),
        }

    @cached_property
    def _residual(self) -> Callable[..., Any] | None:
        return scores.monge_ampere(self.pair.source, self.pair.target)

    def judge(self, carry: Evaluation, potential: Evaluation, phi: Any) -> Score:
        """Every figure of a map `carry` with its potential, whose field is `phi`."""
        pushed = carry(self.x)
        cost = float(np.mean(np.sum((self.x - pushed) ** 2, axis=1))) / 2
        dual = cost + float(np.mean(potential(pushed)) - np.mean(potential(self.y)))
        errors: Score = dict.fromkeys(("map_l2", "uvp", "cos"))
        if self.truth is not None:
            at, images = self.truth
            errors |= scores.map_errors(carry(at), images, at, self.pair.variance)
        residual = None
        if self._residual is not None:
            points = (jnp.asarray(side[: self.densities]) for side in (self.x, pushed))
            residual = float(self._residual(phi, *points))
        return {
            **errors,
            "distance": (2 * cost) ** 0.5,
            "cost": cost,
            "dual_value": dual,
            "gap": cost - dual,
            "sliced_w2": scores.sliced_w2(pushed, self.y),
            "energy_distance": scores.energy_distance(pushed, self.y),
            "monge_ampere": residual,
            **self.floors,
        }

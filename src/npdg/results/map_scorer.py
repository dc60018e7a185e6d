"""Points by which a transport map is scored, once or all along a run."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from npdg.measures.empirical import Empirical
from npdg.problem.transport import Transport
from npdg.results import scores
from npdg.results.trained_map import TrainedMap

LIVE_POINTS, LIVE_DENSITIES = 2048, 200  # at which a map is scored as training goes on

Score = dict[str, float | None]


class MapScorer:
    """`n` points of ρ₀, two samples of ρ₁ of the same size, and points where the true map is known, if it is.

    The Monge–Ampère equation is looked at in `densities` points, where T must minimise ½|x − y|² + φ(y); 0: nowhere.
    """

    def __init__(self, pair: Transport, n: int, seed: int, *, densities: int):
        self.pair, self.densities = pair, densities
        self._equation: Callable[..., Any] | None = None
        first, second, third = jax.random.split(jax.random.key(seed), 3)
        x, y, z = (
            np.asarray(measure.sample(key, n).x)
            for measure, key in ((pair.source, first), (pair.target, second), (pair.target, third))
        )
        if isinstance(pair.target, Empirical):  # two draws would have points in common: the floor is that of its halves
            y, z = np.array_split(pair.target.points[: len(pair.target.points) // 2 * 2], 2)
        n = min(len(x), len(y), len(z))
        self.x, self.y, self.z = x[:n], y[:n], z[:n]
        self.truth = None if pair.truth is None else pair.truth(n)

    @cached_property
    def floors(self) -> Score:
        """Distances of two samples of ρ₁: nothing can be seen below them."""
        return {
            "sliced_w2_floor": scores.sliced_w2(self.z, self.y),
            "energy_distance_floor": scores.energy_distance(self.z, self.y),
        }

    def score(self, trained: TrainedMap) -> Score:
        """Every figure of a map with its potential."""
        pushed = trained.map(self.x)
        cost = float(np.mean(np.sum((self.x - pushed) ** 2, axis=1))) / 2
        dual = cost + float(np.mean(trained.potential(pushed)) - np.mean(trained.potential(self.y)))
        errors: Score = dict.fromkeys(("map_l2", "uvp", "cos"))
        if self.truth is not None:
            at, images = self.truth
            errors |= scores.map_errors(trained.map(at), images, at, self.pair.variance)
        return {
            **errors,
            "distance": (2 * cost) ** 0.5,
            "cost": cost,
            "dual_value": dual,
            "gap": cost - dual,
            "sliced_w2": scores.sliced_w2(pushed, self.y),
            "energy_distance": scores.energy_distance(pushed, self.y),
            "monge_ampere": self._residual(trained, pushed),
            **self.floors,
        }

    def _residual(self, trained: TrainedMap, pushed: np.ndarray) -> float | None:
        """The residual of the Monge–Ampère equation in the coordinates of φ: it is the same there."""
        if self._equation is None:
            self._equation = scores.monge_ampere(trained.units.inside(self.pair)) if self.densities else None
        if self._equation is None:
            return None
        units, some = trained.units, slice(self.densities)
        x, y = (self.x[some] - units.source) / units.scale, (pushed[some] - units.target) / units.scale
        return float(self._equation(trained.fields["phi"], jnp.asarray(x), jnp.asarray(y)))


def live_scorer(problem: Transport, *, densities: bool) -> Callable[[TrainedMap], dict[str, float]]:
    """A function that scores a map on a few thousand points, for use as training goes on."""
    scorer = MapScorer(problem, LIVE_POINTS, 2, densities=LIVE_DENSITIES if densities else 0)
    return lambda trained: {key: value for key, value in scorer.score(trained).items() if value is not None}

"""How good a transport map is: against the true map where it is known, against the target where it is not."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from npdg.compilation import jit
from npdg.measures.empirical import Empirical
from npdg.problem.transport import Transport
from npdg.results.trained_map import TrainedMap

DIRECTIONS = 128  # Projections of the sliced distance.
ENERGY_POINTS = 2048  # Points of the energy distance.
LIVE_POINTS, LIVE_DENSITIES = 2048, 200  # Points at which a map and its densities are scored as training goes on.

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
            measure.exactly(key, n) if isinstance(measure, Empirical) else np.asarray(measure.sample(key, n).x)
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
            "sliced_w2_floor": sliced_w2(self.z, self.y),
            "energy_distance_floor": energy_distance(self.z, self.y),
        }

    def score(self, trained: TrainedMap) -> Score:
        """Every figure of a map with its potential."""
        pushed = trained.map(self.x)
        cost = float(np.mean(np.sum((self.x - pushed) ** 2, axis=1))) / 2
        dual = cost + float(np.mean(trained.potential(pushed)) - np.mean(trained.potential(self.y)))
        errors: Score = dict.fromkeys(("map_l2", "uvp", "cos"))
        if self.truth is not None:
            at, images = self.truth
            errors |= map_errors(trained.map(at), images, at, self.pair.variance)
        return {
            **errors,
            "distance": (2 * cost) ** 0.5,
            "cost": cost,
            "dual_value": dual,
            "gap": cost - dual,
            "sliced_w2": sliced_w2(pushed, self.y),
            "energy_distance": energy_distance(pushed, self.y),
            "monge_ampere": self._residual(trained, pushed),
            **self.floors,
        }

    def _residual(self, trained: TrainedMap, pushed: np.ndarray) -> float | None:
        """The residual of the Monge–Ampère equation in the coordinates of φ: it is the same there."""
        if self._equation is None:
            self._equation = monge_ampere(trained.units.inside(self.pair)) if self.densities else None
        if self._equation is None:
            return None
        units, some = trained.units, slice(self.densities)
        x, y = (self.x[some] - units.source) / units.scale, (pushed[some] - units.target) / units.scale
        return float(self._equation(trained.fields["phi"], jnp.asarray(x), jnp.asarray(y)))


def live_scorer(problem: Transport, *, densities: bool) -> Callable[[TrainedMap], dict[str, float]]:
    """A function that scores a map on a few thousand points, for use as training goes on."""
    scorer = MapScorer(problem, LIVE_POINTS, 2, densities=LIVE_DENSITIES if densities else 0)
    return lambda trained: {key: value for key, value in scorer.score(trained).items() if value is not None}


def map_errors(computed: np.ndarray, true: np.ndarray, source: np.ndarray, variance: float) -> dict[str, float]:
    """Root mean square error over the vector, L²-UVP in percent, and the cosine between the displacements."""
    square = float(np.mean(np.sum((computed - true) ** 2, axis=1)))
    moved, should = computed - source, true - source
    lengths = float(np.sqrt(np.mean(np.sum(moved**2, axis=1)) * np.mean(np.sum(should**2, axis=1))))
    cosine = float(np.mean(np.sum(moved * should, axis=1))) / lengths if lengths > 0 else 1.0
    return {"map_l2": square**0.5, "uvp": 100 * square / variance, "cos": cosine}


def sliced_w2(first: np.ndarray, second: np.ndarray, seed: int = 0) -> float:
    """The root of the mean squared W₂ distance of one-dimensional projections of two samples of the same size."""
    directions = np.random.default_rng(seed).normal(size=(first.shape[1], DIRECTIONS))
    directions /= np.linalg.norm(directions, axis=0)
    gaps = np.sort(first @ directions, axis=0) - np.sort(second @ directions, axis=0)
    return float(np.sqrt(np.mean(gaps**2)))


def energy_distance(first: np.ndarray, second: np.ndarray) -> float:
    """√(2 E|X − Y| − E|X − X'| − E|Y − Y'|) of the empirical measures of some of the points; never negative."""
    from scipy.spatial.distance import cdist

    a, b = first[:ENERGY_POINTS], second[:ENERGY_POINTS]
    return float(np.sqrt(max(2 * cdist(a, b).mean() - cdist(a, a).mean() - cdist(b, b).mean(), 0.0)))


def mode_masses(points: np.ndarray, means: np.ndarray) -> np.ndarray:
    """The share of the points that is nearest to each mean."""
    from scipy.spatial import KDTree

    nearest = KDTree(means).query(points)[1]
    return np.bincount(nearest, minlength=len(means)) / len(points)


def monge_ampere(pair: Transport) -> Callable[..., Array] | None:
    """A function of φ, points and their images: the root mean square of log ρ₁(T) + log det ∇T − log ρ₀; None where a
    density is not known.

    Where T(x) minimises ½|x − y|² + φ(y), its derivative is (I + D²φ(T))⁻¹.
    """
    source, target, origin = pair.source, pair.target, jnp.zeros(pair.dim)
    if source.log_density(origin) is None or target.log_density(origin) is None:
        return None

    @jit
    def residual(phi: Callable[[Array], Array], x: Array, pushed: Array) -> Array:
        def one(point: Array, reached: Array) -> Array:
            logdet = -jnp.linalg.slogdet(jnp.eye(point.size) + jax.hessian(phi)(reached))[1]
            ahead, behind = target.log_density(reached), source.log_density(point)
            assert ahead is not None
            assert behind is not None
            return ahead + logdet - behind

        return jnp.sqrt(jnp.mean(jax.vmap(one)(x, pushed) ** 2))

    return residual

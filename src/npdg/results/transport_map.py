"""An optimal map between two measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from npdg.errors import InputError
from npdg.measures.gaussian import GaussianMixture
from npdg.precision import precision
from npdg.problem.transport import Map, Transport
from npdg.results import scores
from npdg.results.arrays import filled
from npdg.results.base import Result, Saved, common, common_saved
from npdg.results.scores import MapScorer, Score
from npdg.results.trained_map import TrainedMap
from npdg.saddle.saddle import Fields
from npdg.training.records import Record

TEST_POINTS = 2**14  # Points by which a map is scored.
DENSITY_POINTS = 2000  # Those of them at which the Monge–Ampère equation is looked at.
MASS_POINTS = 2**16  # Points by which the masses of modes are counted.
COMPARED = ("map_l2", "sliced_w2", "uvp", "gap")  # figures by which maps are compared


@dataclass(kw_only=True)
class TransportMap(Result):
    """An optimal map T with its potential φ: T(x) minimises ½|x − y|² + φ(y). Call it on points `(n, d)`."""

    fields: Fields
    trained: TrainedMap
    steps: int = 0

    @classmethod
    def of(cls, problem: Transport, method: Any, progress: Any, seed: int) -> TransportMap:
        """What a run has come to."""
        fields = progress.state.fields
        trained = method.trained_map(problem, progress.settings, fields)
        kept = common(problem, method, progress, seed)
        return cls(fields=fields, trained=trained, steps=int(progress.state.step), **kept)

    @classmethod
    def restored(cls, problem: Transport, method: Any, settings: Any, saved: Saved) -> TransportMap:
        """Read back; its arrays are laid into fields built from its configuration."""
        with precision(settings.precision):
            template = method.recipe(problem, settings).start(jax.random.key(0))
            fields = filled(template, saved.arrays, saved.path)
        trained = method.trained_map(problem, settings, fields)
        kept = common_saved(problem, method, settings, saved)
        history = [Record.from_row(row) for row in saved.rows]
        return cls(fields=fields, trained=trained, steps=saved.result["steps"], history=history, **kept)

    def with_fields(self, fields: Fields) -> TransportMap:
        """The same run with other fields, such as those at an earlier moment."""
        trained = self.trained
        moved = TrainedMap(fields, trained.units, trained.search, trained.precision)
        return replace(self, fields=fields, trained=moved)

    def __call__(self, x: Any) -> Float[np.ndarray, "*n d"]:
        """T at the points `x (n, d)`, or at one point `(d,)`."""
        return self.trained.map(x)

    def map(self, x: Any) -> Float[np.ndarray, "*n d"]:
        """T at the points `x (n, d)`, or at one point `(d,)`."""
        return self.trained.map(x)

    def potential(self, y: Any) -> Float[np.ndarray, "*n"]:
        """φ at the points `y (n, d)`, or at one point `(d,)`."""
        return self.trained.potential(y)

    def inverse(self, y: Any) -> Float[np.ndarray, "*n d"]:
        """The inverse map y + ∇φ(y)."""
        return self.trained.inverse(y)

    @property
    def pair(self) -> Transport:
        return self.problem

    @property
    def precision(self) -> str:
        return self.settings.precision

    @property
    def training_steps(self) -> int:
        return self.steps

    def distance(self, n: int = TEST_POINTS, seed: int = 1) -> float:
        """The Wasserstein distance W₂ as the cost of the map: √E|x − T(x)|²."""
        x = np.asarray(self.pair.source.sample(jax.random.key(seed), n).x)
        return float(np.sqrt(np.mean(np.sum((x - self.map(x)) ** 2, axis=1))))

    def score(self, true_map: Map | None = None, n: int = TEST_POINTS, seed: int = 1) -> Score:
        """Errors on fresh points: against the true map, if known; the cost and its gap to the dual value; distances of
        T#ρ₀ to ρ₁ with their floors, those of two samples of ρ₁; the Monge–Ampère residual where densities are known.
        """
        pair = self.pair if true_map is None else Transport(self.pair.source, self.pair.target, true_map)
        densities = DENSITY_POINTS if self.settings.functional.refine else 0
        with precision(self.precision):
            score = MapScorer(pair, n, seed, densities=densities).score(self.trained)
        return {**score, "mode_mass": self._mode_mass()}

    def _mode_mass(self) -> float | None:
        """The largest relative error of the masses that arrive nearest to the modes of a mixture, if it is one."""
        target = self.pair.target
        if not isinstance(target, GaussianMixture):
            return None
        first, second = jax.random.split(jax.random.key(3))
        arrived = self.map(np.asarray(self.pair.source.sample(first, MASS_POINTS).x))
        got = scores.mode_masses(arrived, target.means)
        should = scores.mode_masses(np.asarray(target.sample(second, MASS_POINTS).x), target.means)
        return float(np.max(np.abs(got / should - 1)))

    def errors(self) -> dict[str, float]:
        score = self.score()
        return {key: value for key in COMPARED if (value := score[key]) is not None}

    def measured(self) -> dict[str, Any]:
        return self.score()

    def measured_so_far(self) -> dict[str, Any]:
        none = dict.fromkeys(("map_l2", "uvp", "cos", "sliced_w2"))
        return {**none, **super().measured_so_far()}

    def headlines(self, figures: Mapping[str, Any]) -> list[str]:
        found = []
        if figures["map_l2"] is not None:
            found.append(
                f"L² error of the map {figures['map_l2']:.2e}, UVP {figures['uvp']:.2g} %, cosine {figures['cos']:.4f}"
            )
        if figures["sliced_w2"] is not None:
            found.append(
                f"distance W₂ {figures['distance']:.5g}; the map's image is at sliced W₂ {figures['sliced_w2']:.2e} of "
                f"the target, other samples of it at {figures['sliced_w2_floor']:.2e}"
            )
        return found

    def final_fields(self) -> dict[str, Any]:
        return dict(self.fields)

    def arrays(self) -> Fields:
        return self.fields

    def values(self, points: np.ndarray, time: float | None, gradient: bool) -> tuple[np.ndarray, list[str]]:
        if time is not None or gradient:
            raise InputError("evaluate: this is a transport map; leave --time and --gradient out.")
        return self.map(points), [f"T{k}" for k in range(1, self.problem.dim + 1)]


TransportSolution = TransportMap  # its name in earlier versions

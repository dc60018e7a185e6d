"""Optimal transport: `transport` one measure to another and look at the `TransportSolution`."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from npdg import scores
from npdg.distributions import GaussianMixture
from npdg.hooks import KEEP_NOTHING, Hooks, Keep
from npdg.jury import Jury, Score
from npdg.loop import Outcome, Record, initial
from npdg.pair import Map, Pair
from npdg.rollback import check_rollbacks, go_on, recipes
from npdg.saddle import Fields
from npdg.sizes import check_memory
from npdg.solution import call_all, check_budget
from npdg.stages import precision
from npdg.stopping import read_until, transport_rule
from npdg.trained_map import TrainedMap
from npdg.transport_recipe import transport_recipe
from npdg.transport_settings import TransportSettings, choose_transport

TEST_POINTS, LIVE_POINTS = 2**14, 2048
MANY = 2**16  # points by which masses are told apart
DENSITIES, LIVE_DENSITIES = 2000, 200  # of them, those at which the Monge–Ampère equation is looked at


@dataclass
class TransportSolution:
    """An optimal map T with its potential φ: T(x) minimises ½|x − y|² + φ(y)."""

    pair: Pair
    method: str
    preset: str
    settings: TransportSettings
    fields: Fields
    seed: int
    stop_reason: str
    detail: str = ""
    steps: int = 0
    seconds: float = 0.0
    compile_seconds: float = 0.0
    history: list[Record] = field(default_factory=list)

    def map(self, x: Any) -> np.ndarray:
        """T at the points `x (n, d)`, or at one point `(d,)`."""
        return self._trained.map(x)

    def potential(self, y: Any) -> np.ndarray:
        """φ at the points `y (n, d)`, or at one point `(d,)`."""
        return self._trained.potential(y)

    def inverse(self, y: Any) -> np.ndarray:
        """The inverse map y + ∇φ(y)."""
        return self._trained.inverse(y)

    @property
    def _trained(self) -> TrainedMap:
        return TrainedMap(self.pair, self.settings, self.fields)

    @property
    def precision(self) -> str:
        """float32 or float64, as the numbers of the fields are."""
        return self.settings.precision

    def distance(self, n: int = TEST_POINTS, seed: int = 1) -> float:
        """The Wasserstein distance W₂ as the cost of the map: √E|x − T(x)|²."""
        x = np.asarray(self.pair.source.sample(jax.random.key(seed), n).x)
        return float(np.sqrt(np.mean(np.sum((x - self.map(x)) ** 2, axis=1))))

    def score(self, true_map: Map | None = None, n: int = TEST_POINTS, seed: int = 1) -> Score:
        """Errors on fresh points: against the true map, if known; the cost and its gap to the dual value; distances of
        T#ρ₀ to ρ₁ with their floors, those of two samples of ρ₁; the Monge–Ampère residual where densities are known.
        """
        pair = self.pair if true_map is None else Pair(self.pair.source, self.pair.target, true_map)
        with precision(self.precision):
            score = Jury(pair, n, seed, densities=DENSITIES if self.settings.refine else 0).judge(self._trained)
        return {**score, "mode_mass": self._mode_mass()}

    def _mode_mass(self) -> float | None:
        """The largest relative error of the masses that arrive nearest to the modes of a mixture, if it is one."""
        target = self.pair.target
        if not isinstance(target, GaussianMixture):
            return None
        first, second = jax.random.split(jax.random.key(3))
        arrived = self.map(np.asarray(self.pair.source.sample(first, MANY).x))
        got = scores.mode_masses(arrived, target.means)
        should = scores.mode_masses(np.asarray(target.sample(second, MANY).x), target.means)
        return float(np.max(np.abs(got / should - 1)))

    def plot(self, path: str | Path | None = None, axes: tuple[int, int] | None = None) -> Any:
        """A figure of the two measures, of T#ρ₀ with segments of the map, and of φ, in the plane of two coordinates."""
        from npdg.runs import plots, transport_plots

        return plots.finish(transport_plots.transport_figure(self, axes), path)

    def plot_history(self, path: str | Path | None = None) -> Any:
        """A figure of what was measured against seconds and against steps; written to `path` if given."""
        from npdg.runs import plots, transport_plots

        return plots.finish(transport_plots.history_figure([self]), path)

    def save(self, path: str | Path) -> Path:
        """Write the solution to a new directory, from which `npdg.load` reads it back."""
        from npdg.runs import transports

        return transports.save(self, Path(path))


def transport(
    source: Any,
    target: Any,
    method: str = "npdg",
    *,
    seconds: float | None = None,
    steps: int | None = None,
    seed: int = 0,
    preset: str = "default",
    until: str | None = None,
    rollbacks: int = 0,
    true_map: Map | None = None,
    callbacks: Sequence[Callable[[int, Record], None]] = (),
    should_stop: Callable[[], str | None] = lambda: None,
    **settings: Any,
) -> TransportSolution:
    """The optimal map from one measure to another, each a distribution or an array of samples `(n, d)`.

    Every number is chosen for you; `affine=False`, say, starts from a shift instead of the best affine map.
    `until="uvp=1"` (also map_l2, sliced_w2) ends the run earlier. One that diverges goes back and on more carefully up
    to `rollbacks` times; then it ends with `stop_reason == "diverged"`, a warning, and the last finite fields.
    """
    return carry(
        Pair(source, target, true_map),
        method,
        seconds=seconds,
        steps=steps,
        seed=seed,
        preset=preset,
        until=until,
        rollbacks=rollbacks,
        callbacks=callbacks,
        should_stop=should_stop,
        **settings,
    )


def carry(
    pair: Pair,
    method: str = "npdg",
    *,
    seconds: float | None = None,
    steps: int | None = None,
    seed: int = 0,
    preset: str = "default",
    until: str | None = None,
    callbacks: Sequence[Callable[[int, Record], None]] = (),
    rollbacks: int = 0,
    on_compiled: Callable[[float], None] = lambda seconds: None,
    on_note: Callable[[str], None] = lambda note: None,
    should_stop: Callable[[], str | None] = lambda: None,
    keep: Keep = KEEP_NOTHING,
    **settings: Any,
) -> TransportSolution:
    """The same for a `Pair`; `keep` is where the states of the run go."""
    check_budget(seconds, steps, seed)
    check_rollbacks(rollbacks)
    chosen = choose_transport(pair.name, pair.dim, method, preset, settings)
    check_memory(chosen, pair.dim)
    rule = None if until is None else transport_rule(read_until(until), exact=pair.truth is not None)
    if seconds is None and steps is None:
        seconds = 60.0
    hooks = Hooks(
        lambda record: call_all(callbacks, record),
        on_compiled,
        should_stop=should_stop,
        enough=lambda history: None if rule is None else rule(history),
        on_note=on_note,
        keep=keep,
    )
    recipe_after = recipes(method, chosen, lambda s: transport_recipe(pair, method, s))
    with precision(chosen.precision):
        recipe, _ = recipe_after(keep.rollbacks)
        fresh, judge = initial(recipe, seed), meter(pair, chosen)
        outcome = go_on(
            recipe,
            recipe_after,
            keep.restore(fresh) or Outcome(fresh, "seconds"),
            rollbacks,
            hooks,
            seconds=seconds,
            steps=steps,
            evaluate=lambda state: judge(state.fields),
        )
    if outcome.stop_reason == "diverged":
        warnings.warn(f"diverged: {outcome.detail}", RuntimeWarning, stacklevel=2)
    return TransportSolution(
        pair,
        method,
        preset,
        chosen,
        outcome.state.fields,
        seed,
        outcome.stop_reason,
        outcome.detail,
        int(outcome.state.step),
        outcome.seconds,
        outcome.compile_seconds,
        outcome.history,
    )


def meter(pair: Pair, settings: TransportSettings) -> Callable[[Fields], dict[str, float]]:
    """A function of T and φ that judges the map on a few thousand points."""
    jury = Jury(pair, LIVE_POINTS, 2, densities=LIVE_DENSITIES if settings.refine else 0)

    def evaluate(fields: Fields) -> dict[str, float]:
        score = jury.judge(TrainedMap(pair, settings, fields))
        return {key: value for key, value in score.items() if value is not None}

    return evaluate

"""Several runs one after another on the same clock: what comparisons and the paper's figures are made of."""

import statistics
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
from matplotlib.figure import Figure

from npdg.driver import make_plan
from npdg.driver import run as carry_out
from npdg.runs.figures.history import LABELS
from npdg.runs.tables import write_table
from npdg.training.progress import Budget, Events
from npdg.training.stopping import StopReason

# The kinds of error, with their names in tables and on axes.
TITLES = {
    "rel_l2": "relative L²",
    "rel_h1": "relative H¹",
    "rmse": "root mean square",
    "map_l2": "L²(ρ₀)",
    "sliced_w2": "sliced W₂",
    "uvp": "UVP %",
    "gap": "gap",
}
ACCURACIES = (1e-1, 5e-2, 1e-2, 5e-3, *(10.0**-k for k in range(3, 13)))


@dataclass(frozen=True)
class Entry:
    """Who runs: a label, a method with its preset, and settings that are changed."""

    label: str
    method: str = "npdg"
    preset: str = "default"
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RaceRun:
    """One finished run of an entry; the first of its errors is the one by which runs are compared."""

    entry: Entry
    solution: Any
    errors: dict[str, float]

    @property
    def error(self) -> float:
        return next(iter(self.errors.values()))

    @property
    def diverged(self) -> bool:
        return self.solution.stop_reason is StopReason.DIVERGED

    def curve(self, key: str | None = None) -> tuple[list[float], list[float]]:
        """Training seconds and errors, where they were measured."""
        return self.solution.curve(next(iter(self.errors)) if key is None else key)

    def time_to(self, accuracy: float) -> float | None:
        """Training seconds after which the error was first at most this."""
        return next((s for s, error in zip(*self.curve(), strict=True) if error <= accuracy), None)


def run(problem: Any, entry: Entry, budget: Budget, seed: int = 0, events: Events | None = None) -> RaceRun:
    """One run; a divergence is a result like any other."""
    jax.clear_caches()  # a race of many runs must not fill the memory with programs
    plan = make_plan(problem, entry.method, budget, seed, preset=entry.preset, **entry.settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        result = carry_out(plan, events)
    return RaceRun(entry, result, result.errors())


def median_time(runs: Sequence[RaceRun], accuracy: float) -> float | None:
    """The median over seeds of the time to an accuracy; None if most of them never got there."""
    times = [one.time_to(accuracy) for one in runs]
    middle = sorted(float("inf") if t is None else t for t in times)[len(times) // 2]
    return None if middle == float("inf") else middle


def grouped(runs: Sequence[RaceRun]) -> dict[str, list[RaceRun]]:
    """Runs by the label of their entry, in the order in which they ran."""
    groups: dict[str, list[RaceRun]] = {}
    for one in runs:
        groups.setdefault(one.entry.label, []).append(one)
    return groups


def summary(runs: Sequence[RaceRun]) -> dict[str, Any]:
    """One entry over its seeds: medians, spread, times, and how each run ended."""
    result: dict[str, Any] = {}
    for key in runs[0].errors:
        values = [one.errors[key] for one in runs]
        result |= {key: statistics.median(values), f"{key}_min": min(values), f"{key}_max": max(values)}
    return result | {
        "seconds_to": {f"{a:.0e}": median_time(runs, a) for a in ACCURACIES},
        "runs": [
            {
                "seed": one.solution.seed,
                **one.errors,
                "steps": one.solution.training_steps,
                "seconds": one.solution.seconds,
                "compile_seconds": one.solution.compile_seconds,
                "stop_reason": str(one.solution.stop_reason),
                "detail": one.solution.detail,
            }
            for one in runs
        ],
    }


def draw(axes: Any, runs: Sequence[RaceRun], key: str | None = None) -> None:
    """An error (the first) of every run against its training seconds, one colour an entry."""
    for number, (label, group) in enumerate(grouped(runs).items()):
        for one in group:
            seconds, errors = one.curve(key)
            name = label + (" (diverged)" if one.diverged else "")
            axes.loglog(
                seconds, errors, color=f"C{number % 10}", lw=1.3, alpha=0.85, label=name if one is group[0] else None
            )
            if seconds:
                axes.plot(seconds[-1], errors[-1], "x" if one.diverged else ".", color=f"C{number % 10}")
    axes.set_xlabel("training seconds")
    if runs:  # none, if the race was stopped at once
        axes.set_ylabel(LABELS[key or next(iter(runs[0].errors))])
        axes.legend(fontsize=8)
    axes.grid(alpha=0.3, which="both")


def figure(runs: Sequence[RaceRun], title: str) -> Figure:
    """The first two kinds of error side by side."""
    drawn = Figure(figsize=(10, 4), layout="constrained")
    keys = list(runs[0].errors)[:2] if runs else []
    panels = drawn.subplots(1, 2 if len(keys) != 1 else 1, squeeze=False)[0]
    for axes, key in zip(panels, keys, strict=False):
        draw(axes, runs, key)
    drawn.suptitle(title)
    return drawn


def rows(runs: Sequence[RaceRun]) -> list[dict[str, Any]]:
    """Every measured point of every curve."""
    return [{"entry": one.entry.label, "seed": one.solution.seed, **row} for one in runs for row in one.solution.rows()]


def write_csv(path: Path, table: Sequence[dict[str, Any]]) -> None:
    """Rows of the same columns as a file."""
    write_table(path, list(table[0]) if table else [], table)

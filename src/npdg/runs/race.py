"""Several runs one after another on the same clock: what comparisons and the paper's figures are made of."""

import csv
import statistics
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
from matplotlib.figure import Figure

from npdg.pair import Pair
from npdg.pde import PDE
from npdg.runs import plots, transport_plots
from npdg.solution import Solution, solve
from npdg.transportation import TransportSolution, carry

# The kinds of error, with their names in tables and on axes.
TITLES = {
    "rel_l2": "relative L²",
    "rel_h1": "relative H¹",
    "map_l2": "L²(ρ₀)",
    "sliced_w2": "sliced W₂",
    "uvp": "UVP %",
    "gap": "gap",
}
LABELS = {**plots.LABELS, **transport_plots.LABELS}
ACCURACIES = (1e-1, 5e-2, 1e-2, 5e-3, *(10.0**-k for k in range(3, 13)))


@dataclass(frozen=True)
class Entry:
    """Who runs: a label, a method with its preset, and settings that are changed."""

    label: str
    method: str = "npdg"
    preset: str = "default"
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Lap:
    """One finished run of an entry; the first of its errors is the one by which runs are compared."""

    entry: Entry
    solution: Any  # a Solution or a TransportSolution
    errors: dict[str, float]

    @property
    def error(self) -> float:
        return next(iter(self.errors.values()))

    @property
    def diverged(self) -> bool:
        return self.solution.stop_reason == "diverged"

    def curve(self, key: str | None = None) -> tuple[list[float], list[float]]:
        """Training seconds and errors, where they were measured."""
        key = next(iter(self.errors)) if key is None else key
        measured = [r for r in self.solution.history if r.errors]
        return [r.seconds for r in measured], [r.errors[key] for r in measured]

    def time_to(self, accuracy: float) -> float | None:
        """Training seconds after which the error was first at most this."""
        return next((s for s, error in zip(*self.curve(), strict=True) if error <= accuracy), None)


def run(
    problem: PDE | Pair,
    entry: Entry,
    *,
    seconds: float | None = None,
    steps: int | None = None,
    seed: int = 0,
    should_stop: Callable[[], str | None] = lambda: None,
    **hooks: Any,
) -> Lap:
    """One run; a divergence is a result like any other."""
    jax.clear_caches()  # a race of many runs must not fill the memory with programs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        play: Callable[..., Any] = carry if isinstance(problem, Pair) else solve
        solution = play(
            problem,
            entry.method,
            preset=entry.preset,
            seconds=seconds,
            steps=steps,
            seed=seed,
            should_stop=should_stop,
            **hooks,
            **entry.settings,
        )
    return Lap(entry, solution, _errors(solution))


def _errors(solution: Solution | TransportSolution) -> dict[str, float]:
    if isinstance(solution, Solution):
        found = solution.error()
        return {"rel_l2": found.rel_l2, "rel_h1": found.rel_h1}
    known = {key: value for key, value in solution.score().items() if value is not None}
    return {key: known[key] for key in TITLES if key in known}


def median_time(laps: Sequence[Lap], accuracy: float) -> float | None:
    """The median over seeds of the time to an accuracy; None if most of them never got there."""
    times = [lap.time_to(accuracy) for lap in laps]
    middle = sorted(float("inf") if t is None else t for t in times)[len(times) // 2]
    return None if middle == float("inf") else middle


def grouped(laps: Sequence[Lap]) -> dict[str, list[Lap]]:
    """Laps by the label of their entry, in the order in which they ran."""
    groups: dict[str, list[Lap]] = {}
    for lap in laps:
        groups.setdefault(lap.entry.label, []).append(lap)
    return groups


def summary(laps: Sequence[Lap]) -> dict[str, Any]:
    """One entry over its seeds: medians, spread, times, and how each run ended."""
    result: dict[str, Any] = {}
    for key in laps[0].errors:
        values = [lap.errors[key] for lap in laps]
        result |= {key: statistics.median(values), f"{key}_min": min(values), f"{key}_max": max(values)}
    return result | {
        "seconds_to": {f"{a:.0e}": median_time(laps, a) for a in ACCURACIES},
        "runs": [
            {
                "seed": lap.solution.seed,
                **lap.errors,
                "steps": lap.solution.steps,
                "seconds": lap.solution.seconds,
                "compile_seconds": lap.solution.compile_seconds,
                "stop_reason": lap.solution.stop_reason,
                "detail": lap.solution.detail,
            }
            for lap in laps
        ],
    }


def draw(axes: Any, laps: Sequence[Lap], key: str | None = None) -> None:
    """An error (the first) of every run against its training seconds, one colour an entry."""
    for number, (label, group) in enumerate(grouped(laps).items()):
        for lap in group:
            seconds, errors = lap.curve(key)
            name = label + (" (diverged)" if lap.diverged else "")
            axes.loglog(
                seconds, errors, color=f"C{number % 10}", lw=1.3, alpha=0.85, label=name if lap is group[0] else None
            )
            if seconds:
                axes.plot(seconds[-1], errors[-1], "x" if lap.diverged else ".", color=f"C{number % 10}")
    axes.set_xlabel("training seconds")
    if laps:  # none, if the race was stopped at once
        axes.set_ylabel(LABELS[key or next(iter(laps[0].errors))])
        axes.legend(fontsize=8)
    axes.grid(alpha=0.3, which="both")


def figure(laps: Sequence[Lap], title: str) -> Figure:
    """Two kinds of error side by side."""
    drawn = Figure(figsize=(10, 4), layout="constrained")
    for axes, key in zip(drawn.subplots(1, 2), laps[0].errors if laps else (), strict=False):
        draw(axes, laps, key)
    drawn.suptitle(title)
    return drawn


def rows(laps: Sequence[Lap]) -> list[dict[str, Any]]:
    """Every measured point of every curve."""
    return [
        {"entry": lap.entry.label, "seed": lap.solution.seed, "step": r.step, "seconds": r.seconds, **r.errors}
        for lap in laps
        for r in lap.solution.history
        if r.errors
    ]


def write_csv(path: Path, table: Sequence[dict[str, Any]]) -> None:
    """Rows of the same columns as a file."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(table[0]) if table else [])
        writer.writeheader()
        writer.writerows(table)

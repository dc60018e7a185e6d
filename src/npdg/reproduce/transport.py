"""Figures of Sec. 5.5 and its appendix: optimal transport and the Monge–Ampère equation."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from npdg.catalogue import find
from npdg.catalogue.transport import ACTIVE
from npdg.problem.transport import Transport
from npdg.reproduce.reproduction import Reproduction
from npdg.runs import race
from npdg.runs.figures.transport import draw_arrows, draw_map, draw_potential, samples, square
from npdg.runs.race import Entry
from npdg.saddle.saddle import Fields
from npdg.training.progress import Checkpoints, Events, Progress

# What the quick scale changes in the paper's networks and samples.
SMALL: dict[str, Any] = {"width": 48, "depth": 3, "n_interior": 1000, "n_metric": 1000, "minres_max": 100}
SNAPSHOTS = 4


def one_and_five_dimensions(work: Reproduction) -> None:
    """Error against seconds for both metrics and PD-Adam in 1-D and 5-D; the 5-D map on two planes."""
    figure = Figure(figsize=(17, 4), layout="constrained")
    panels = figure.subplots(1, 4)
    for axes, (problem, seconds, paper_seconds) in zip(
        panels[:2], (("ot-1d", 20.0, 300.0), ("ot-gaussian", 30.0, 3000.0)), strict=True
    ):
        pair = _pair(problem)
        runs = work.race(pair, _entries(work), problem, seconds=_seconds(work, seconds, paper_seconds))
        race.draw(axes, runs)
        axes.set_title(f"{pair.dim}-D")
        if problem == "ot-gaussian" and runs:
            draw_arrows(panels[2], runs[0].solution, (0, 1))
            draw_arrows(panels[3], runs[0].solution, (3, 4))
    work.picture("ma1", figure)


def ten_dimensions(work: Reproduction) -> None:
    """T#ρ₀ with segments of the map, for both weights, by NPDG (ours, the paper's) and by PD-Adam."""
    seconds = _seconds(work, 60.0, 3000.0)
    entries = _entries(work, metrics=("identity",))
    figure = Figure(figsize=(4.2 * len(entries), 8.4), layout="constrained")
    for row, weights in zip(figure.subplots(2, len(entries)), ("equal", "unequal"), strict=True):
        runs = work.race(_pair("ot-mixture", 10, weights=weights), entries, weights, seconds=seconds)
        for axes, one in zip(row, runs, strict=False):
            draw_map(axes, one.solution, ACTIVE[10], title=f"{one.entry.label}, {weights}")
    work.picture("ma10d", figure)


def fifty_dimensions_equal(work: Reproduction) -> None:
    """T#ρ₀ for both metrics and PD-Adam, and the potential, with equal weights."""
    _fifty(work, "equal")


def fifty_dimensions_unequal(work: Reproduction) -> None:
    """The same with unequal weights."""
    _fifty(work, "unequal")


def _fifty(work: Reproduction, weights: str) -> None:
    entries = _entries(work)
    seconds = _seconds(work, 60.0, 10_000.0)
    runs = work.race(_pair("ot-mixture", 50, weights=weights), entries, weights, seconds=seconds)
    figure = Figure(figsize=(4.2 * (len(entries) + 1), 4.2), layout="constrained")
    panels = figure.subplots(1, len(entries) + 1)
    for axes, one in zip(panels, runs, strict=False):
        draw_map(axes, one.solution, ACTIVE[50], title=one.entry.label)
    if runs:
        best = runs[0].solution
        draw_potential(panels[-1], best, ACTIVE[50], square(samples(best)[1], ACTIVE[50]))
    work.picture(f"ma50d-{weights}", figure)


def on_the_way(work: Reproduction) -> None:
    """T#ρ₀ at four moments of every run, 50-D with unequal weights."""
    entries, pair = _entries(work), _pair("ot-mixture", 50, weights="unequal")
    seconds = _seconds(work, 40.0, 10_000.0)
    figure = Figure(figsize=(3.6 * SNAPSHOTS, 3.6 * len(entries)), layout="constrained")
    for row, entry in zip(figure.subplots(len(entries), SNAPSHOTS), entries, strict=True):
        album = Album(seconds)
        events = Events(checkpoints=Checkpoints(between=album.see))
        runs = work.race(pair, [entry], entry.label.replace(", ", "-"), seconds, events)
        for axes, (at, fields) in zip(row, album.kept, strict=False):
            draw_map(axes, runs[0].solution.with_fields(fields), ACTIVE[50], title=f"{entry.label}, {at:.0f} s")
    work.picture("ma50d-steps", figure)


class Album:
    """Keeps T and φ at a few moments of a run of given seconds."""

    def __init__(self, seconds: float):
        self.seconds = seconds
        self.kept: list[tuple[float, Fields]] = []

    def see(self, progress: Progress) -> None:
        if progress.seconds >= 0.97 * self.seconds * (len(self.kept) + 1) / SNAPSHOTS:
            self.kept.append((progress.seconds, progress.state.fields))


def _entries(work: Reproduction, metrics: Sequence[str] = ("identity", "gradient")) -> list[Entry]:
    small = SMALL if work.quick else {}
    names = {"identity": "Id", "gradient": "∇"}
    return [
        Entry("NPDG, default"),
        *(Entry(f"NPDG, paper, {names[m]}", preset="paper", settings={**small, "metric": m}) for m in metrics),
        Entry("PD-Adam, paper", "pd-adam", "paper", small),
    ]


def _seconds(work: Reproduction, quick: float, paper: float) -> float:
    if work.quick:
        work.say(f"scaled down: {quick:g} s a run instead of {paper:g} s; the paper's networks and samples {SMALL}")
    return quick if work.quick else paper


def _pair(problem: str, dim: int | None = None, **options: str) -> Transport:
    card = find(problem)
    return card.build(card.default_dim if dim is None else dim, **options)

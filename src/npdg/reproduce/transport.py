"""Figures of Sec. 5.5 and its appendix: optimal transport and the Monge–Ampère equation."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure

from npdg.hooks import Keep
from npdg.loop import Outcome
from npdg.pair import Pair
from npdg.problems import find
from npdg.problems.transport import ACTIVE
from npdg.reproduce.desk import Desk
from npdg.runs import race
from npdg.runs.race import Entry
from npdg.runs.transport_plots import draw_arrows, draw_map, draw_potential, samples, square
from npdg.saddle import Fields

# What the quick scale changes in the paper's networks and samples.
SMALL: dict[str, Any] = {"width": 48, "depth": 3, "n_interior": 1000, "n_metric": 1000, "minres_max": 100}
SNAPSHOTS = 4


def one_and_five_dimensions(desk: Desk) -> None:
    """Error against seconds for both metrics and PD-Adam in 1-D and 5-D; the 5-D map on two planes."""
    figure = Figure(figsize=(17, 4), layout="constrained")
    panels = figure.subplots(1, 4)
    for axes, (problem, seconds, paper_seconds) in zip(
        panels[:2], (("ot-1d", 20.0, 300.0), ("ot-gaussian", 30.0, 3000.0)), strict=True
    ):
        pair = _pair(problem)
        laps = desk.race(pair, _entries(desk), problem, seconds=_seconds(desk, seconds, paper_seconds))
        race.draw(axes, laps)
        axes.set_title(f"{pair.dim}-D")
        if problem == "ot-gaussian" and laps:
            draw_arrows(panels[2], laps[0].solution, (0, 1))
            draw_arrows(panels[3], laps[0].solution, (3, 4))
    desk.picture("ma1", figure)


def ten_dimensions(desk: Desk) -> None:
    """T#ρ₀ with segments of the map, for both weights, by NPDG (ours, the paper's) and by PD-Adam."""
    seconds = _seconds(desk, 60.0, 3000.0)
    entries = _entries(desk, metrics=("identity",))
    figure = Figure(figsize=(4.2 * len(entries), 8.4), layout="constrained")
    for row, weights in zip(figure.subplots(2, len(entries)), ("equal", "unequal"), strict=True):
        laps = desk.race(_pair("ot-mixture", 10, weights=weights), entries, weights, seconds=seconds)
        for axes, lap in zip(row, laps, strict=False):
            draw_map(axes, lap.solution, ACTIVE[10], title=f"{lap.entry.label}, {weights}")
    desk.picture("ma10d", figure)


def fifty_dimensions_equal(desk: Desk) -> None:
    """T#ρ₀ for both metrics and PD-Adam, and the potential, with equal weights."""
    _fifty(desk, "equal")


def fifty_dimensions_unequal(desk: Desk) -> None:
    """The same with unequal weights."""
    _fifty(desk, "unequal")


def _fifty(desk: Desk, weights: str) -> None:
    entries = _entries(desk)
    seconds = _seconds(desk, 60.0, 10_000.0)
    laps = desk.race(_pair("ot-mixture", 50, weights=weights), entries, weights, seconds=seconds)
    figure = Figure(figsize=(4.2 * (len(entries) + 1), 4.2), layout="constrained")
    panels = figure.subplots(1, len(entries) + 1)
    for axes, lap in zip(panels, laps, strict=False):
        draw_map(axes, lap.solution, ACTIVE[50], title=lap.entry.label)
    if laps:
        best = laps[0].solution
        draw_potential(panels[-1], best, ACTIVE[50], square(samples(best)[1], ACTIVE[50]))
    desk.picture(f"ma50d-{weights}", figure)


def on_the_way(desk: Desk) -> None:
    """T#ρ₀ at four moments of every run, 50-D with unequal weights."""
    entries, pair = _entries(desk), _pair("ot-mixture", 50, weights="unequal")
    seconds = _seconds(desk, 40.0, 10_000.0)
    figure = Figure(figsize=(3.6 * SNAPSHOTS, 3.6 * len(entries)), layout="constrained")
    for row, entry in zip(figure.subplots(len(entries), SNAPSHOTS), entries, strict=True):
        album = Album(seconds)
        keep = Keep(between=album.see)
        laps = desk.race(pair, [entry], entry.label.replace(", ", "-"), seconds=seconds, keep=keep)
        for axes, (at, fields) in zip(row, album.kept, strict=False):
            draw_map(axes, replace(laps[0].solution, fields=fields), ACTIVE[50], title=f"{entry.label}, {at:.0f} s")
    desk.picture("ma50d-steps", figure)


class Album:
    """Keeps T and φ at a few moments of a run of given seconds."""

    def __init__(self, seconds: float):
        self.seconds = seconds
        self.kept: list[tuple[float, Fields]] = []

    def see(self, outcome: Outcome) -> None:
        if outcome.seconds >= 0.97 * self.seconds * (len(self.kept) + 1) / SNAPSHOTS:
            self.kept.append((outcome.seconds, outcome.state.fields))


def _entries(desk: Desk, metrics: Sequence[str] = ("identity", "gradient")) -> list[Entry]:
    small = SMALL if desk.quick else {}
    names = {"identity": "Id", "gradient": "∇"}
    return [
        Entry("NPDG, default"),
        *(Entry(f"NPDG, paper, {names[m]}", preset="paper", settings={**small, "metric": m}) for m in metrics),
        Entry("PD-Adam, paper", "pd-adam", "paper", small),
    ]


def _seconds(desk: Desk, quick: float, paper: float) -> float:
    if desk.quick:
        desk.say(f"scaled down: {quick:g} s a run instead of {paper:g} s; the paper's networks and samples {SMALL}")
    return quick if desk.quick else paper


def _pair(problem: str, dim: int | None = None, **options: str) -> Pair:
    card = find(problem)
    return card.build(card.default_dim if dim is None else dim, **options)

"""Figures of Sec. 5.5 and its appendix: optimal transport and the Monge–Ampère equation."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
from matplotlib.figure import Figure

from npdg.loop import Outcome
from npdg.pair import Pair
from npdg.problems import find
from npdg.problems.transport import ACTIVE
from npdg.reproduce.desk import Desk
from npdg.runs.race import Entry
from npdg.runs.transport_plots import draw_arrows, draw_map, draw_potential, samples, square
from npdg.saddle import Fields
from npdg.stages import Keep
from npdg.transportation import TransportSolution, carry

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
        solutions = _race(desk, pair, _entries(desk), _seconds(desk, seconds, paper_seconds), problem)
        for label, solution in solutions.items():
            measured = [r for r in solution.history if r.errors]
            axes.semilogy([r.seconds for r in measured], [r.errors["map_l2"] for r in measured], label=label)
        axes.set(xlabel="training seconds", ylabel="$L^2(\\rho_0)$ error of the map", title=f"{pair.dim}-D")
        axes.grid(alpha=0.3, which="both")
        axes.legend(fontsize=8)
        if problem == "ot-gaussian" and "NPDG, default" in solutions:
            draw_arrows(panels[2], solutions["NPDG, default"], (0, 1))
            draw_arrows(panels[3], solutions["NPDG, default"], (3, 4))
    desk.picture("ma1", figure)


def ten_dimensions(desk: Desk) -> None:
    """T#ρ₀ with segments of the map, for both weights, by NPDG (ours, the paper's) and by PD-Adam."""
    seconds = _seconds(desk, 60.0, 3000.0)
    entries = _entries(desk, metrics=("identity",))
    figure = Figure(figsize=(4.2 * len(entries), 8.4), layout="constrained")
    for row, weights in zip(figure.subplots(2, len(entries)), ("equal", "unequal"), strict=True):
        solutions = _race(desk, _pair("ot-mixture", 10, weights=weights), entries, seconds, weights)
        for axes, (label, solution) in zip(row, solutions.items(), strict=False):
            draw_map(axes, solution, ACTIVE[10], title=f"{label}, {weights}")
    desk.picture("ma10d", figure)


def fifty_dimensions_equal(desk: Desk) -> None:
    """T#ρ₀ for both metrics and PD-Adam, and the potential, with equal weights."""
    _fifty(desk, "equal")


def fifty_dimensions_unequal(desk: Desk) -> None:
    """The same with unequal weights."""
    _fifty(desk, "unequal")


def _fifty(desk: Desk, weights: str) -> None:
    entries = _entries(desk)
    solutions = _race(desk, _pair("ot-mixture", 50, weights=weights), entries, _seconds(desk, 60.0, 10_000.0), weights)
    figure = Figure(figsize=(4.2 * (len(entries) + 1), 4.2), layout="constrained")
    panels = figure.subplots(1, len(entries) + 1)
    for axes, (label, solution) in zip(panels, solutions.items(), strict=False):
        draw_map(axes, solution, ACTIVE[50], title=label)
    if solutions:
        best = next(iter(solutions.values()))
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
        solutions = _race(desk, pair, [entry], seconds, entry.label.replace(", ", "-"), keep=keep)
        for axes, (at, fields) in zip(row, album.kept, strict=False):
            draw_map(
                axes, replace(solutions[entry.label], fields=fields), ACTIVE[50], title=f"{entry.label}, {at:.0f} s"
            )
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


def _race(
    desk: Desk, pair: Pair, entries: Sequence[Entry], seconds: float, name: str, **hooks: Any
) -> dict[str, TransportSolution]:
    """Run the entries one after another; what was measured goes to NAME.csv."""
    solutions: dict[str, TransportSolution] = {}
    for entry in entries:
        if desk.should_stop():
            break
        jax.clear_caches()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a divergence is a result like any other
            solution = carry(
                pair,
                entry.method,
                seconds=seconds,
                preset=entry.preset,
                should_stop=desk.should_stop,
                **hooks,
                **entry.settings,
            )
        solutions[entry.label] = solution
        score = solution.score()
        end = " (diverged)" if solution.stop_reason == "diverged" else ""
        desk.say(
            f"{pair.name} {pair.dim}-D {pair.options or ''}, {entry.label}: L² error {score['map_l2']:.2e}, UVP "
            f"{score['uvp']:.2g} %, sliced W₂ {score['sliced_w2']:.2e} (floor {score['sliced_w2_floor']:.2e}) after "
            f"{solution.seconds:.1f} s and {solution.steps} steps{end}"
        )
    rows = [
        {"entry": label, "step": r.step, "seconds": r.seconds, **r.errors}
        for label, solution in solutions.items()
        for r in solution.history
        if r.errors
    ]
    desk.csv(name, rows)
    return solutions

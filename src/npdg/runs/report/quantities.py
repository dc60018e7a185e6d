"""What was measured as a run went on, as curves; and the charts of one run or of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from npdg.runs.reading import Run
from npdg.runs.report.page import Chart, Curve, Part

LABELS = {
    "rel_l2": "relative L² error",
    "rel_h1": "relative H¹ error",
    "error_estimate": "relative H¹ error, estimated",
    "rmse": "root mean square error",
    "map_l2": "L² error of the map",
    "uvp": "unexplained variance of the map, in percent",
    "cos": "cosine to the true map",
    "distance": "Wasserstein distance W₂",
    "cost": "cost of the map",
    "dual_value": "dual value",
    "gap": "cost less dual value",
    "sliced_w2": "sliced W₂ of the image to the target",
    "sliced_w2_floor": "sliced W₂ of two samples of the target",
    "energy_distance": "energy distance of the image to the target",
    "energy_distance_floor": "energy distance of two samples of the target",
    "monge_ampere": "residual of the Monge–Ampère equation",
    "mode_mass": "largest relative error of a mode's mass",
    "time_steps": "time steps",
    "steps": "training steps",
    "seconds": "training seconds",
    "compile_seconds": "seconds of compilation",
    "precision": "precision",
    "stop_reason": "stopped by",
    "energy": "energy",
    "residual": "root mean square residual",
    "rms_residual": "root mean square residual",
}
PLAYERS = {"phi": "φ", "psi": "ψ"}
# What a chart of one run shows: its title, and whether its vertical axis is logarithmic.
GROUPS = {
    "error": ("Errors", True),
    "value": ("Distance, cost and dual value of the map, its cosine to the true one", False),
    "rms": ("Residual", True),
    "term": ("Terms of the functional, by size", True),
    "iterations": ("Iterations of the linear solves", False),
    "residual": ("Relative residual of the linear solves", True),
    "energy": ("Energy", False),
    "remainder": ("Residual of the time steps", True),
    "steps": ("Training steps of a time step", False),
}
KRYLOV = ("iterations", "residual")
PROGRESS = tuple(group for group in GROUPS if group not in KRYLOV)


@dataclass(frozen=True)
class Quantity:
    """Something that was measured as a run went on: the group of its chart, its name and its curve."""

    group: str
    name: str
    curve: Curve


class Column(NamedTuple):
    """A column of metrics.csv: the group of its chart, what it is of, and its own name."""

    group: str
    name: str
    column: str


def measured(run: Run) -> list[Quantity]:
    """All that metrics.csv holds, as curves by the name of their chart."""
    x, found = LAYOUTS[run.kind](run.columns)
    quantities = []
    for group, name, column in found:
        y = run.columns[column]
        if any(value is not None for value in y):
            quantities.append(Quantity(group, name, Curve(_named(group, name), x, y)))
    return quantities


Columns = dict[str, list[float | None]]


def _by_step(columns: Columns) -> tuple[dict[str, list[float | None]], list[Column]]:
    """One row a training step."""
    x = {"seconds": columns.get("seconds", []), "steps": columns.get("step", [])}
    return x, [_column(name) for name in columns if name not in ("step", "seconds") and not name.startswith("status ")]


def _by_time(columns: Columns) -> tuple[dict[str, list[float | None]], list[Column]]:
    """One row a time step."""
    seconds = list(np.cumsum([value or 0.0 for value in columns.get("seconds", [])]))
    x = {"time": columns.get("time", []), "training seconds": seconds}
    groups = {"rmse": "error", "energy": "energy", "residual": "remainder", "steps": "steps"}
    return x, [Column(groups[name], name, name) for name in groups if name in columns]


LAYOUTS = {"equation": _by_step, "evolution": _by_time, "transport": _by_step}


def _named(group: str, name: str) -> str:
    return PLAYERS.get(name, name) if group in ("term", *KRYLOV) else LABELS.get(name, name)


def _column(column: str) -> Column:
    group, _, name = column.partition(" ")
    if name and group in ("term", *KRYLOV):
        return Column(group, name, column)
    if column == "rms_residual":
        return Column("rms", column, column)
    return Column("value" if column in ("cost", "dual_value", "distance", "cos") else "error", column, column)


def charts(quantities: Sequence[Quantity], groups: Sequence[str]) -> list[Part]:
    """One chart for each group, with all its quantities."""
    drawn: list[Part] = []
    for group in groups:
        title, log = GROUPS[group]
        if curves := [q.curve for q in quantities if q.group == group]:
            drawn.append(Chart(title, curves, log))
    return drawn


def compared(quantities: dict[str, list[Quantity]], groups: Sequence[str]) -> list[Part]:
    """One chart for each quantity, with all the runs, whose names are the keys."""
    drawn: list[Part] = []
    for group in groups:
        title, log = GROUPS[group]
        names = dict.fromkeys(q.name for found in quantities.values() for q in found if q.group == group)
        for name in names:
            wanted = (group, name)
            lines = {
                label: q.curve for label, found in quantities.items() for q in found if (q.group, q.name) == wanted
            }
            if group in KRYLOV:  # a method without linear solves has none to show
                lines = {run: curve for run, curve in lines.items() if any(curve.y)}
            if not lines:
                continue
            axes = next(iter(lines.values())).x.keys()
            # A run has one colour in all charts.
            shades = {run: number for number, run in enumerate(quantities)}
            curves = [Curve(run, line.x, line.y, shades[run]) for run, line in lines.items() if line.x.keys() == axes]
            what = (
                _named(group, name)
                if group == "error"
                else f"{title}: {_named(group, name)}"
                if len(names) > 1
                else title
            )
            drawn.append(Chart(what[0].upper() + what[1:], curves, log))
    return drawn

"""The page of a run, or of several compared, made from the files they left."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from npdg.catalogue import CARDS
from npdg.catalogue.card import Card
from npdg.errors import InputError
from npdg.runs.files import write_whole
from npdg.runs.reading import Run
from npdg.runs.report.mathml import mathml
from npdg.runs.report.page import Bars, Code, Page, Part, Section, Table
from npdg.runs.report.quantities import KRYLOV, LABELS, PROGRESS, charts, compared, measured
from npdg.runs.report.views import solution_sections

REPORT = "report.html"
# How a problem that is not of the catalogue is written, by its kind.
FORMULAS = {
    "equation": r"-\div \, \flux(u) + \reaction(u) = \source",
    "evolution": r"\frac{∂u}{∂t} -\div \, \flux(u) + \reaction(u) = \source",
    "transport": r"\sup_φ \inf_T E_{ρ_0}[\frac{1}{2} |x - T(x)|^2 + φ(T(x))] - E_{ρ_1}[φ(y)]",
}
SLICED = ("equation", "evolution")  # kinds whose results have slices
BY_TIME = ("energy", "residual")  # figures of a march alone


def write(run: Run) -> Path:
    """(Re)write the page of a run in its directory."""
    path = run.directory / REPORT
    write_whole(path, page_of(run).html())
    return path


def card_of(run: Run) -> Card | None:
    """What the catalogue knows of a run's problem; nothing of one that is the user's own."""
    return None if run.run.get("own") else CARDS.get(run.run["problem"])


def incomplete(run: Run) -> bool:
    """Whether slices or timing are missing that can be made from the saved solution."""
    missing = "timing" not in run.notes or (run.slices is None and run.kind in SLICED)
    return run.finished and card_of(run) is not None and missing


def page_of(run: Run) -> Page:
    """The page of one run."""
    quantities = measured(run)
    sections = [
        Section("As it went", charts(quantities, PROGRESS)),
        *solution_sections(run),
        Section(
            "Linear solves",
            charts(quantities, KRYLOV) if any(any(q.curve.y) for q in quantities if q.group == "iterations") else [],
            "Iterations of the Gram solves of each player, and how far they went; a dense solve counts as one.",
        ),
        Section("Where the time went", _timing(run), _TIMING_NOTE),
        Section("Settings", _columns_of(run.options | run.settings, 3)),
        Section("Environment", _columns_of(dict(_environment(run)), 2)),
        Section("Repeat it", [Code(run.notes["command"])] if run.notes.get("command") else []),
    ]
    detail = str(run.result.get("detail") or "")
    alert = detail if run.finished else "This run has not come to its end; what is shown is how far it came."
    return Page(_title(run), _subtitle(run), _equations(run), _figures(run), [s for s in sections if s.parts], alert)


def comparison(runs: Sequence[Run]) -> Page:
    """The page of several runs: the same quantities in the same charts, what differs between them in tables."""
    labels = _labels(runs)
    quantities = {label: measured(run) for label, run in zip(labels, runs, strict=True)}
    titles = list(dict.fromkeys(_title(run) for run in runs))
    equations = list(dict.fromkeys(line for run in runs for line in _equations(run)))
    keys = [key for key in LABELS if any(_figure(run, key) is not None for run in runs)]
    rows = [[label, *(_figure(run, key) for key in keys)] for label, run in zip(labels, runs, strict=True)]
    differing = lambda of: _differing(labels, [of(run) for run in runs])
    pictures = [
        Section(f"{section.title}: {label}", section.parts)
        for label, run in zip(labels, runs, strict=True)
        for section in solution_sections(run)
    ]
    times = [part for label, run in zip(labels, runs, strict=True) for part in _timing(run, label)]
    commands = [run.notes["command"] for run in runs if run.notes.get("command")]
    sections = [
        Section("Results", [Table(rows, ("run", *(LABELS[key] for key in keys)))]),
        Section("As they went", compared(quantities, PROGRESS)),
        *pictures,
        Section("Linear solves", compared(quantities, KRYLOV)),
        Section("Where the time went", times, _TIMING_NOTE),
        Section("Settings that differ", differing(lambda run: run.run | run.options | run.settings)),
        Section("Environments that differ", differing(lambda run: dict(_environment(run)))),
        Section("Repeat them", [Code("\n".join(commands))] if commands else []),
    ]
    title = titles[0] if len(titles) == 1 else f"{len(titles)} problems"
    return Page(title, f"{len(runs)} runs compared", equations, {}, [s for s in sections if s.parts])


_TIMING_NOTE = (
    "Compilation and evaluation are not counted as training. For problems of the catalogue, `npdg report RUN` adds "
    "where the time of a step goes: samples and gradients are timed apart, on one step each with the sizes of this "
    "run; what is left of a mean step is the Gram solves and the updates."
)


def _timing(run: Run, label: str = "") -> list[Part]:
    timing, parts = run.notes.get("timing"), []
    name = f"{label}: " if label else ""
    solving = any(any(values) for column, values in run.columns.items() if column.startswith("iterations "))
    rest = "Gram solves and updates" if solving or run.kind == "evolution" else "updates and the rest"
    if timing is not None and all(timing.get(key) is not None for key in ("sampling", "gradients", "solves")):
        shares = {
            "sampling": 1e3 * timing["sampling"],
            "gradients": 1e3 * timing["gradients"],
            rest: 1e3 * timing["solves"],
        }
        parts.append(Bars(f"{name}one training step", shares, "ms"))
    if run.finished and not label:
        evaluations = sum(value is not None for value in run.columns.get("rel_l2", run.columns.get("distance", [])))
        whole = {"training": run.result.get("seconds") or 0.0, "compilation": run.result.get("compile_seconds") or 0.0}
        if isinstance(timing, dict) and "evaluation" in timing:
            whole["evaluation"] = evaluations * timing["evaluation"]
        parts.append(Bars("the whole run", whole, "s"))
    return parts


def _figures(run: Run) -> dict[str, Any]:
    named = LABELS | {"rmse": "largest root mean square error", "energy": "energy at the end"}
    found = {named[key]: _figure(run, key) for key in LABELS}
    return {name: value for name, value in found.items() if value is not None}


def _figure(run: Run, key: str) -> Any:
    """One of the key figures; where a run has not ended, the last that was measured."""
    value = run.result.get(key)
    if isinstance(value, dict):  # by time: the worst error, and the last energy
        numbers = [number for number in value.values() if isinstance(number, (int, float))]
        value = (max(numbers) if key == "rmse" else numbers[-1]) if numbers else None
    if value is None and not run.finished:
        column = [v for v in run.columns.get({"steps": "step"}.get(key, key), []) if v is not None]
        value = column[-1] if column else None
        return int(value) if key == "steps" and value is not None else value
    return value if key not in BY_TIME or run.kind == "evolution" else None


def _title(run: Run) -> str:
    card = card_of(run)
    name = card.title[0].upper() + card.title[1:] if card is not None else str(run.run["problem"])
    return f"{name}, {run.run['dim']}-D" if card is None or card.kind == "equation" else name


def _subtitle(run: Run) -> str:
    parts = [f"method {run.run['method']}", f"preset {run.run.get('preset')}", f"seed {run.run.get('seed')}"]
    started = str(run.environment.get("started", ""))[:16].replace("T", " ")
    return " · ".join([*parts, *([started] if started else []), run.directory.name])


def _equations(run: Run) -> list[str]:
    """The lines of the equation: those of its card, in words, or the general form."""
    card = card_of(run)
    try:
        if card is not None and card.formulas is not None:
            return [mathml(line) for line in card.formulas(run.run["dim"], **run.options)]
    except (TypeError, KeyError, ValueError) as error:
        raise InputError(f"run: {run.directory} is damaged: its options do not fit: {error}.") from None
    if card is not None:
        return [f'<span class="words">{html.escape(card.equation)}</span>']
    return [mathml(FORMULAS[run.kind])]


def _labels(runs: Sequence[Run]) -> list[str]:
    """The shortest names that tell the runs apart: the method, with the seed, or the directory."""
    ways = (
        lambda run: run.run["method"],
        lambda run: f"{run.run['method']}, seed {run.run.get('seed')}",
        lambda run: run.directory.name,
        lambda run: str(run.directory),
    )
    for way in ways:
        labels = [str(way(run)) for run in runs]
        if len(set(labels)) == len(labels):
            return labels
    raise InputError("run: a directory was given twice; give each run once.")


def _environment(run: Run) -> list[tuple[str, Any]]:
    found = dict(run.environment)
    packages = found.pop("packages", None)
    rows = [(key, ", ".join(map(str, value)) if isinstance(value, list) else value) for key, value in found.items()]
    return rows + list(packages.items() if isinstance(packages, dict) else [])


def _columns_of(values: dict[str, Any], count: int) -> list[Part]:
    rows = list(values.items())
    size = -(-len(rows) // count)
    return [Table(rows[k : k + size]) for k in range(0, len(rows), size)] if rows else []


def _differing(labels: list[str], tables: list[dict[str, Any]]) -> list[Part]:
    keys = dict.fromkeys(key for table in tables for key in table)
    rows = [[key, *(table.get(key) for table in tables)] for key in keys]
    rows = [row for row in rows if len({str(value) for value in row[1:]}) > 1]
    return [Table(rows, ("", *labels))] if rows else []

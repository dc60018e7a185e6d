"""A run directory as its files tell it, read without jax; whatever is damaged is named in one sentence."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from npdg.errors import InputError
from npdg.runs.export.grids import Slices, read_slices
from npdg.runs.files import read_bytes
from npdg.runs.report.page import Picture
from npdg.runs.tables import read_metrics
from npdg.runs.untrusted import damaged, read_json, read_toml, typed

# The names of the files, which modules write that import jax.
CONFIG, RESULT, METRICS, ENVIRONMENT, NOTES = "config.toml", "result.json", "metrics.csv", "env.json", "report.json"
ARRAYS, SAMPLES = "solution.npz", "samples.npz"
FIGURES, SLICES = "figures", "slices.npz"
KINDS = ("equation", "evolution", "transport")
WORDS = ("stop_reason", "stage")  # columns of metrics.csv that are no numbers
PNG, PNG_END = b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"
# What is relied on in result.json.
RESULT_KINDS = {
    **dict.fromkeys(("stop_reason", "detail", "precision"), str),
    **dict.fromkeys(("seconds", "compile_seconds", "rel_l2", "rel_h1", "error_estimate"), (int, float)),
    "steps": int,
    "tried": list,
}


@dataclass(frozen=True)
class Run:
    """What a run left behind. `result` is empty if it did not come to its end, `notes` what only a report needs."""

    directory: Path
    run: dict[str, Any]
    options: dict[str, Any]
    settings: dict[str, Any]
    environment: dict[str, Any]
    result: dict[str, Any]
    notes: dict[str, Any]
    columns: dict[str, list[float | None]]
    slices: Slices | None
    pictures: dict[str, Picture]

    @property
    def kind(self) -> str:
        """equation, evolution or transport."""
        return kind_of(self.run, {**self.columns, **self.result})

    @property
    def finished(self) -> bool:
        return bool(self.result)


def kind_of(run: dict[str, Any], measured: dict[str, Any]) -> str:
    """The kind of problem of a run; where an earlier version did not write it down, by what was measured."""
    if run.get("kind"):
        return str(run["kind"])
    if measured.keys() & {"time_steps", "time"}:
        return "evolution"
    return "transport" if measured.keys() & {"map_l2", "sliced_w2"} else "equation"


class Config(NamedTuple):
    """The tables of a run's config.toml."""

    run: dict[str, Any]
    options: dict[str, Any]
    settings: dict[str, Any]


def read_config(directory: Path) -> Config:
    """What a run was asked for, or an `InputError` that says what is missing or damaged."""
    path = directory / CONFIG
    if not os.path.lexists(path):
        what = "holds no config.toml" if directory.exists() else "does not exist"
        raise InputError(f"run: {str(directory)!r} {what}; give a directory that `npdg solve` made.")
    tables = read_toml(path)
    for name in ("run", "options", "settings"):
        if not isinstance(tables.get(name, {}), dict):
            raise damaged(path, f"{name} is no table")
    run = tables.get("run", {})
    if not all(isinstance(run.get(key), kind) for key, kind in (("problem", str), ("dim", int), ("method", str))):
        raise damaged(path, "it has no table [run] with a problem, a dim and a method")
    if run.get("kind") not in (None, *KINDS):
        raise damaged(path, f"its kind {run['kind']!r} is none of {', '.join(KINDS)}")
    return Config(run, tables.get("options", {}), tables.get("settings", {}))


def read_result(directory: Path) -> dict[str, Any]:
    """The figures of result.json, of the kinds that are relied on; empty if the run has not come to its end."""
    path = directory / RESULT
    found = read_json(path)
    typed(path, found, RESULT_KINDS)
    if found.get("precision") not in (None, "float32", "float64"):
        raise damaged(path, "its precision is neither float32 nor float64")
    return found


def read_run(directory: Path) -> Run:
    """All the files of a run, or an `InputError` that says which one is missing or damaged.

    Pictures and slices, which can be made again, are left out where they are damaged.
    """
    config = read_config(directory)
    return Run(
        directory,
        *config,
        environment=_environment(directory / ENVIRONMENT),
        result=read_result(directory),
        notes=read_notes(directory),
        columns=_columns(directory / METRICS),
        slices=_slices(directory / FIGURES / SLICES),
        pictures=_pictures(directory / FIGURES),
    )


def read_notes(directory: Path) -> dict[str, Any]:
    """What only a report needs."""
    path = directory / NOTES
    found = read_json(path)
    typed(path, found, {"command": str, "timing": dict})
    typed(path, found.get("timing") or {}, dict.fromkeys(found.get("timing") or {}, (int, float)))
    return found


def _environment(path: Path) -> dict[str, Any]:
    found = read_json(path)
    typed(path, found, {"started": str, "packages": dict})
    return found


def _slices(path: Path) -> Slices | None:
    try:
        return read_slices(path) if os.path.lexists(path) else None
    except InputError:
        return None


def _columns(path: Path) -> dict[str, list[float | None]]:
    """The columns of numbers, with None where nothing was measured; columns of words are left out."""
    header, rows = read_metrics(path)
    columns: dict[str, list[float | None]] = {}
    for name in header:
        if name in WORDS:
            continue
        try:
            columns[name] = [float(row[name]) if row[name] else None for row in rows]
        except ValueError:
            raise damaged(path, f"the column {name!r} holds something that is no number") from None
    return columns


def _pictures(directory: Path) -> dict[str, Picture]:
    """Pictures by name. NAME.dark.png is NAME.png for a dark page; what the page draws itself is left out."""
    found: dict[str, Picture] = {}
    for path in sorted(directory.glob("*.png")):
        if path.stem in ("history", "slice", "march") or path.name.endswith(".dark.png"):
            continue
        light, dark = _png(path), _png(path.with_suffix(".dark.png"))
        if light is not None:
            found[path.stem] = Picture(path.stem, light, dark)
    return found


def _png(path: Path) -> bytes | None:
    """A picture that is whole, or nothing."""
    try:
        data = read_bytes(path)
    except (FileNotFoundError, InputError):
        return None
    return data if data.startswith(PNG) and data.endswith(PNG_END) else None

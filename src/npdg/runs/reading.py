"""A run directory as its files tell it, read without jax; whatever is damaged is named in one sentence."""

from __future__ import annotations

import csv
import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npdg.errors import InputError
from npdg.runs.export.grids import Slices, read_slices
from npdg.runs.report.page import Picture

# The names of the files, which modules write that import jax.
CONFIG, RESULT, METRICS, ENVIRONMENT, NOTES = "config.toml", "result.json", "metrics.csv", "env.json", "report.json"
ARRAYS, SAMPLES = "solution.npz", "samples.npz"
FIGURES, SLICES = "figures", "slices.npz"
KINDS = ("equation", "evolution", "transport")
WORDS = ("stop_reason", "stage")  # columns of metrics.csv that are no numbers
PNG = b"\x89PNG\r\n\x1a\n"


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


def read_run(directory: Path) -> Run:
    """All the files of a run, or an `InputError` that says which one is missing or damaged."""
    config = directory / CONFIG
    if not config.is_file():
        what = "holds no config.toml" if directory.exists() else "does not exist"
        raise InputError(f"run: {str(directory)!r} {what}; give a directory that `npdg solve` made.")
    try:
        tables = tomllib.loads(config.read_text("utf-8"))
    except ValueError as error:
        raise _damaged(config, error) from None
    run = _table(config, tables, "run")
    if not all(isinstance(run.get(key), kind) for key, kind in (("problem", str), ("dim", int), ("method", str))):
        raise _damaged(config, "it has no table [run] with a problem, a dim and a method")
    if run.get("kind") not in (None, *KINDS):
        raise _damaged(config, f"its kind {run['kind']!r} is none of {', '.join(KINDS)}")
    slices = directory / FIGURES / SLICES
    return Run(
        directory,
        run=run,
        options=_table(config, tables, "options"),
        settings=_table(config, tables, "settings"),
        environment=_json(directory / ENVIRONMENT),
        result=_json(directory / RESULT),
        notes=read_notes(directory),
        columns=_columns(directory / METRICS),
        slices=read_slices(slices) if slices.is_file() else None,
        pictures=_pictures(directory / FIGURES),
    )


def read_notes(directory: Path) -> dict[str, Any]:
    """What only a report needs."""
    return _json(directory / NOTES)


def _damaged(path: Path, why: object) -> InputError:
    return InputError(f"run: {path} is damaged: {why}.")


def _table(path: Path, tables: dict[str, Any], name: str) -> dict[str, Any]:
    found = tables.get(name, {})
    if not isinstance(found, dict):
        raise _damaged(path, f"{name} is no table")
    return found


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise _damaged(path, error) from None
    if not isinstance(found, dict):
        raise _damaged(path, "it is no JSON object")
    return found


def _columns(path: Path) -> dict[str, list[float | None]]:
    """The columns of numbers, with None where nothing was measured; columns of words are left out."""
    if not path.is_file():
        return {}
    try:
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = list(csv.reader(file)) or [[]]
    except (ValueError, csv.Error) as error:
        raise _damaged(path, error) from None
    if any(len(row) != len(header) for row in rows):
        number = next(k for k, row in enumerate(rows, start=2) if len(row) != len(header))
        raise _damaged(path, f"line {number} has not {len(header)} entries")
    columns: dict[str, list[float | None]] = {}
    for k, name in enumerate(header):
        if name in WORDS:
            continue
        try:
            columns[name] = [float(row[k]) if row[k] else None for row in rows]
        except ValueError:
            raise _damaged(path, f"the column {name!r} holds something that is no number") from None
    if rows and not columns.keys() & {"step", "time"}:
        raise _damaged(path, "it has neither a column 'step' nor 'time'")
    return columns


def _pictures(directory: Path) -> dict[str, Picture]:
    """Pictures by name. NAME.dark.png is NAME.png for a dark page; what the page draws itself is left out."""
    found: dict[str, Picture] = {}
    for path in sorted(directory.glob("*.png")):
        if path.stem in ("history", "slice", "march") or path.name.endswith(".dark.png"):
            continue
        dark = path.with_suffix(".dark.png")
        found[path.stem] = Picture(path.stem, _png(path), _png(dark) if dark.is_file() else None)
    return found


def _png(path: Path) -> bytes:
    data = path.read_bytes()
    if not data.startswith(PNG):
        raise _damaged(path, "it is no PNG")
    return data

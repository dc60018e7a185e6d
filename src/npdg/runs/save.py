"""Results as directories: plain text and arrays, no pickle, never overwritten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from npdg.errors import InputError
from npdg.measures.empirical import Empirical
from npdg.results.arrays import to_arrays
from npdg.results.base import Result
from npdg.runs.environment import environment
from npdg.runs.files import packed, plain, write_json, write_npz, write_whole
from npdg.runs.reading import ARRAYS, CONFIG, ENVIRONMENT, METRICS, RESULT, SAMPLES
from npdg.runs.request import to_toml
from npdg.runs.seals import announce, seals
from npdg.runs.tables import add_columns, append_rows
from npdg.training.records import Report


def new_directory(path: Path | None, stem: str) -> Path:
    """Make a directory that did not exist: `path`, or the first free runs/STEM-N."""
    if path is not None:
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            raise InputError(f"out: {str(path)!r} exists already and is never overwritten; give a new name.") from None
        return path
    number = 1
    while True:
        candidate = Path("runs") / f"{stem}-{number}"
        try:
            candidate.mkdir(parents=True)
            return candidate
        except FileExistsError:
            number += 1


class MetricsFile:
    """A metrics.csv that grows line by line and is complete after every line."""

    def __init__(self, directory: Path):
        self.path = directory / METRICS
        self.columns: list[str] = []

    def __call__(self, number: int, report: Report) -> None:
        row = report.row()
        if not row.keys() <= set(self.columns):  # the stages of a run may report different terms
            self.columns = add_columns(self.path, list(row))
        append_rows(self.path, self.columns, [row])


def save(result: Result, path: Path) -> Path:
    """Write a result to a new directory."""
    directory, problem = new_directory(path, ""), result.problem
    run = {
        "problem": problem.name,
        "kind": problem.kind,
        "own": None if problem.origin is not None else True,
        "dim": problem.dim,
        "method": result.method,
        "preset": result.preset,
        "seed": result.seed,
    }
    write_config(directory, run, dict(problem.options), result.settings.flat())
    write_json(directory / ENVIRONMENT, {**environment(), "precision": result.settings.precision})
    write_samples(directory, problem)
    metrics = MetricsFile(directory)
    for report in result.reports():
        metrics(report.number, report)
    write_result(directory, result)
    return directory


def write_config(directory: Path, run: dict[str, Any], options: dict[str, Any], settings: dict[str, Any]) -> None:
    """The configuration of a run, under the flat names of its settings."""
    write_whole(directory / CONFIG, to_toml({"run": run, "options": options, "settings": settings}))


def write_result(directory: Path, result: Result, *, brief: bool = False) -> dict[str, Any]:
    """The arrays of a result and its figures; returns the latter."""
    arrays = packed(to_arrays(result.arrays()))
    announce(directory, arrays)
    write_whole(directory / ARRAYS, arrays)
    figures = plain({**result.figures(brief=brief), "run_dir": str(directory), "seals": seals(directory)})
    write_json(directory / RESULT, figures)
    return figures


def write_samples(directory: Path, problem: Any) -> None:
    """The arrays of measures that are known by nothing else."""
    sides = ("source", "target")
    measures = {side: getattr(problem, side, None) for side in sides}
    arrays = {side: measure.given for side, measure in measures.items() if isinstance(measure, Empirical)}
    if arrays:
        write_npz(directory / SAMPLES, arrays)

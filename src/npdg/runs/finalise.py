"""What a run leaves for its report: first its command, in the end pictures, slices, a timing and the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from npdg.results.base import Result
from npdg.runs.export.slices import slices_of
from npdg.runs.figures.draw import write_figures
from npdg.runs.files import write_json
from npdg.runs.reading import FIGURES, NOTES, SLICES, read_run
from npdg.runs.report import build
from npdg.runs.timing import timing
from npdg.training.stopping import StopReason


def begin(directory: Path, command: str) -> None:
    """Note the command that repeats the run."""
    _note(directory, {"command": command})


def finalise(directory: Path, result: Result) -> Path:
    """Write everything that only a report needs, and the report itself; returns its path."""
    figures = directory / FIGURES
    figures.mkdir(exist_ok=True)
    write_figures(result, figures)
    slices = slices_of(result)
    if slices is not None:
        slices.write(figures / SLICES)
    # Who interrupts a run wants it to end; `npdg report` measures then.
    _note(directory, {} if result.stop_reason is StopReason.INTERRUPTED else {"timing": timing(result)})
    return build.write(read_run(directory))


def _note(directory: Path, notes: dict[str, Any]) -> None:
    write_json(directory / NOTES, {**read_run(directory).notes, **notes})

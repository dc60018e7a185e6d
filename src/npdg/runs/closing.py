"""What a run leaves for its report when it ends: pictures, slices, a timing of one step, and the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npdg.runs import plots, report, time_plots, timing
from npdg.runs.grids import slices_in_time, slices_of
from npdg.runs.reading import FIGURES, NOTES, SLICES, Run, read_run
from npdg.runs.saved import open_saved
from npdg.trajectory import Trajectory

if TYPE_CHECKING:
    from npdg.solution import Solution


def close(directory: Path, solved: Solution | Trajectory, command: str | None) -> Path:
    """Write everything that only a report needs, and the report itself; returns its path."""
    figures = directory / FIGURES
    figures.mkdir(exist_ok=True)
    if isinstance(solved, Trajectory):
        plots.finish(time_plots.trajectory_figure(solved), figures / "march.png")
        slices_in_time(solved).write(figures / SLICES)
        measure = lambda: timing.of_trajectory(solved)
    else:
        plots.finish(plots.history_figure([solved]), figures / "history.png")
        plots.finish(plots.slice_figure(solved), figures / "slice.png")
        slices_of(solved).write(figures / SLICES)
        measure = lambda: timing.of_solution(solved)
    notes: dict[str, Any] = {"command": command} if command else {}
    if solved.stop_reason != "interrupted":  # who interrupts a run wants it to end; `npdg report` measures then
        notes["timing"] = measure()
    return finish(directory, notes)


def finish(directory: Path, notes: dict[str, Any]) -> Path:
    """Write the notes (`command`, `timing`, and `formulas` if the equation has its own), then the page."""
    (directory / NOTES).write_text(json.dumps(notes, indent=2) + "\n")
    return report.write(read_run(directory))


def completed(run: Run) -> Run:
    """A run with what its report needs, made now if it is missing and can be."""
    if not report.incomplete(run):
        return run
    close(run.directory, open_saved(run.directory, None), run.notes.get("command"))
    return read_run(run.directory)

"""What a run leaves for its report: its command when it begins; slices, a timing and the page when it ends."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from npdg.runs import plots, report, time_plots, timing, transport_plots
from npdg.runs.files import write_json
from npdg.runs.grids import slices_in_time, slices_of
from npdg.runs.reading import FIGURES, NOTES, SLICES, Run, read_run
from npdg.runs.saved import open_saved
from npdg.trajectory import Trajectory
from npdg.transportation import TransportSolution

if TYPE_CHECKING:
    from npdg.solution import Solution


def begin(directory: Path, command: str) -> None:
    """Note the command that repeats the run."""
    _note(directory, {"command": command})


def close(directory: Path, solved: Solution | Trajectory | TransportSolution) -> Path:
    """Write everything that only a report needs, and the report itself; returns its path."""
    figures = directory / FIGURES
    figures.mkdir(exist_ok=True)
    if isinstance(solved, Trajectory):
        plots.finish(time_plots.trajectory_figure(solved), figures / "march.png")
        slices_in_time(solved).write(figures / SLICES)
        measure = lambda: timing.of_trajectory(solved)
    elif isinstance(solved, TransportSolution):
        plots.finish(transport_plots.history_figure([solved]), figures / "history.png")
        plots.finish(transport_plots.transport_figure(solved), figures / "map.png")
        measure = lambda: timing.of_transport(solved)
    else:
        plots.finish(plots.history_figure([solved]), figures / "history.png")
        plots.finish(plots.slice_figure(solved), figures / "slice.png")
        slices_of(solved).write(figures / SLICES)
        measure = lambda: timing.of_solution(solved)
    # Who interrupts a run wants it to end; `npdg report` measures then.
    return finish(directory, {} if solved.stop_reason == "interrupted" else {"timing": measure()})


def finish(directory: Path, notes: dict[str, Any]) -> Path:
    """Add to the notes, and write the page."""
    _note(directory, notes)
    return report.write(read_run(directory))


def _note(directory: Path, notes: dict[str, Any]) -> None:
    known = read_run(directory).notes
    write_json(directory / NOTES, {**known, **notes})


def completed(run: Run) -> Run:
    """A run with what its report needs, made now if it is missing and can be."""
    if not report.incomplete(run):
        return run
    close(run.directory, open_saved(run.directory, None))
    return read_run(run.directory)

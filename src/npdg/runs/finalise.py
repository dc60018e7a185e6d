"""What a run leaves for its report: first its command, in the end pictures, slices, a timing and the page."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from npdg.results.base import Result
from npdg.runs.export.grids import LINE, PLANE, TIMES, Grid, Slices, inside, slice_grid, some
from npdg.runs.figures.draw import write_figures
from npdg.runs.files import real_directory, write_json
from npdg.runs.reading import FIGURES, NOTES, SLICES, read_notes, read_run
from npdg.runs.report import build
from npdg.runs.timing import timing


def begin(directory: Path, command: str) -> None:
    """Note the command that repeats the run."""
    _note(directory, {"command": command})


def finalise(directory: Path, result: Result, *, brief: bool = False, timed: bool = False) -> Path:
    """Write everything that only a report needs, and the report itself; returns its path.

    A `brief` report is made of what is there already, and one that is not `timed` does not say where the time of a step
    goes, for which parts of a step are compiled again; `npdg report` makes the rest.
    """
    if brief:
        return build.write(read_run(directory))
    figures = real_directory(directory / FIGURES)
    write_figures(result, figures)
    slices = slices_of(result)
    if slices is not None:
        slices.write(figures / SLICES)
    if timed:
        _note(directory, {"timing": timing(result)})
    return build.write(read_run(directory))


def _note(directory: Path, notes: dict[str, Any]) -> None:
    write_json(directory / NOTES, {**read_notes(directory), **notes})


def slices_of(result: Result) -> Slices | None:
    """A line in one dimension, the plane of the first two coordinates in more; in time, at a few of the kept times.

    The grid is that of the truth, where that is known on one. None for a result that is no function on a domain.
    """
    moments, domain = some(result.moments(), TIMES) if result.moments() else [], result.domain
    if not moments or domain is None:
        return None
    axes = tuple(range(min(domain.dim, 2)))
    grid = slice_grid(domain, axes, LINE if domain.dim == 1 else PLANE)
    times = None if moments[0].time is None else np.array([moment.time for moment in moments])
    known = None
    if (reference := result.reference()) is not None and domain.dim <= 2 and times is not None:
        own = Grid(axes, tuple(np.unique(reference.points[:, k]) for k in axes), grid.centre)
        if prod(own.shape) == len(reference.points) and np.allclose(own.points(), reference.points):
            grid, known = own, [reference.values[round(time / result.problem.step)] for time in times]
    points = grid.points()
    if known is None and all(moment.exact is not None for moment in moments):
        known = [result.evaluate(moment.exact, points) for moment in moments]
    within = inside(domain, points)
    shape = grid.shape if times is None else (-1, *grid.shape)
    shown = lambda values: np.where(within, np.stack(values), np.nan).reshape(shape)
    u = shown([result.evaluate(moment.u, points) for moment in moments])
    return Slices(axes, grid.coordinates, times, u, None if known is None else shown(known))

"""`npdg export`: a saved solution on a grid, for other programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from npdg.errors import InputError
from npdg.runs.export.grids import Grid, in_batches, inside, slice_grid
from npdg.runs.export.vtk import write_image, write_series
from npdg.runs.files import new_whole_directory, write_npz

if TYPE_CHECKING:
    from npdg.geometry.domain import Domain
    from npdg.results.base import Moment, Result

DEFAULT_POINTS = {1: 401, 2: 101, 3: 41}  # Points along an axis, by the number of axes.
MOST_POINTS = 10**8  # Points of a grid at the most.


def read_axes(text: str | None) -> tuple[int, ...] | None:
    """Coordinates from text such as 1,3, counted from 1."""
    if text is None:
        return None
    axes = [part.strip() for part in text.split(",")]
    if not (1 <= len(axes) <= 3 and all(a.isdecimal() and int(a) > 0 for a in axes) and len(set(axes)) == len(axes)):
        raise InputError(f"axes: {text!r} is not allowed; give one to three different coordinates, such as 1,2.")
    return tuple(int(axis) - 1 for axis in axes)


def export(
    result: Result, directory: Path, axes: Sequence[int] | None, points: int | None, kinds: Sequence[str]
) -> list[Path]:
    """Write slices as the kinds say (npz, vtk) to a new directory; a march gives a file for every kept time."""
    moments, domain = result.moments(), result.domain
    if not moments or domain is None:
        raise InputError("run: this is a transport map, which has no domain to slice; use npdg evaluate RUN POINTS.")
    chosen = tuple(range(min(domain.dim, 3))) if axes is None else tuple(axes)
    if max(chosen) >= domain.dim:
        raise InputError(f"axes: {max(chosen) + 1} is not allowed; this solution has {domain.dim} coordinates.")
    grid = slice_grid(domain, chosen, points or DEFAULT_POINTS[len(chosen)])
    if np.prod(grid.shape, dtype=float) > MOST_POINTS:
        raise InputError(f"points: {points} along {len(chosen)} axes are over {MOST_POINTS:.0e} in all; give fewer.")
    with new_whole_directory(directory) as place:
        names = _written(place, grid, result, domain, kinds)
    return [directory / name for name in names]


def _written(directory: Path, grid: Grid, result: Result, domain: Domain, kinds: Sequence[str]) -> list[str]:
    """Names of the files that are written for every kept time."""
    moments, written = result.moments(), []
    for moment in moments:
        fields = _fields(grid, result, domain, moment)
        if "npz" in kinds:
            written.append(directory / f"{moment.name}.npz")
            _write_npz(written[-1], grid, fields, moment.time)
        if "vtk" in kinds:
            written.append(directory / f"{moment.name}.vti")
            write_image(written[-1], grid.coordinates, _for_vtk(fields, grid))
    if "vtk" in kinds and moments[0].time is not None:
        written.append(directory / "slice.pvd")
        write_series(written[-1], {m.time: f"{m.name}.vti" for m in moments if m.time is not None})
    return [path.name for path in written]


def _fields(grid: Grid, result: Result, domain: Domain, moment: Moment) -> dict[str, np.ndarray]:
    """u, its gradient, and where known the exact solution and the error, on the grid; NaN outside the domain."""
    import jax

    points = grid.points()
    within = in_batches(lambda x: inside(domain, x), points)

    def shown(function: Callable[[Any], Any]) -> np.ndarray:
        values = in_batches(lambda x: result.evaluate(function, x), points)
        values = np.where(within if values.ndim == 1 else within[:, None], values, np.nan)
        return values.reshape(*grid.shape, *values.shape[1:])

    fields = {"u": shown(moment.u), "gradient": shown(jax.grad(moment.u))}
    if moment.exact is not None:
        exact = shown(moment.exact)
        fields |= {"exact": exact, "error": abs(fields["u"] - exact)}
    return fields


def _for_vtk(fields: dict[str, np.ndarray], grid: Grid) -> dict[str, np.ndarray]:
    """A vector of VTK lives in the space that is shown: of the gradient, the part along the slice."""
    return {**fields, "gradient": fields["gradient"][..., list(grid.axes)]}


def _write_npz(path: Path, grid: Grid, fields: dict[str, np.ndarray], time: float | None) -> None:
    points = grid.points().reshape(*grid.shape, -1)
    extra = {} if time is None else {"time": np.array(time)}
    write_npz(path, {"points": points, "axes": np.array(grid.axes), **fields, **extra}, compressed=True)

"""`npdg evaluate`: points from a file, and the values of a saved solution there."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from npdg.errors import InputError

if TYPE_CHECKING:
    from npdg.runs.saved import Saved

READERS = (".npy", ".npz", ".csv")


def read_points(path: Path, dim: int | None, key: str = "points") -> np.ndarray:
    """Points `(n, dim)` from a .npy, .npz or .csv file, or an `InputError`; nothing in the file is ever executed.

    Any dimension is taken if none is given.
    """
    if path.suffix.lower() not in READERS:
        raise InputError(f"{key}: {str(path)!r} is not allowed; give a file that ends in {', '.join(READERS)}.")
    if not path.is_file():
        raise InputError(f"{key}: the file {str(path)!r} does not exist.")
    try:
        points = _csv(path, key) if path.suffix.lower() == ".csv" else _arrays(path, key)
    except InputError:
        raise
    except (ValueError, EOFError, zipfile.BadZipFile, KeyError, csv.Error) as error:
        raise InputError(f"{key}: {str(path)!r} cannot be read: {' '.join(str(error).split())}.") from None
    if not (np.issubdtype(points.dtype, np.floating) or np.issubdtype(points.dtype, np.integer)):
        raise InputError(f"{key}: {str(path)!r} holds {points.dtype}; give real numbers.")
    if points.size == 0:
        raise InputError(f"{key}: {str(path)!r} holds none; give at least one.")
    if points.ndim == 1 and dim == 1:
        points = points[:, None]
    if points.ndim != 2 or dim not in (None, points.shape[1]):
        shape = "(n, d)" if dim is None else f"(n, {dim})"
        raise InputError(f"{key}: shape {points.shape} is not allowed; give points of shape {shape}.")
    bad = ~np.isfinite(points).all(axis=1)
    if bad.any():
        raise InputError(f"{key}: number {int(np.argmax(bad)) + 1} is not finite; give finite numbers.")
    return points


def _arrays(path: Path, key: str) -> np.ndarray:
    found = np.load(path, allow_pickle=False)
    if isinstance(found, np.ndarray):
        return found
    with found:
        if "points" not in found.files and len(found.files) != 1:
            held = ", ".join(found.files) or "nothing"
            raise InputError(f"{key}: {str(path)!r} holds {held}; give one array, or call it points.")
        return found["points" if "points" in found.files else found.files[0]]


def _csv(path: Path, key: str) -> np.ndarray:
    """Rows of numbers, under a line of names or not."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        lines = {number: row for number, row in enumerate(csv.reader(file), start=1) if row}
    if lines and not _numeric(lines[first := min(lines)]):
        del lines[first]
    columns = len(next(iter(lines.values()), []))
    for number, row in lines.items():
        if not _numeric(row) or len(row) != columns:
            raise InputError(f"{key}: line {number} of {str(path)!r} is not {columns} numbers with commas between.")
    return np.array([[float(cell) for cell in row] for row in lines.values()], dtype=float)


def _numeric(row: list[str]) -> bool:
    try:
        return bool([float(cell) for cell in row])
    except ValueError:
        return False


def values_at(solved: Saved, points: np.ndarray, time: float | None, gradient: bool) -> np.ndarray:
    """u at the points `(n,)`, or with its gradient `(n, 1 + d)`: first the value, then the derivatives; of a transport
    map, where the points are carried `(n, d)`."""
    import jax

    from npdg.runs.grids import in_batches
    from npdg.trajectory import Trajectory
    from npdg.transportation import TransportSolution

    if isinstance(solved, TransportSolution):
        if time is not None or gradient:
            raise InputError("evaluate: this is a transport map; leave --time and --gradient out.")
        return in_batches(solved.map, points)
    if isinstance(solved, Trajectory):
        if time is None:
            first, last = solved.times[0], solved.times[-1]
            raise InputError(f"time: this is a march; give --time T, from {first:g} to {last:g}.")
        u = solved.at(time)
    else:
        if time is not None:
            raise InputError("time: this equation has no time; leave --time out.")
        u = solved.u
    values = in_batches(lambda x: solved.evaluate(u, x), points)
    if not gradient:
        return values
    slopes = in_batches(lambda x: solved.evaluate(jax.grad(u), x), points)
    return np.concatenate([values[:, None], slopes], axis=1)


def outside(solved: Saved, points: np.ndarray) -> int:
    """How many of the points are not in the domain."""
    from npdg.runs.grids import in_batches, inside
    from npdg.trajectory import Trajectory
    from npdg.transportation import TransportSolution

    if isinstance(solved, TransportSolution):
        return 0
    domain = solved.evolution.domain if isinstance(solved, Trajectory) else solved.pde.domain
    return int(np.sum(~in_batches(lambda x: inside(domain, x), points)))


def check_output(path: Path | None) -> None:
    """Refuse a file that exists or of a kind that cannot be written."""
    if path is None:
        return
    if path.suffix.lower() not in (".npy", ".csv"):
        raise InputError(f"out: {str(path)!r} is not allowed; give a file that ends in .npy or .csv.")
    if path.exists():
        raise InputError(f"out: {str(path)!r} exists already and is never overwritten; give a new name.")


def write_values(path: Path, values: np.ndarray, names: Sequence[str]) -> None:
    """Write values to a new .npy or .csv file, the latter with a line of names."""
    with path.open("xb") as file:
        if path.suffix.lower() == ".npy":
            np.save(file, values, allow_pickle=False)
        else:
            file.write(to_csv(values, names).encode())


def names_of(solved: Saved, values: np.ndarray) -> list[str]:
    """Names of the columns: u and its derivatives du1, du2, …, or the coordinates T1, T2, … of a map."""
    from npdg.transportation import TransportSolution

    if isinstance(solved, TransportSolution):
        return [f"T{k}" for k in range(1, values.shape[1] + 1)]
    return ["u", *(f"du{k}" for k in range(1, values[:1].size))]


def to_csv(values: np.ndarray, names: Sequence[str]) -> str:
    """A table under a line of names."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([repr(float(value)) for value in row] for row in values.reshape(len(values), -1))
    return text.getvalue()

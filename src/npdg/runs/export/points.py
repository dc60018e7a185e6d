"""`npdg evaluate`: points from a file, and the values of a saved solution there."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from npdg.errors import InputError
from npdg.runs.export.grids import BATCH, in_batches, inside
from npdg.runs.files import LARGEST_TABLE, read_text, write_new
from npdg.runs.untrusted import read_array, read_arrays

if TYPE_CHECKING:
    from npdg.results.base import Result

READERS = (".npy", ".npz", ".csv")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf(inity)?)", re.IGNORECASE | re.ASCII)


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
    except csv.Error as error:
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
    if path.suffix.lower() == ".npy":
        return read_array(path, key=key, follow=True)
    found = read_arrays(path, key=key, follow=True)
    if "points" not in found and len(found) != 1:
        held = ", ".join(found) or "nothing"
        raise InputError(f"{key}: {str(path)!r} holds {held}; give one array, or call it points.")
    return found.get("points", next(iter(found.values())))


def _csv(path: Path, key: str) -> np.ndarray:
    """Rows of numbers, under a line of names or not."""
    text = read_text(path, LARGEST_TABLE, key=key, follow=True).removeprefix("\ufeff")
    lines = {number: row for number, row in enumerate(csv.reader(io.StringIO(text)), start=1) if row}
    first = min(lines, default=0)
    if lines and not any(NUMBER.fullmatch(cell.strip()) for cell in lines[first]):
        del lines[first]
    columns = len(next(iter(lines.values()), []))
    for number, row in lines.items():
        if not _numeric(row) or len(row) != columns:
            raise InputError(f"{key}: line {number} of {str(path)!r} is not {columns} numbers with commas between.")
    return np.array([[float(cell) for cell in row] for row in lines.values()], dtype=float)


def _numeric(row: list[str]) -> bool:
    return all(NUMBER.fullmatch(cell.strip()) for cell in row)


def values_at(result: Result, points: np.ndarray, time: float | None, gradient: bool) -> tuple[np.ndarray, list[str]]:
    """A result at any number of points, one row each, and names of the columns."""
    parts = [result.values(points[k : k + BATCH], time, gradient) for k in range(0, len(points), BATCH)]
    return np.concatenate([values for values, _ in parts]), parts[0][1]


def outside(result: Result, points: np.ndarray) -> int:
    """How many of the points are not in the domain."""
    domain = result.domain
    return 0 if domain is None else int(np.sum(~in_batches(lambda x: inside(domain, x), points)))


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
    content = io.BytesIO()
    if path.suffix.lower() == ".npy":
        np.save(content, values, allow_pickle=False)
    else:
        content.write(to_csv(values, names).encode())
    write_new(path, content.getvalue())


def to_csv(values: np.ndarray, names: Sequence[str]) -> str:
    """A table under a line of names."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([repr(float(value)) for value in row] for row in values.reshape(len(values), -1))
    return text.getvalue()

"""Coordinate slices through the centre of a domain, and what a solution is on them. Reading them needs no jax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from npdg.runs.files import write_npz
from npdg.runs.untrusted import damaged, read_arrays

if TYPE_CHECKING:
    from npdg.geometry.domain import Domain

LINE, PLANE = 401, 121  # Points along each axis of a picture with one axis, and with two.
TIMES = 6  # Times of a march in a picture.
BATCH = 2**15  # points evaluated at once, so that memory does not grow with their number


@dataclass(frozen=True)
class Grid:
    """Some coordinates vary over their grid, the others are those of the centre."""

    axes: tuple[int, ...]
    coordinates: tuple[np.ndarray, ...]
    centre: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(values) for values in self.coordinates)

    def points(self) -> np.ndarray:
        """All points `(n, d)`, the last coordinate moving fastest."""
        points = np.tile(self.centre, (prod(self.shape), 1))
        for axis, values in zip(self.axes, np.meshgrid(*self.coordinates, indexing="ij"), strict=True):
            points[:, axis] = values.ravel()
        return points


def slice_grid(domain: Domain, axes: tuple[int, ...], n: int) -> Grid:
    """A grid of n points along each of the axes, over the box around the domain."""
    lower, upper = domain.bounds()
    return Grid(axes, tuple(np.linspace(lower[k], upper[k], n) for k in axes), (lower + upper) / 2)


def inside(domain: Domain, points: np.ndarray) -> np.ndarray:
    """Which points are in the closed domain."""
    import jax

    # The margin is one of rounding, which float32 makes of the order of 1e-7 of a coordinate.
    return np.asarray(jax.vmap(domain.cutoff)(jax.numpy.asarray(points))) >= -1e-6


def in_batches(function: Callable[[np.ndarray], np.ndarray], points: np.ndarray) -> np.ndarray:
    """A function of points `(n, d)` at any number of them."""
    return np.concatenate([function(points[k : k + BATCH]) for k in range(0, len(points), BATCH)])


@dataclass(frozen=True)
class Slices:
    """u, and the truth if known, on a grid of one or two axes; NaN outside the domain. A march has one a time."""

    axes: tuple[int, ...]
    coordinates: tuple[np.ndarray, ...]
    times: np.ndarray | None
    u: np.ndarray
    exact: np.ndarray | None

    def write(self, path: Path) -> None:
        """As arrays in an .npz file."""
        arrays: dict[str, Any] = {"axes": np.array(self.axes), "u": self.u}
        arrays |= {f"x{k}": values for k, values in enumerate(self.coordinates)}
        arrays |= {"times": self.times} if self.times is not None else {}
        arrays |= {"exact": self.exact} if self.exact is not None else {}
        write_npz(path, arrays, compressed=True)


def read_slices(path: Path) -> Slices:
    """Slices from their file, or an `InputError` if it is damaged."""
    arrays = {name: np.asarray(array, dtype=float) for name, array in read_arrays(path).items()}
    try:
        axes = tuple(int(k) for k in arrays["axes"])
        coordinates = tuple(arrays[f"x{k}"] for k in range(len(axes)))
        times, u, exact = arrays.get("times"), arrays["u"], arrays.get("exact")
        shape = (() if times is None else (len(times),)) + tuple(len(values) for values in coordinates)
        if u.shape != shape or (exact is not None and exact.shape != shape) or len(axes) not in (1, 2):
            raise ValueError("its arrays do not fit together")
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(path, error) from None
    return Slices(axes, coordinates, times, u, exact)


def some(values: Sequence[Any], count: int) -> list[Any]:
    """A few of the values, the first and the last among them."""
    places = np.unique(np.linspace(0, len(values) - 1, count).round().astype(int))
    return [values[k] for k in places]

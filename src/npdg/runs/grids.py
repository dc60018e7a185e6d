"""Coordinate slices through the centre of a domain, and what a solution is on them. Reading them needs no jax."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from npdg.errors import InputError

if TYPE_CHECKING:
    from npdg.domains import Domain
    from npdg.solution import Solution
    from npdg.trajectory import Trajectory

LINE, PLANE = 401, 121  # points along an axis of a picture
TIMES = 6  # of a march, in a picture
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
        np.savez_compressed(path, allow_pickle=False, **arrays)


def read_slices(path: Path) -> Slices:
    """Slices from their file, or an `InputError` if it is damaged."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: np.asarray(file[name], dtype=float) for name in file.files}
        axes = tuple(int(k) for k in arrays["axes"])
        coordinates = tuple(arrays[f"x{k}"] for k in range(len(axes)))
        times, u, exact = arrays.get("times"), arrays["u"], arrays.get("exact")
        shape = (() if times is None else (len(times),)) + tuple(len(values) for values in coordinates)
        if u.shape != shape or (exact is not None and exact.shape != shape) or len(axes) not in (1, 2):
            raise ValueError("its arrays do not fit together")
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, zipfile.LargeZipFile) as error:
        raise InputError(f"run: {path} is damaged: {error}.") from None
    return Slices(axes, coordinates, times, u, exact)


def slices_of(solution: Solution) -> Slices:
    """A line in one dimension, the plane of the first two coordinates in more."""
    pde = solution.pde
    axes = tuple(range(min(pde.dim, 2)))
    grid = slice_grid(pde.domain, axes, LINE if pde.dim == 1 else PLANE)
    points = grid.points()
    within = inside(pde.domain, points)
    shown = lambda values: np.where(within, values, np.nan).reshape(grid.shape)
    exact = None if pde.exact is None else shown(solution.evaluate(pde.exact, points))
    return Slices(axes, grid.coordinates, None, shown(solution(points)), exact)


def slices_in_time(trajectory: Trajectory) -> Slices:
    """The same at a few of the kept times; on the grid of the truth, where that is one."""
    from npdg.runs.time_plots import some_times

    evolution, times = trajectory.evolution, some_times(trajectory, TIMES)
    numbers = [round(time / evolution.step) for time in times]
    truth = None if evolution.reference is None else evolution.reference()
    axes = tuple(range(min(evolution.dim, 2)))
    grid = slice_grid(evolution.domain, axes, LINE if evolution.dim == 1 else PLANE)
    known: list[np.ndarray] | None = None
    if truth is not None and evolution.dim <= 2:
        own = Grid(axes, tuple(np.unique(truth.points[:, k]) for k in axes), grid.centre)
        if prod(own.shape) == len(truth.points) and np.allclose(own.points(), truth.points):
            grid, known = own, [truth.values[number] for number in numbers]
    points = grid.points()
    if known is None:
        known = _exact_in_time(trajectory, times, points)
    within = inside(evolution.domain, points)
    shown = lambda values: np.where(within, np.stack(values), np.nan).reshape(-1, *grid.shape)
    u = shown([trajectory(time, points) for time in times])
    return Slices(axes, grid.coordinates, np.array(times), u, None if known is None else shown(known))


def _exact_in_time(trajectory: Trajectory, times: list[float], points: np.ndarray) -> list[np.ndarray] | None:
    exact = [exact_at(trajectory, time) for time in times]
    if any(function is None for function in exact):
        return None
    return [trajectory.evaluate(function, points) for function in exact if function is not None]


def exact_at(trajectory: Trajectory, time: float) -> Callable[[Any], Any] | None:
    """The exact solution of an evolution at one time, if it is known there."""
    import jax.numpy as jnp

    evolution = trajectory.evolution
    return evolution.start if time == 0 else evolution.at(jnp.asarray(time)).exact

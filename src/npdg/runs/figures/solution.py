"""Pictures of a solution: a slice of it beside the exact one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from npdg.runs.export.grids import inside, slice_grid

GRID = 81


def slice_figure(solution: Any) -> Figure:
    """u, the exact solution and the error on the plane of the first two coordinates through the centre."""
    return _line_figure(solution) if solution.pde.dim == 1 else _plane_figure(solution)


@dataclass(frozen=True)
class Plane:
    """u and, if known, the exact solution on a grid of a coordinate plane; NaN outside the domain."""

    axes: tuple[int, int]
    first: np.ndarray
    second: np.ndarray
    u: np.ndarray
    exact: np.ndarray | None

    @property
    def error(self) -> np.ndarray:
        assert self.exact is not None
        return np.abs(self.u - self.exact)

    def heat(self, axes: Any, values: np.ndarray, title: str, **keywords: Any) -> None:
        """Draw values on the plane, with a colour bar."""
        shading = "nearest" if np.isnan(values).any() else "gouraud"
        drawn = axes.pcolormesh(self.first, self.second, values.T, shading=shading, **keywords)
        axes.figure.colorbar(drawn, ax=axes)
        names = (f"$x_{{{k + 1}}}$" for k in self.axes)
        axes.set(title=title, xlabel=next(names), ylabel=next(names), aspect="equal")


def plane(solution: Any, axes: tuple[int, int] = (0, 1), rest: float | None = None) -> Plane:
    """The plane of two coordinates; the others are `rest`, or those of the centre."""
    grid = slice_grid(solution.domain, axes, GRID)
    if rest is not None:
        grid = replace(grid, centre=np.full(solution.pde.dim, rest))
    points = grid.points()
    within = inside(solution.domain, points)
    shown = lambda values: np.where(within, values, np.nan).reshape(GRID, GRID)
    exact = None if solution.pde.exact is None else shown(_exact(solution, points))
    first, second = grid.coordinates
    return Plane(axes, first, second, shown(solution(points)), exact)


def _plane_figure(solution: Any) -> Figure:
    shown = plane(solution)
    panels = {"$u$": shown.u}
    if shown.exact is not None:
        panels |= {"exact": shown.exact, "$|u - $exact$|$": shown.error}
    figure = Figure(figsize=(4.2 * len(panels), 3.6), layout="constrained")
    shared = [shown.u] if shown.exact is None else [shown.u, shown.exact]
    low, high = min(np.nanmin(v) for v in shared), max(np.nanmax(v) for v in shared)
    for axes, (title, values) in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels.items(), strict=True):
        error = title.startswith("$|")
        limits = {"cmap": "magma"} if error else {"cmap": "viridis", "vmin": low, "vmax": high}
        shown.heat(axes, values, title, **limits)
    return figure


def _line_figure(solution: Any) -> Figure:
    lower, upper = solution.pde.domain.bounds()
    x = np.linspace(lower, upper, 401)
    figure = Figure(figsize=(8.4, 3.6), layout="constrained")
    graph, error = figure.subplots(1, 2)
    graph.plot(x[:, 0], solution(x), label="$u$")
    graph.set(xlabel="$x$")
    if solution.pde.exact is None:
        error.remove()
    else:
        exact = _exact(solution, x)
        graph.plot(x[:, 0], exact, "--", label="exact")
        error.plot(x[:, 0], np.abs(solution(x) - exact))
        error.set(xlabel="$x$", title="$|u - $exact$|$")
    graph.legend()
    return figure


def _exact(solution: Any, points: np.ndarray) -> np.ndarray:
    assert solution.pde.exact is not None
    return solution.evaluate(solution.pde.exact, points)

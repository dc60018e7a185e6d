"""Pictures of a transport map: densities with segments of the map, and the potential."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from npdg.runs.export.grids import Grid

DRAWN, SEGMENTS, GRID = 2048, 80, 80


def transport_figure(solution: Any, axes: tuple[int, int] | None = None) -> Figure:
    """ρ₁, T#ρ₀ with segments of the map, and φ in the plane of two coordinates; in one dimension the graph of T."""
    if solution.pair.dim == 1:
        return _graph(solution)
    chosen = shown_axes(solution) if axes is None else axes
    figure = Figure(figsize=(13.5, 4.2), layout="constrained")
    target, pushed, potential = figure.subplots(1, 3)
    _, y = samples(solution)
    box = square(y, chosen)
    draw_density(target, y, chosen, box, "$\\rho_1$")
    draw_map(pushed, solution, chosen, box)
    draw_potential(potential, solution, chosen, box)
    return figure


def shown_axes(solution: Any) -> tuple[int, int]:
    """The two coordinates whose variance changes most."""
    before, after = (np.diag(m.covariance) for m in (solution.pair.source, solution.pair.target))
    first, second = sorted(np.argsort(-np.abs(after - before), kind="stable")[:2])
    return int(first), int(second)


def samples(solution: Any) -> tuple[np.ndarray, np.ndarray]:
    """Points of ρ₀ and of ρ₁."""
    first, second = jax.random.split(jax.random.key(11))
    source, target = solution.pair.source, solution.pair.target
    return np.asarray(source.sample(first, DRAWN).x), np.asarray(target.sample(second, DRAWN).x)


def draw_density(axes: Any, points: np.ndarray, plane: tuple[int, int], box: np.ndarray, title: str) -> None:
    """A kernel density estimate in a plane; the points themselves if they are on a line."""
    from scipy.stats import gaussian_kde

    shown = _finite(points)[:, list(plane)].T
    grid = [np.linspace(low, high, GRID) for low, high in box]
    mesh = np.stack([m.ravel() for m in np.meshgrid(*grid, indexing="ij")])
    try:
        # Scott's bandwidth is made for one hump; a mixture has several, each narrower.
        density = gaussian_kde(shown, bw_method=0.12)(mesh).reshape(GRID, GRID)
        axes.pcolormesh(*grid, density.T, shading="gouraud", cmap="viridis")
    except (np.linalg.LinAlgError, ValueError):
        axes.plot(*shown, ".", markersize=2)
    _frame(axes, plane, box, title)


def _finite(points: np.ndarray) -> np.ndarray:
    """Those of the points that are finite; a map that has diverged has others."""
    return points[np.all(np.isfinite(points), axis=1)]


def draw_map(
    axes: Any,
    solution: Any,
    plane: tuple[int, int],
    box: np.ndarray | None = None,
    title: str = "$T_\\#\\rho_0$",
) -> None:
    """The density of T#ρ₀ in a plane, and some points of ρ₀ with segments to where they are carried."""
    x, y = samples(solution)
    pushed = solution.map(x)
    draw_density(axes, pushed, plane, square(y, plane) if box is None else box, title)
    columns = list(plane)
    ends = np.stack([x[:SEGMENTS, columns], pushed[:SEGMENTS, columns]], axis=1)
    axes.add_collection(LineCollection(list(ends), colors="#ff5c4d", linewidths=0.6))


def draw_potential(axes: Any, solution: Any, plane: tuple[int, int], box: np.ndarray) -> None:
    """φ in a plane through the target's mean."""
    grid = [np.linspace(low, high, GRID) for low, high in box]
    points = Grid(plane, tuple(grid), solution.pair.target.mean).points()
    heat = axes.pcolormesh(*grid, solution.potential(points).reshape(GRID, GRID).T, shading="gouraud", cmap="magma")
    axes.figure.colorbar(heat, ax=axes)
    _frame(axes, plane, box, "$\\varphi$")


def draw_arrows(axes: Any, solution: Any, plane: tuple[int, int], count: int = 60) -> None:
    """Points of ρ₀ with where they are carried by T (blue) and by the true map (red), in a plane."""
    assert solution.pair.truth is not None
    x, true = solution.pair.truth(count)
    for images, colour, name in ((true, "C3", "true map"), (solution.map(x), "C0", "$T$")):
        ends = np.stack([x, images], axis=1)[:, :, list(plane)]
        axes.add_collection(LineCollection(list(ends), colors=colour, linewidths=0.9, label=name))
        axes.plot(*images[:, list(plane)].T, ".", color=colour, markersize=3)
    axes.set(xlabel=f"$x_{{{plane[0] + 1}}}$", ylabel=f"$x_{{{plane[1] + 1}}}$", aspect="equal")
    axes.legend(fontsize=8)


def _graph(solution: Any) -> Figure:
    figure = Figure(figsize=(8.8, 3.8), layout="constrained")
    graph, densities = figure.subplots(1, 2)
    source = solution.pair.source
    reach = 3.5 * float(source.covariance[0, 0]) ** 0.5
    x = np.linspace(source.mean - reach, source.mean + reach, 400)
    graph.plot(x[:, 0], solution.map(x)[:, 0], label="$T$")
    if solution.pair.truth is not None:
        at, true = solution.pair.truth(2000)
        order = np.argsort(at[:, 0])
        graph.plot(at[order, 0], true[order, 0], "--", label="true map")
    graph.set(xlabel="$x$")
    graph.legend()
    before, after = samples(solution)
    for points, name in ((before, "$\\rho_0$"), (after, "$\\rho_1$"), (solution.map(before), "$T_\\#\\rho_0$")):
        densities.hist(_finite(points)[:, 0], bins=60, density=True, histtype="step", label=name)
    densities.legend()
    return figure


def square(points: np.ndarray, plane: tuple[int, int]) -> np.ndarray:
    """A square around the points."""
    shown = points[:, list(plane)]
    centre = (shown.min(axis=0) + shown.max(axis=0)) / 2
    half = 0.55 * float(np.max(shown.max(axis=0) - shown.min(axis=0))) or 1.0
    return np.stack([centre - half, centre + half], axis=1)


def _frame(axes: Any, plane: tuple[int, int], box: np.ndarray, title: str) -> None:
    axes.set(
        title=title,
        xlabel=f"$x_{{{plane[0] + 1}}}$",
        ylabel=f"$x_{{{plane[1] + 1}}}$",
        xlim=tuple(box[0]),
        ylim=tuple(box[1]),
        aspect="equal",
    )

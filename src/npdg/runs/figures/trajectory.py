"""Pictures of a march: graphs at some times beside the truth, surfaces, error maps, energy and errors against time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from npdg.problem.evolution import ReferenceValues
from npdg.runs.export.grids import some

SHOWN = 6  # times in a picture that does not name them
POINTS = 401


def trajectory_figure(trajectory: Any) -> Figure:
    """u along the first axis at some times, and what was measured at every time."""
    figure = Figure(figsize=(13, 3.8), layout="constrained")
    graphs, errors, energy = figure.subplots(1, 3)
    draw_lines(graphs, trajectory, some(trajectory.times, SHOWN))
    draw_curve(errors, trajectory.rmse, "root mean square error", log=True)
    draw_curve(energy, trajectory.energy, "energy")
    return figure


def draw_lines(
    axes: Any, trajectory: Any, times: Sequence[float], truth: ReferenceValues | None = None, along: int = 0
) -> None:
    """u along one axis through the centre, one line a time; the truth on a grid, if given, dashed."""
    lower, upper = trajectory.evolution.domain.bounds()
    points = np.tile((lower + upper) / 2, (POINTS, 1))
    points[:, along] = np.linspace(lower[along], upper[along], POINTS)
    for k, time in enumerate(times):
        shade = 0.85 * k / max(len(times) - 1, 1)
        axes.plot(points[:, along], trajectory(time, points), color=(shade, 0.3, 1 - shade), label=f"t = {time:.3g}")
        if truth is not None:
            centre = (lower + upper) / 2
            others = [axis for axis in range(len(lower)) if axis != along]
            on_line = np.all(np.isclose(truth.points[:, others], centre[others]), axis=1)
            number = round(time / trajectory.evolution.step)
            known = truth.values[number][on_line]
            axes.plot(truth.points[on_line, along], known, "k--", linewidth=0.8)
    axes.set(xlabel=f"$x_{{{along + 1}}}$" if len(lower) > 1 else "$x$", ylabel="$u$")
    if len(times) <= 2 * SHOWN:
        axes.legend(fontsize=7)


def draw_curve(axes: Any, values: dict[float, float], label: str, *, log: bool = False) -> None:
    """Something measured at every time."""
    if not values:
        axes.remove()
        return
    (axes.semilogy if log else axes.plot)(list(values), list(values.values()), marker=".")
    axes.set(xlabel="$t$", ylabel=label)
    axes.grid(alpha=0.3, which="both")


def surfaces(trajectory: Any, times: Sequence[float], truth: ReferenceValues) -> Figure:
    """In two dimensions: the surface of u above, the distance to the truth below, one column a time."""
    figure = Figure(figsize=(3.2 * len(times), 6), layout="constrained")
    side = round(len(truth.points) ** 0.5)
    grid = truth.points.reshape(side, side, 2)
    for column, time in enumerate(times):
        u = trajectory(time, truth.points)
        known = truth.values[round(time / trajectory.evolution.step)]
        above: Any = figure.add_subplot(2, len(times), column + 1, projection="3d")
        above.plot_surface(grid[..., 0], grid[..., 1], u.reshape(side, side), cmap="viridis")
        above.set(title=f"t = {time:.3g}", zlim=(-1.1, 1.1))
        below: Any = figure.add_subplot(2, len(times), len(times) + column + 1)
        error = np.abs(u - known).reshape(side, side)
        drawn = below.pcolormesh(grid[..., 0], grid[..., 1], error, cmap="magma", shading="gouraud")
        figure.colorbar(drawn, ax=below)
        below.set(title="$|u - $reference$|$", aspect="equal")
    return figure

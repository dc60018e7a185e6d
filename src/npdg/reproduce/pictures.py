"""Pictures that several of the paper's figures share."""

from typing import Any

import jax
import numpy as np
from matplotlib.figure import Figure

from npdg.results.solution import Solution
from npdg.runs.figures.solution import Plane, plane


def graph_and_error(solution: Solution, planes: list[tuple[tuple[int, int], float | None]]) -> Figure:
    """For every coordinate plane, the graphs of u (blue) and of the exact solution (red), and the error as heat."""
    figure = Figure(figsize=(8.4, 3.8 * len(planes)), layout="constrained")
    for row, (axes, rest) in enumerate(planes):
        shown = plane(solution, axes, rest)
        graph = figure.add_subplot(len(planes), 2, 2 * row + 1, projection="3d")
        _surfaces(graph, shown)
        where = "" if rest is None else f", others {rest:g}"
        shown.heat(figure.add_subplot(len(planes), 2, 2 * row + 2), shown.error, f"$|u - u_*|${where}", cmap="magma")
    return figure


def errors_on_planes(solution: Solution, axes: list[tuple[int, int]], rest: float) -> Figure:
    """The graph on the first plane, and the error on all of them."""
    figure = Figure(figsize=(4.2 * (len(axes) + 1), 3.6), layout="constrained")
    planes = [plane(solution, pair, rest) for pair in axes]
    _surfaces(figure.add_subplot(1, len(axes) + 1, 1, projection="3d"), planes[0])
    for k, shown in enumerate(planes):
        shown.heat(figure.add_subplot(1, len(axes) + 1, k + 2), shown.error, "$|u - u_*|$", cmap="magma")
    return figure


def plane_rows(shown: Plane) -> list[dict[str, Any]]:
    """The numbers of a plane."""
    assert shown.exact is not None
    names = [f"x{k + 1}" for k in shown.axes]
    return [
        {names[0]: x, names[1]: y, "u": shown.u[i, j], "exact": shown.exact[i, j]}
        for i, x in enumerate(shown.first)
        for j, y in enumerate(shown.second)
    ]


def shell_errors(solution: Solution, shells: int = 50, points: int = 2000) -> list[tuple[float, float]]:
    """The outer size of every shell (l−1)/L ≤ max|x_k| < l/L of [−1,1]^d, and the root mean square error on it."""
    dim, keys = solution.pde.dim, jax.random.split(jax.random.key(0), shells)
    exact = solution.pde.exact
    assert exact is not None
    result = []
    for shell, key in enumerate(keys, start=1):
        direction, radius = jax.random.split(key)
        # Uniform on the surface of the cube, at a distance whose density is that of the shell's volume.
        surface = np.asarray(solution.pde.domain.sample_boundary(direction, points).x, dtype=float)
        inner, outer = (np.array([shell - 1, shell]) / shells) ** dim
        size = (inner + (outer - inner) * np.asarray(jax.random.uniform(radius, (points, 1)), dtype=float)) ** (1 / dim)
        x = surface * size
        true = solution.evaluate(exact, x)
        result.append((shell / shells, float(np.sqrt(np.mean((solution(x) - true) ** 2)))))
    return result


def _surfaces(axes: Any, shown: Plane) -> None:
    x, y = np.meshgrid(shown.first, shown.second, indexing="ij")
    axes.plot_surface(x, y, shown.u, color="C0", alpha=0.6, rcount=40, ccount=40)
    axes.plot_wireframe(x, y, shown.exact, color="C3", lw=0.5, rcount=14, ccount=14)
    names = [f"$x_{{{k + 1}}}$" for k in shown.axes]
    axes.set(xlabel=names[0], ylabel=names[1], title="$u$ (blue), $u_*$ (red)")

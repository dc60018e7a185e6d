"""Pictures of any result, by the kind of its problem."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from npdg.results.base import Result
from npdg.runs.figures import solution, trajectory, transport
from npdg.runs.figures.history import history_figure
from npdg.runs.files import write_whole


@dataclass(frozen=True)
class Figures:
    """The pictures of one kind of result: what it is, under the name of its file, and how it was trained, if shown."""

    name: str
    picture: Callable[..., Figure]
    history: Callable[[Sequence[Any]], Figure] | None = None


BY_KIND = {
    "equation": Figures("slice", solution.slice_figure, history_figure),
    "evolution": Figures("march", trajectory.trajectory_figure),
    "transport": Figures("map", transport.transport_figure, history_figure),
}


def finish(figure: Figure, path: str | Path | None) -> Figure:
    """Write a figure if a path is given, and hand it back."""
    if path is not None:
        write_figure(figure, Path(path))
    return figure


def write_figure(figure: Figure, path: Path) -> None:
    """A picture, whole or not at all; of the kind that its name ends with."""
    content = io.BytesIO()
    figure.savefig(content, dpi=120, format=path.suffix[1:] or "png")
    write_whole(path, content.getvalue())


def plot(result: Result, path: str | Path | None = None, **how: Any) -> Figure:
    """A figure of a result."""
    return finish(BY_KIND[result.problem.kind].picture(result, **how), path)


def plot_history(result: Result, path: str | Path | None = None) -> Figure:
    """A figure of what was measured as a result was trained."""
    figures = BY_KIND[result.problem.kind]
    return finish((figures.history or (lambda results: figures.picture(results[0])))([result]), path)


def write_figures(result: Result, directory: Path) -> None:
    """All pictures of a result."""
    figures = BY_KIND[result.problem.kind]
    if figures.history is not None:
        finish(figures.history([result]), directory / "history.png")
    finish(figures.picture(result), directory / f"{figures.name}.png")

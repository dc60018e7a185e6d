"""One self-contained HTML page per run: the equation, the figures of the result, the pictures, the settings."""

from __future__ import annotations

import base64
import html
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from npdg.runs import plots

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pydantic import BaseModel

    from npdg.evolution import Evolution
    from npdg.pair import Pair
    from npdg.pde import PDE
    from npdg.solution import Solution

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #1c2733; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
img { width: 100%; } .equation { font-size: 1.15rem; padding: .6rem 1rem; background: #f2f5f8; border-radius: .4rem; }
table { border-collapse: collapse; }
td, th { padding: .2rem 1rem .2rem 0; text-align: left; border-bottom: 1px solid #dde4ea; }
code { background: #f2f5f8; padding: .1rem .3rem; } .columns { columns: 2; }
"""


class Picture(NamedTuple):
    """A figure with a title for the page."""

    title: str
    figure: Figure


def write(directory: Path, solution: Solution, result: dict[str, Any], equation: str, command: str) -> Path:
    """Draw the figures into `figures/` and write `report.html` beside them."""
    drawn = {
        "history": Picture("Error against time and steps", plots.history_figure([solution])),
        "slice": Picture("A slice through the centre of the domain", plots.slice_figure(solution)),
    }
    return write_page(directory, solution.pde, solution.settings, result, equation, command, drawn)


def write_page(
    directory: Path,
    problem: PDE | Evolution | Pair,
    settings: BaseModel,
    result: dict[str, Any],
    equation: str,
    command: str,
    drawn: dict[str, Picture],
) -> Path:
    """The pictures as files of these names, and a page with all of them."""
    figures = directory / "figures"
    figures.mkdir(exist_ok=True)
    for name, picture in drawn.items():
        picture.figure.savefig(figures / f"{name}.png", dpi=120)
    page = directory / "report.html"
    title = f"{problem.name}, {problem.dim} dimension{'s' * (problem.dim > 1)}"
    page.write_text(_page(title, settings.model_dump(), result, equation, command, list(drawn.values())))
    return page


def _page(
    title: str,
    settings: dict[str, Any],
    result: dict[str, Any],
    equation: str,
    command: str,
    drawn: list[Picture],
) -> str:
    pictures = "".join(f"<h2>{html.escape(p.title)}</h2>{_image(p.figure, p.title)}" for p in drawn)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE}</style></head><body>
<h1>{html.escape(title)}</h1>
<p class="equation">{html.escape(equation)}</p>
{_table({key: value for key, value in result.items() if value not in (None, "")})}
{pictures}
<h2>Settings</h2><div class="columns">{_table(settings)}</div>
<h2>Repeat it</h2><p><code>{html.escape(command)}</code></p>
</body></html>
"""


def _table(values: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><th>{html.escape(key)}</th><td>{html.escape(_text(value))}</td></tr>" for key, value in values.items()
    )
    return f"<table>{rows}</table>"


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _image(figure: Figure, name: str) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=120)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{html.escape(name)}" src="data:image/png;base64,{data}">'

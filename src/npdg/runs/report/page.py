"""A self-contained HTML page from sections of charts, pictures and tables. It knows nothing of equations or of runs."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

BLANK = 65535


@dataclass(frozen=True)
class Curve:
    """One line of a chart; entries of `y` that are None are gaps. `shade` is the number of its colour."""

    label: str
    x: Mapping[str, Sequence[float | None]]  # by the name of the axis, such as "seconds" and "steps"
    y: Sequence[float | None]
    shade: int | None = None


@dataclass(frozen=True)
class Chart:
    """Curves over one of several horizontal axes, which the reader chooses; the first is shown."""

    title: str
    curves: Sequence[Curve]
    log: bool = True


@dataclass(frozen=True)
class HeatMap:
    """Values over a rectangle, `values[i][j]` at `x[i], y[j]`, as colours from `low` to `high`; NaN is left blank."""

    title: str
    x: np.ndarray
    y: np.ndarray
    values: np.ndarray
    names: tuple[str, str]
    low: float
    high: float
    shades: str = "viridis"  # or magma


@dataclass(frozen=True)
class Picture:
    """A PNG, and the same for a dark page if there is one."""

    alt: str
    light: bytes
    dark: bytes | None = None


@dataclass(frozen=True)
class Table:
    """Rows of text under a header, or without one the keys and values of something."""

    rows: Sequence[Sequence[Any]]
    header: Sequence[str] = ()
    caption: str = ""


@dataclass(frozen=True)
class Bars:
    """Parts of a whole, as one bar with a legend."""

    label: str
    parts: Mapping[str, float]
    unit: str


@dataclass(frozen=True)
class Code:
    """Commands to copy."""

    text: str


Part = Chart | HeatMap | Picture | Table | Bars | Code


@dataclass(frozen=True)
class Section:
    """A headed part of the page; `note` is a sentence under the heading."""

    title: str
    parts: Sequence[Part]
    note: str = ""


@dataclass(frozen=True)
class Page:
    """All of a page; `equations` are ready MathML or HTML, `figures` the numbers to be seen first."""

    title: str
    subtitle: str
    equations: Sequence[str]
    figures: Mapping[str, str]
    sections: Sequence[Section]
    alert: str = ""

    def html(self) -> str:
        """The page: styles, script, data and pictures are all within it."""
        style, script = (
            files("npdg.runs.report").joinpath(name).read_text("utf-8") for name in ("page.css", "page.js")
        )
        # Nothing may be loaded or run but what is within the page.
        own = base64.b64encode(hashlib.sha256(f"\n{script}".encode()).digest()).decode()
        policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{own}'"
        equations = "".join(f'<div class="line">{line}</div>' for line in self.equations)
        figures = "".join(
            f"<div><dt>{_text(name)}</dt><dd>{_number(value)}</dd></div>" for name, value in self.figures.items()
        )
        alert = f'<p class="alert" role="note">{_text(self.alert)}</p>' if self.alert else ""
        return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{_text(self.title)}</title>
<link rel="icon" href="data:,">
<style>
{style}</style>
</head>
<body>
<header>
<h1>{_text(self.title)}</h1>
<p class="subtitle">{_text(self.subtitle)}</p>
{alert}
<div class="equation" role="group" aria-label="The equation">{equations}</div>
<dl class="figures">{figures}</dl>
</header>
<main>
{"".join(_section(section) for section in self.sections)}</main>
<script>
{script}</script>
</body>
</html>
"""


def _section(section: Section) -> str:
    note = f'<p class="note">{_text(section.note)}</p>' if section.note else ""
    kinds = {type(part) for part in section.parts}
    narrow = " maps" if kinds == {HeatMap} else " tables" if kinds == {Table} else ""
    body = note + f'<div class="parts{narrow}">{"".join(_part(part) for part in section.parts)}</div>'
    return f"<section><h2>{_text(section.title)}</h2>{body}</section>\n"


def _part(part: Part) -> str:
    match part:
        case Chart():
            return _chart(part)
        case HeatMap():
            return _map(part)
        case Picture():
            return _picture(part)
        case Table():
            return _table(part)
        case Bars():
            return _bars(part)
        case Code():
            return f"<pre><code>{_text(part.text)}</code></pre>"


def _chart(chart: Chart) -> str:
    curves = [
        {
            "label": curve.label,
            "shade": place if curve.shade is None else curve.shade,
            "x": {name: [_finite(v) for v in values] for name, values in curve.x.items()},
            "y": [_finite(v) for v in curve.y],
        }
        for place, curve in enumerate(chart.curves)
    ]
    return _drawn("chart", chart.title, {"log": chart.log, "curves": curves})


def _map(part: HeatMap) -> str:
    # 16 bits are finer than any colour; the last number is for what is outside of the domain.
    share = (part.values - part.low) / ((part.high - part.low) or 1.0)
    numbers = np.where(np.isnan(share), BLANK, np.clip(np.nan_to_num(share), 0, 1) * (BLANK - 1)).round().astype("<u2")
    data = {
        "shape": numbers.shape,
        "x": [float(part.x[0]), float(part.x[-1])],
        "y": [float(part.y[0]), float(part.y[-1])],
        "names": part.names,
        "range": [part.low, part.high],
        "shades": part.shades,
        "values": base64.b64encode(numbers.tobytes()).decode(),
    }
    return _drawn("map", part.title, data)


def _drawn(kind: str, title: str, data: dict[str, Any]) -> str:
    # Within a script element only what begins with "<" could end or change it.
    safe = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return (
        f'<figure class="{kind}"><figcaption>{_text(title)}</figcaption>'
        f'<script type="application/json">{safe}</script>'
        "<noscript>This is drawn by the script within the page.</noscript></figure>"
    )


def _picture(picture: Picture) -> str:
    source = lambda data: "data:image/png;base64," + base64.b64encode(data).decode()
    image = f'<img alt="{_text(picture.alt)}" src="{source(picture.light)}">'
    if picture.dark is None:
        return f'<figure class="picture plain">{image}</figure>'
    dark = f'<source media="screen and (prefers-color-scheme: dark)" srcset="{source(picture.dark)}">'
    return f'<figure class="picture"><picture>{dark}{image}</picture></figure>'


def _table(table: Table) -> str:
    caption = f"<caption>{_text(table.caption)}</caption>" if table.caption else ""
    row = lambda cells: f'<th scope="row">{_text(cells[0])}</th>' + "".join(f"<td>{_number(c)}</td>" for c in cells[1:])
    rows = "".join(f"<tr>{row(cells)}</tr>" for cells in table.rows)
    if not table.header:
        return f'<table class="facts">{caption}<tbody>{rows}</tbody></table>'
    names = "".join(f'<th scope="col">{_text(name)}</th>' for name in table.header)
    head = f"<thead><tr>{names}</tr></thead>"
    return f'<div class="scroll" tabindex="0"><table>{caption}{head}<tbody>{rows}</tbody></table></div>'


def _bars(bars: Bars) -> str:
    whole = sum(bars.parts.values()) or 1.0
    pieces = "".join(
        f'<span class="shade{k}" style="flex-grow:{max(value / whole, 0.002):.4f}"></span>'
        for k, value in enumerate(bars.parts.values())
    )
    legend = "".join(
        f'<li><i class="shade{k}"></i>{_text(name)} <b>{_number(value)} {bars.unit}</b> ({value / whole:.0%})</li>'
        for k, (name, value) in enumerate(bars.parts.items())
    )
    return (
        f'<figure class="bars"><figcaption>{_text(bars.label)}</figcaption>'
        f'<div class="bar" aria-hidden="true">{pieces}</div><ul>{legend}</ul></figure>'
    )


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def _text(value: Any) -> str:
    return html.escape(str(value))


def _number(value: Any) -> str:
    """A value as HTML; numbers such as 1.2e-08 as 1.2 × 10⁻⁸."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        value = f"{value:.0f}" if 1e3 <= abs(value) < 1e5 else f"{value:.3g}"
    mantissa, e, exponent = str(value).partition("e")
    if e and _is_number(mantissa) and _is_number(exponent):
        return f"{_text(mantissa)}&#8239;×&#8239;10<sup>{int(exponent)}</sup>".replace("<sup>-", "<sup>−")
    return _text(value)


def _is_number(text: str) -> bool:
    return text.lstrip("+-").replace(".", "", 1).isdecimal()

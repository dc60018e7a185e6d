"""What a person sees while a run goes on: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from npdg.training.records import Record, Report

GREEK = {"phi": "φ", "psi": "ψ"}
ROWS = 12
# A map is judged by a dozen figures, of which a line has room for these; metrics.csv has all.
SHOWN = ("rel_l2", "rel_h1", "map_l2", "uvp", "gap", "sliced_w2", "sliced_w2_floor", "rmse", "energy")


class Display:
    """Shows records as they come. Use as a context manager; pass `on_compiled` and the object itself as callback."""

    def __init__(self, console: Console, title: str, seconds: float | None, steps: int | None):
        self.console, self.title, self.seconds, self.steps = console, title, seconds, steps
        self.rows: deque[Record] = deque(maxlen=ROWS)
        self.status = "compiling …"
        self.live = Live(self._render(), console=console, refresh_per_second=4) if console.is_terminal else None
        self.last_line = -1.0

    def __enter__(self) -> Display:
        if self.live:
            self.live.start()
        else:
            self.console.print(f"{self.title}: {self.status}", highlight=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live:
            self.live.stop()

    def on_compiled(self, seconds: float) -> None:
        self.status = f"compiled in {seconds:.1f} s"
        if self.live:
            self.live.update(self._render())
        else:
            self.console.print(self.status, highlight=False)

    def __call__(self, number: int, report: Report) -> None:
        record = report.shown()
        self.rows.append(record)
        if self.live:
            self.live.update(self._render())
        elif record.seconds - self.last_line >= 2 or self.last_line < 0:
            self.last_line = record.seconds
            self.console.print(self._line(record), highlight=False, soft_wrap=True)

    def eta(self, record: Record) -> float:
        """Training seconds still to go, from the budget or from the pace so far."""
        by_time = self.seconds - record.seconds if self.seconds is not None else float("inf")
        by_steps = (
            (self.steps - record.step) * record.seconds / max(record.step, 1)
            if self.steps is not None
            else float("inf")
        )
        return max(min(by_time, by_steps), 0.0)

    def _line(self, record: Record) -> str:
        parts = [f"step {record.step}", f"{record.seconds:.1f} s"]
        parts += [f"{key} {value:.2e}" for key, value in _shown(record).items()]
        parts += [f"{key} {value:.2e}" for key, value in record.terms.items()]
        parts += [f"{_name(key)} {n} it. res. {record.residuals[key]:.0e}" for key, n in record.iterations.items()]
        return "  ".join([*parts, f"ETA {self.eta(record):.0f} s"])

    def _render(self) -> Group:
        head = Text(f"{self.title}   {self.status}", style="bold")
        if not self.rows:
            return Group(head)
        latest = self.rows[-1]
        table = Table(box=None, header_style="dim", pad_edge=False)
        players = list(latest.iterations)
        columns = [
            "step",
            "seconds",
            *_shown(latest),
            *(f"it. {_name(p)}" for p in players),
            *(f"res. {_name(p)}" for p in players),
        ]
        for column in columns:
            table.add_column(column, justify="right")
        for row in self.rows:
            table.add_row(
                str(row.step),
                f"{row.seconds:.1f}",
                *(f"{value:.2e}" for value in _shown(row).values()),
                *(str(row.iterations[p]) for p in players),
                *(f"{row.residuals[p]:.0e}" for p in players),
            )
        terms = Text("   ".join(f"{name} {value:+.2e}" for name, value in latest.terms.items()), style="dim")
        return Group(head, table, terms, Text(f"ETA {self.eta(latest):.0f} s", style="cyan"))


def _shown(record: Record) -> dict[str, float]:
    return {key: value for key, value in record.errors.items() if key in SHOWN}


def _name(player: str) -> str:
    return GREEK.get(player, player)

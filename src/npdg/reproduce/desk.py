"""What every reproduction works with: a directory, a scale, and races whose results are kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from rich.console import Console

from npdg.pair import Pair
from npdg.pde import PDE
from npdg.runs import race, store
from npdg.runs.files import write_json
from npdg.runs.race import TITLES, Entry, Lap

# What the quick scale changes in the paper's networks and samples, so that a step takes milliseconds.
SMALL: dict[str, Any] = {"width": 64, "psi_width": 32, "depth": 3, "n_interior": 1000, "n_boundary": 400}


@dataclass
class Desk:
    """Where a target is made. `say` prints and keeps a line; tables and pictures go to the directory."""

    directory: Path
    quick: bool
    console: Console
    should_stop: Callable[[], str | None] = lambda: None
    lines: list[str] = field(default_factory=list)

    def say(self, line: str) -> None:
        """A line for the reader, on the terminal and in summary.txt."""
        self.lines.append(line)
        self.console.print(line, highlight=False, soft_wrap=True)

    def scaled(self, *, seconds: float, paper_seconds: float, networks: bool = True) -> float:
        """The training seconds of a run at this scale; says what is smaller than in the paper."""
        if not self.quick:
            return paper_seconds
        smaller = f", networks and samples {SMALL}" if networks else ""
        self.say(f"scaled down: {seconds:g} s a run instead of {paper_seconds:g} s{smaller}")
        return seconds

    def small(self, **others: Any) -> dict[str, Any]:
        """Settings of a run with the paper's preset at this scale."""
        return {**(SMALL if self.quick else {}), **others}

    def race(self, problem: PDE | Pair, entries: Sequence[Entry], name: str, **budget: Any) -> list[Lap]:
        """Run the entries one after another; their curves go to NAME.csv."""
        laps: list[Lap] = []
        for entry in entries:
            if self.should_stop():
                break
            lap = race.run(problem, entry, should_stop=self.should_stop, **budget)
            laps.append(lap)
            end = " (diverged)" if lap.diverged else ""
            found = ", ".join(f"{TITLES[key]} {error:.2e}" for key, error in lap.errors.items())
            self.say(
                f"{problem.name} {problem.dim}-D, {entry.label}: {found} "
                f"after {lap.solution.seconds:.1f} s and {lap.solution.steps} steps{end}"
            )
        self.csv(name, race.rows(laps))
        return laps

    def csv(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Numbers as NAME.csv."""
        race.write_csv(self.directory / f"{name}.csv", rows)

    def picture(self, name: str, figure: Figure) -> None:
        """A figure as NAME.png."""
        figure.savefig(self.directory / f"{name}.png", dpi=120)

    def beside(self, what: str, ours: float | None, paper: float | None, unit: str = "s") -> None:
        """A figure of ours beside the paper's."""
        text = lambda value: "–" if value is None else f"{value:.4g} {unit}".strip()
        self.say(f"{what}: {text(ours)}; paper {text(paper)}")

    def close(self) -> None:
        """Write what was said, and the machine it was said on."""
        (self.directory / "summary.txt").write_text("\n".join(self.lines) + "\n")
        write_json(self.directory / store.ENVIRONMENT, store.environment())

"""What every reproduction works with: a directory, a scale, and races whose results are kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from rich.console import Console

from npdg.reproduce import PaperItem
from npdg.runs import race
from npdg.runs.environment import environment
from npdg.runs.files import write_json
from npdg.runs.race import TITLES, Entry, RaceRun
from npdg.runs.reading import ENVIRONMENT
from npdg.runs.save import new_directory
from npdg.training.progress import Budget, Events

# What the quick scale changes in the paper's networks and samples, so that a step takes milliseconds.
SMALL: dict[str, Any] = {"width": 64, "psi_width": 32, "depth": 3, "n_interior": 1000, "n_boundary": 400}


@dataclass
class Reproduction:
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

    def table2_entries(self, *, energy: bool = True) -> list[Entry]:
        """NPDG and the methods of Table 2, each with the paper's preset."""
        methods = {"NPDG, paper": "npdg", "PINN (Adam)": "pinn", "Deep Ritz": "deep-ritz", "WAN": "wan"}
        return [
            Entry(label, method, "paper", self.small())
            for label, method in methods.items()
            if energy or method != "deep-ritz"
        ]

    def race(
        self, problem: Any, entries: Sequence[Entry], name: str, seconds: float, events: Events | None = None
    ) -> list[RaceRun]:
        """Run the entries one after another; their curves go to NAME.csv."""
        runs: list[RaceRun] = []
        for entry in entries:
            if self.should_stop():
                break
            heard = replace(Events() if events is None else events, should_stop=self.should_stop)
            one = race.run(problem, entry, Budget(seconds), events=heard)
            runs.append(one)
            end = " (diverged)" if one.diverged else ""
            found = ", ".join(f"{TITLES[key]} {error:.2e}" for key, error in one.errors.items())
            self.say(
                f"{problem.name} {problem.dim}-D, {entry.label}: {found} "
                f"after {one.solution.seconds:.1f} s and {one.solution.training_steps} steps{end}"
            )
        self.csv(name, race.rows(runs))
        return runs

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
        write_json(self.directory / ENVIRONMENT, environment())


def run(
    card: PaperItem,
    scale: str,
    out: Path | None,
    console: Console,
    should_stop: Callable[[], str | None] = lambda: None,
) -> Path:
    """Make a target in a new directory, which is returned."""
    module, _, name = card.where.partition(":")
    make = getattr(import_module(f"npdg.reproduce.{module}"), name)
    work = Reproduction(new_directory(out, f"{card.name}-{scale}"), scale == "quick", console, should_stop)
    work.say(f"{card.name} ({scale}): {card.title}")
    make(work)
    work.close()
    console.print(f"written to {work.directory}", highlight=False, soft_wrap=True)
    return work.directory

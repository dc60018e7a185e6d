"""`npdg compare`: methods one after another on the same equation, clock and machine."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from npdg.errors import InputError
from npdg.methods import recipe
from npdg.pde import PDE
from npdg.presets import choose
from npdg.runs import race, store
from npdg.runs.config import Request, Target
from npdg.runs.execute import build
from npdg.runs.race import ACCURACIES, Entry, Lap
from npdg.settings import METHODS


def compare(
    request: Request,
    target: Target,
    methods: Sequence[str],
    seeds: int,
    console: Console,
    *,
    should_stop: Callable[[], str | None],
) -> dict[str, Any]:
    """Run every method for the seconds of the request with `seeds` seeds; the result is also in `compare.json`."""
    pde, _ = build(target)
    if not isinstance(pde, PDE):
        raise InputError(f"problem: {pde.name!r} is not allowed here; methods are compared on an npdg.PDE.")
    if pde.exact is None:
        raise InputError("exact: this equation has no exact solution to compare with; give PDE(exact=...).")
    entries = [Entry(name, name, request.preset, request.settings) for name in methods or _able(pde, request)]
    for entry in entries:
        _check(pde, entry)
    seconds = 60.0 if request.seconds is None else request.seconds
    directory = store.new_directory(request.out, f"{pde.name.replace('.py:', '-')}-{pde.dim}d-compare")
    laps: list[Lap] = []
    for seed in range(request.seed, request.seed + seeds):
        for entry in entries:
            if should_stop():
                break
            lap = race.run(pde, entry, seconds=seconds, seed=seed, should_stop=should_stop)
            laps.append(lap)
            console.print(_line(lap), highlight=False, soft_wrap=True)
    result = {
        "problem": pde.name,
        "dim": pde.dim,
        "preset": request.preset,
        "seconds": seconds,
        "seeds": list(range(request.seed, request.seed + seeds)),
        "stop_reason": should_stop() or "seconds",
        "run_dir": str(directory),
        "methods": {label: race.summary(group) for label, group in race.grouped(laps).items()},
    }
    (directory / "compare.json").write_text(json.dumps(result, indent=2) + "\n")
    (directory / store.ENVIRONMENT).write_text(json.dumps(store.environment(), indent=2) + "\n")
    race.write_csv(directory / "curves.csv", race.rows(laps))
    race.figure(laps, f"{pde.name}, {pde.dim} dimensions").savefig(directory / "curves.png", dpi=120)
    return result


def table(result: dict[str, Any]) -> Table:
    """Median errors, their spread over the seeds, and the time to each accuracy that anybody reached."""
    methods = result["methods"]
    keys = [f"{accuracy:.0e}" for accuracy in ACCURACIES]
    reached = [key for key in keys if any(m["seconds_to"][key] is not None for m in methods.values())]
    drawn = Table(box=None, header_style="bold")
    drawn.add_column("method")
    for title in ("rel. L²", "min – max", "rel. H¹", *(f"s to {key}" for key in reached)):
        drawn.add_column(title, justify="right")
    drawn.add_column("")
    for name, m in sorted(methods.items(), key=lambda item: item[1]["rel_l2"]):
        times = (m["seconds_to"][key] for key in reached)
        ends = {run["stop_reason"] for run in m["runs"]} - {"seconds"}
        drawn.add_row(
            name,
            f"{m['rel_l2']:.2e}",
            f"{m['rel_l2_min']:.1e} – {m['rel_l2_max']:.1e}",
            f"{m['rel_h1']:.2e}",
            *("–" if t is None else f"{t:.1f}" for t in times),
            ", ".join(sorted(ends)),
        )
    return drawn


def _able(pde: PDE, request: Request) -> list[str]:
    """Every method that takes this equation."""
    able = []
    for name in METHODS:
        try:
            _check(pde, Entry(name, name, request.preset, request.settings))
        except InputError:
            continue
        able.append(name)
    return able


def _check(pde: PDE, entry: Entry) -> None:
    recipe(pde, entry.method, choose(pde.name, pde.dim, entry.method, entry.preset, entry.settings))


def _line(lap: Lap) -> str:
    solution, detail = lap.solution, f": {lap.solution.detail}" if lap.solution.detail else ""
    return (
        f"{lap.entry.label}, seed {solution.seed}: relative L² {lap.rel_l2:.2e} after {solution.seconds:.1f} s and "
        f"{solution.steps} steps, stopped by {solution.stop_reason}{detail}"
    )

"""`npdg compare`: methods one after another on the same equation, clock and machine."""

from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from npdg.errors import InputError
from npdg.methods import recipe
from npdg.pair import Pair
from npdg.pde import PDE
from npdg.presets import choose
from npdg.runs import race, store
from npdg.runs.config import Request, Target
from npdg.runs.execute import build
from npdg.runs.files import write_json
from npdg.runs.race import ACCURACIES, TITLES, Entry, Lap
from npdg.settings import METHODS, Settings
from npdg.sizes import check_memory
from npdg.transport_settings import choose_transport


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
    problem, _ = build(target)
    if not isinstance(problem, PDE | Pair):
        raise InputError(
            f"problem: {problem.name!r} is not allowed here; methods are compared on an npdg.PDE or an npdg.Pair."
        )
    if isinstance(problem, PDE) and problem.exact is None:
        raise InputError("exact: this equation has no exact solution to compare with; give PDE(exact=...).")
    entries = [Entry(name, name, request.preset, request.settings) for name in methods or _able(problem, request)]
    for entry in entries:
        _check(problem, entry)
    seconds = 60.0 if request.seconds is None else request.seconds
    directory = store.new_directory(request.out, f"{problem.name.replace('.py:', '-')}-{problem.dim}d-compare")
    laps: list[Lap] = []
    for seed in range(request.seed, request.seed + seeds):
        for entry in entries:
            if should_stop():
                break
            lap = race.run(problem, entry, seconds=seconds, seed=seed, should_stop=should_stop)
            laps.append(lap)
            console.print(_line(lap), highlight=False, soft_wrap=True)
    result = {
        "problem": problem.name,
        "dim": problem.dim,
        "preset": request.preset,
        "seconds": seconds,
        "seeds": list(range(request.seed, request.seed + seeds)),
        "stop_reason": should_stop() or "seconds",
        "run_dir": str(directory),
        "methods": {label: race.summary(group) for label, group in race.grouped(laps).items()},
    }
    write_json(directory / "compare.json", result)
    write_json(directory / store.ENVIRONMENT, store.environment())
    race.write_csv(directory / "curves.csv", race.rows(laps))
    race.figure(laps, f"{problem.name}, {problem.dim} dimensions").savefig(directory / "curves.png", dpi=120)
    return result


def table(result: dict[str, Any]) -> Table:
    """Median errors, their spread over the seeds, and the time to each accuracy that anybody reached."""
    methods = result["methods"]
    keys = [f"{accuracy:.0e}" for accuracy in ACCURACIES]
    reached = [key for key in keys if any(m["seconds_to"][key] is not None for m in methods.values())]
    drawn = Table(box=None, header_style="bold")
    drawn.add_column("method")
    first, *others = [key for key in TITLES if all(key in m for m in methods.values())]
    for title in (TITLES[first], "min – max", *(TITLES[key] for key in others), *(f"s to {key}" for key in reached)):
        drawn.add_column(title, justify="right")
    drawn.add_column("")
    for name, m in sorted(methods.items(), key=lambda item: item[1][first]):
        times = (m["seconds_to"][key] for key in reached)
        ends = {run["stop_reason"] for run in m["runs"]} - {"seconds"}
        drawn.add_row(
            name,
            f"{m[first]:.2e}",
            f"{m[f'{first}_min']:.1e} – {m[f'{first}_max']:.1e}",
            *(f"{m[key]:.2e}" for key in others),
            *("–" if t is None else f"{t:.1f}" for t in times),
            ", ".join(sorted(ends)),
        )
    return drawn


def _able(problem: PDE | Pair, request: Request) -> list[str]:
    """Every method that takes this problem."""
    able, complaints = [], []
    for name in METHODS:
        try:
            _check(problem, Entry(name, name, request.preset, request.settings))
        except InputError as complaint:
            complaints.append(complaint)
        else:
            able.append(name)
    if not able:
        raise complaints[0]
    return able


def _check(problem: PDE | Pair, entry: Entry) -> None:
    asked = (problem.name, problem.dim, entry.method, entry.preset, entry.settings)
    chosen = choose_transport(*asked) if isinstance(problem, Pair) else choose(*asked)
    check_memory(chosen, problem.dim)
    if isinstance(chosen, Settings):
        assert isinstance(problem, PDE)
        recipe(problem, entry.method, chosen)


def _line(lap: Lap) -> str:
    solution, detail = lap.solution, f": {lap.solution.detail}" if lap.solution.detail else ""
    title = TITLES[next(iter(lap.errors))]
    return (
        f"{lap.entry.label}, seed {solution.seed}: {title} {lap.error:.2e} after {solution.seconds:.1f} s and "
        f"{solution.steps} steps, stopped by {solution.stop_reason}{detail}"
    )

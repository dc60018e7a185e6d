"""`npdg compare`: methods one after another on the same equation, clock and machine."""

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from npdg.driver import make_plan
from npdg.errors import InputError
from npdg.methods.registry import method_names
from npdg.runs import race
from npdg.runs.environment import environment
from npdg.runs.execute import Surroundings, build
from npdg.runs.figures.draw import write_figure
from npdg.runs.files import write_json
from npdg.runs.race import ACCURACIES, TITLES, Entry, RaceRun
from npdg.runs.reading import ENVIRONMENT
from npdg.runs.request import Request, Target
from npdg.runs.save import new_directory
from npdg.training.progress import Budget, Events


def compare(
    request: Request, target: Target, methods: Sequence[str], seeds: int, around: Surroundings
) -> dict[str, Any]:
    """Run every method for the seconds of the request with `seeds` seeds; the result is also in `compare.json`."""
    problem = build(target)
    entries = [Entry(name, name, request.preset, request.settings) for name in methods or _able(problem, request)]
    for entry in entries:
        _check(problem, entry)
    seconds = 60.0 if request.seconds is None else request.seconds
    directory = new_directory(request.out, f"{problem.name.replace('.py:', '-')}-{problem.dim}d-compare")
    numbers = list(range(request.seed, request.seed + seeds))
    about = {
        "problem": problem.name,
        "dim": problem.dim,
        "preset": request.preset,
        "seconds": seconds,
        "seeds": numbers,
    }
    write_json(directory / ENVIRONMENT, environment())
    runs: list[RaceRun] = []

    def written() -> dict[str, Any]:
        stop, methods = around.should_stop() or "seconds", race.grouped(runs)
        summaries = {label: race.summary(group) for label, group in methods.items()}
        result = {**about, "stop_reason": stop, "run_dir": str(directory), "methods": summaries}
        write_json(directory / "compare.json", result)
        race.write_csv(directory / "curves.csv", race.rows(runs))
        return result

    result = written()
    for seed in numbers:
        for entry in entries:
            if around.should_stop():
                break
            events = Events(should_stop=around.should_stop)
            runs.append(race.run(problem, entry, Budget(seconds), seed, events))
            around.note(_line(runs[-1]))
            result = written()  # so that nothing that has finished is lost
    write_figure(race.figure(runs, f"{problem.name}, {problem.dim} dimensions"), directory / "curves.png")
    return result if runs else written()


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


def _able(problem: Any, request: Request) -> list[str]:
    """Every method that takes this problem."""
    able, complaints = [], []
    for name in method_names(problem.kind):
        try:
            _check(problem, Entry(name, name, request.preset, request.settings))
        except InputError as complaint:
            complaints.append(complaint)
        else:
            able.append(name)
    if not able:
        raise complaints[0]
    return able


def _check(problem: Any, entry: Entry) -> None:
    plan = make_plan(problem, entry.method, Budget(), preset=entry.preset, **entry.settings)
    plan.method.check_comparable(problem)


def _line(one: RaceRun) -> str:
    result, detail = one.solution, f": {one.solution.detail}" if one.solution.detail else ""
    title = TITLES[next(iter(one.errors))]
    return (
        f"{one.entry.label}, seed {result.seed}: {title} {one.error:.2e} after {result.seconds:.1f} s and "
        f"{result.training_steps} steps, stopped by {result.stop_reason}{detail}"
    )

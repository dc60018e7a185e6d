"""A run from the command line: build the equation, make its directory, solve with a display, write everything."""

import warnings
from collections.abc import Callable
from typing import Any

from rich.console import Console

from npdg.methods import recipe
from npdg.pde import PDE
from npdg.presets import choose
from npdg.problems.user import load_file
from npdg.runs import report, store
from npdg.runs.config import Request, Target
from npdg.runs.display import Display
from npdg.solution import solve as solve_pde


def build(target: Target) -> tuple[PDE, str]:
    """The equation a target names, and how it is written."""
    if target.card is not None:
        assert target.dim is not None
        return target.card.build(target.dim, **target.options), target.card.equation
    assert target.file is not None
    return load_file(*target.file, target.dim), "−div flux(u) + reaction(u) = source"


def solve(
    request: Request, target: Target, console: Console, *, command: str, should_stop: Callable[[], str | None]
) -> dict[str, Any]:
    """Carry out a request and return the result that is also in `result.json`."""
    pde, equation = build(target)
    settings = choose(pde.name, pde.dim, request.method, request.preset, request.settings)
    recipe(pde, request.method, settings)  # refuses what the method cannot take before anything is written
    seconds = 60.0 if request.seconds is None and request.steps is None else request.seconds

    stem = f"{pde.name.replace('.py:', '-')}-{pde.dim}d-{request.method}"
    directory = store.new_directory(request.out, stem)
    write_config = lambda chosen: store.write_config(
        directory, pde, request.method, request.preset, request.seed, chosen
    )
    write_config(settings)
    title = f"{pde.name} {pde.dim}-D, {request.method}, {settings.precision}"
    with Display(console, title, seconds, request.steps) as display, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # divergence is reported by the exit code and one line
        solution = solve_pde(
            pde,
            request.method,
            seconds=seconds,
            steps=request.steps,
            seed=request.seed,
            preset=request.preset,
            callbacks=[store.MetricsFile(directory), display],
            on_compiled=display.on_compiled,
            on_chosen=write_config,
            should_stop=should_stop,
            **request.settings,
        )
    result = store.write_solution(directory, solution)
    report.write(directory, solution, result, equation, command)
    return result

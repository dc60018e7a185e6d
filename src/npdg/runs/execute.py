"""A run from the command line: build the equation, make its directory, solve with a display, write everything."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import BaseModel
from rich.console import Console

from npdg.evolution import Evolution, implicit_step
from npdg.loop import Record
from npdg.marching import TimeStep
from npdg.methods import recipe
from npdg.pair import Pair
from npdg.pde import PDE
from npdg.presets import choose
from npdg.problems.user import load_file
from npdg.runs import closing, store, trajectories, transports
from npdg.runs.config import Request, Target
from npdg.runs.display import Display
from npdg.runs.tracking import trackers
from npdg.solution import solve as solve_pde
from npdg.trajectory import Trajectory, march, marching_settings
from npdg.transport_settings import choose_transport
from npdg.transportation import carry


def build(target: Target) -> tuple[PDE | Evolution | Pair, str]:
    """The problem a target names, and how it is written."""
    if target.card is not None:
        assert target.dim is not None
        return target.card.build(target.dim, **target.options), target.card.equation
    assert target.file is not None
    problem = load_file(*target.file, target.dim)
    if isinstance(problem, Pair):
        return problem, "the map T that carries ρ₀ to ρ₁ at the least cost E₀|x − T(x)|²/2"
    left = "∂u/∂t " if isinstance(problem, Evolution) else ""
    return problem, f"{left}−div flux(u) + reaction(u) = source"


def solve(
    request: Request,
    target: Target,
    console: Console,
    *,
    command: str,
    should_stop: Callable[[], str | None],
    track: Sequence[str] = (),
) -> dict[str, Any]:
    """Carry out a request and return the result that is also in `result.json`; `track` names tracking services."""
    problem, _ = build(target)
    if isinstance(problem, Evolution):
        return _march(request, problem, console, command, should_stop, track)
    if isinstance(problem, Pair):
        return transport(request, problem, console, command, should_stop, track)
    return _solve(request, problem, console, command, should_stop, track)


def _solve(
    request: Request,
    pde: PDE,
    console: Console,
    command: str,
    should_stop: Callable[[], str | None],
    track: Sequence[str],
) -> dict[str, Any]:
    settings = choose(pde.name, pde.dim, request.method, request.preset, request.settings)
    recipe(pde, request.method, settings)  # refuses what the method cannot take before anything is written
    seconds = 60.0 if request.seconds is None and request.steps is None else request.seconds

    directory = store.new_directory(request.out, _stem(pde, request.method))
    write_config = lambda chosen: store.write_config(
        directory, pde, request.method, request.preset, request.seed, chosen
    )
    write_config(settings)
    closing.begin(directory, command)
    title = f"{pde.name} {pde.dim}-D, {request.method}, {settings.precision}"
    with (
        trackers(track, directory, directory.name, _about(pde, request, settings)) as tracking,
        Display(console, title, seconds, request.steps) as display,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", RuntimeWarning)  # divergence is reported by the exit code and one line
        solution = solve_pde(
            pde,
            request.method,
            seconds=seconds,
            steps=request.steps,
            seed=request.seed,
            preset=request.preset,
            callbacks=[store.MetricsFile(directory), display, *tracking],
            on_compiled=display.on_compiled,
            on_chosen=write_config,
            should_stop=should_stop,
            **request.settings,
        )
    result = store.write_solution(directory, solution)
    closing.close(directory, solution)
    return result


def _march(
    request: Request,
    evolution: Evolution,
    console: Console,
    command: str,
    should_stop: Callable[[], str | None],
    track: Sequence[str],
) -> dict[str, Any]:
    settings = marching_settings(evolution, request.method, request.preset, request.settings)
    recipe(implicit_step(evolution), request.method, settings)
    directory = store.new_directory(request.out, _stem(evolution, request.method))
    trajectories.write_config(directory, Trajectory(evolution, request.method, request.preset, settings, request.seed))
    closing.begin(directory, command)
    title = f"{evolution.name}, {evolution.steps} time steps to t = {evolution.until:g}, {request.method}"
    with (
        trackers(track, directory, directory.name, _about(evolution, request, settings)) as tracking,
        Display(console, title, request.seconds, evolution.steps) as display,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", RuntimeWarning)
        trajectory = march(
            evolution,
            request.method,
            seconds=request.seconds,
            steps=request.steps,
            seed=request.seed,
            preset=request.preset,
            callbacks=[trajectories.metrics_file(directory), _shown_by(display), *tracking],
            should_stop=should_stop,
            **request.settings,
        )
    result = trajectories.write_result(directory, trajectory)
    closing.close(directory, trajectory)
    return result


def transport(
    request: Request,
    pair: Pair,
    console: Console,
    command: str,
    should_stop: Callable[[], str | None],
    track: Sequence[str] = (),
) -> dict[str, Any]:
    """Carry one measure to another and return the result that is also in `result.json`."""
    settings = choose_transport(pair.name, pair.dim, request.method, request.preset, request.settings)
    seconds = 60.0 if request.seconds is None and request.steps is None else request.seconds
    directory = store.new_directory(request.out, _stem(pair, request.method))
    transports.write_config(directory, pair, request.method, request.preset, request.seed, settings)
    closing.begin(directory, command)
    title = f"{pair.name} {pair.dim}-D, {request.method}, {settings.precision}"
    with (
        trackers(track, directory, directory.name, _about(pair, request, settings)) as tracking,
        Display(console, title, seconds, request.steps) as display,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", RuntimeWarning)
        solution = carry(
            pair,
            request.method,
            seconds=seconds,
            steps=request.steps,
            seed=request.seed,
            preset=request.preset,
            callbacks=[store.MetricsFile(directory), display, *tracking],
            on_compiled=display.on_compiled,
            should_stop=should_stop,
            **request.settings,
        )
    result = transports.write_result(directory, solution)
    closing.close(directory, solution)
    return result


def _shown_by(display: Display) -> Callable[[int, TimeStep], None]:
    """A callback that shows time steps where the display shows the steps of a run."""
    spent = 0.0

    def show(number: int, step: TimeStep) -> None:
        nonlocal spent
        spent += step.seconds
        if step.compile_seconds > 0:
            display.on_compiled(step.compile_seconds)
        measured = {"rmse": step.rmse, "energy": step.energy}
        display(
            number,
            Record(
                number,
                spent,
                {"t": step.time},
                {"u": len(step.history)},
                {"u": step.residual},
                {name: value for name, value in measured.items() if value is not None},
            ),
        )

    return show


def _about(problem: PDE | Evolution | Pair, request: Request, settings: BaseModel) -> dict[str, Any]:
    """What a tracking service shows as the parameters of a run."""
    run = {"problem": problem.name, "dim": problem.dim, "method": request.method, "preset": request.preset}
    return {**run, "seed": request.seed, **problem.options, **settings.model_dump()}


def _stem(problem: PDE | Evolution | Pair, method: str) -> str:
    return f"{problem.name.replace('.py:', '-')}-{problem.dim}d-{method}"

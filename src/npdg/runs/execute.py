"""A run from the command line: build the equation, make its directory, solve with a display, write everything."""

import shlex
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from npdg.errors import InputError
from npdg.evolution import Evolution, implicit_step
from npdg.loop import Record
from npdg.marching import TimeStep
from npdg.methods import recipe
from npdg.pde import PDE
from npdg.presets import candidates
from npdg.problems.user import load_file
from npdg.runs import lock, place, report, store, time_plots, trajectories
from npdg.runs.config import Request, Target
from npdg.runs.display import Display
from npdg.runs.place import Place
from npdg.runs.signals import EXIT_CODES
from npdg.runs.snapshots import keep_march, keep_run
from npdg.settings import Settings
from npdg.solution import solve as solve_pde
from npdg.stopping import read_until, stopping_rule
from npdg.trajectory import march, marching_settings


@dataclass(frozen=True)
class Scene:
    """What surrounds a run: the terminal, the command that was given, and whether to stop."""

    console: Console
    command: str
    should_stop: Callable[[], str | None]

    def note(self, sentence: str) -> None:
        """A line for the person at the terminal."""
        self.console.print(sentence, highlight=False, soft_wrap=True)

    def stopped(self, reason: str, directory: Path) -> None:
        """If a run was asked to stop, say how it goes on; its checkpoint is written, its report is still to come."""
        if reason in EXIT_CODES:
            self.note(f"{reason}; go on with: npdg resume {shlex.quote(str(directory))}")


def build(target: Target) -> tuple[PDE | Evolution, str]:
    """The equation a target names, and how it is written."""
    if target.card is not None:
        assert target.dim is not None
        return target.card.build(target.dim, **target.options), target.card.equation
    assert target.file is not None
    problem = load_file(*target.file, target.dim)
    left = "∂u/∂t " if isinstance(problem, Evolution) else ""
    return problem, f"{left}−div flux(u) + reaction(u) = source"


def solve(
    request: Request, target: Target, console: Console, *, command: str, should_stop: Callable[[], str | None]
) -> dict[str, Any]:
    """Carry out a request and return the result that is also in `result.json`."""
    problem, equation = build(target)
    request = _with_budget(request, problem)
    options = _options(request, problem)  # refuses what cannot be done before anything is written
    directory = store.new_directory(request.out, _stem(problem, request.method))
    with lock.held(directory):
        where = place.new(directory, request, target, problem)
        where.write_config(options[0] if len(options) == 1 or request.steps is not None else None)
        where.write_environment(options[0].precision)
        return _carry_out(where, options[0], equation, Scene(console, command, should_stop))


def resume(
    directory: Path, request: Request, target: Target, console: Console, *, should_stop: Callable[[], str | None]
) -> dict[str, Any]:
    """Go on with a run in its own directory, to the budget of the request."""
    problem, equation = build(target)
    request = _with_budget(request, problem)
    options = _options(request, problem)
    scene = Scene(console, f"npdg solve --config {directory / store.CONFIG}", should_stop)
    with lock.held(directory):
        warn = lambda text: scene.note(f"resume: {text}")
        where = place.reopen(directory, request, target, problem, warn)
        if changed := where.changed(options[0]):
            warn(f"{', '.join(changed)} in config.toml is not what the checkpoint had; the run goes on with it")
        if len(options) == 1 or request.steps is not None:
            where.write_config(options[0])
        return _carry_out(where, options[0], equation, scene)


def _with_budget(request: Request, problem: PDE | Evolution) -> Request:
    """A march goes to its tolerance; an equation has a minute unless told otherwise."""
    if isinstance(problem, Evolution) or request.seconds is not None or request.steps is not None:
        return request
    return request.model_copy(update={"seconds": 60.0})


def _options(request: Request, problem: PDE | Evolution) -> list[Settings]:
    """The settings that a run may use, or an `InputError` if there are none."""
    if isinstance(problem, Evolution):
        if request.until is not None:
            raise InputError("until: a march ends at its last time; set tolerance=1e-4, say, for each of its steps.")
        if request.rollbacks:
            raise InputError("rollbacks: a march has none; leave it out.")
        settings = marching_settings(problem, request.method, request.preset, request.settings)
        recipe(implicit_step(problem), request.method, settings)
        return [settings]
    if request.until is not None:
        stopping_rule(read_until(request.until), request.method, exact=problem.exact is not None)
    options = candidates(problem.name, problem.dim, request.method, request.preset, request.settings)
    recipe(problem, request.method, options[0])
    return options


def _carry_out(where: Place, settings: Settings, equation: str, scene: Scene) -> dict[str, Any]:
    if isinstance(where.problem, Evolution):
        return _march(where, where.problem, settings, equation, scene)
    return _solve(where, where.problem, settings, equation, scene)


def _solve(where: Place, pde: PDE, settings: Settings, equation: str, scene: Scene) -> dict[str, Any]:
    request, directory = where.request, where.directory
    title = f"{pde.name} {pde.dim}-D, {request.method}, {settings.precision}"
    writer = where.writer()

    def choose(chosen: Settings) -> None:
        where.write_config(chosen)
        writer.facts["settings"] = chosen.model_dump()

    with Display(scene.console, title, request.seconds, request.steps) as display, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # divergence is reported by the exit code and one line
        solution = solve_pde(
            pde,
            request.method,
            seconds=request.seconds,
            steps=request.steps,
            seed=request.seed,
            preset=request.preset,
            until=request.until,
            rollbacks=request.rollbacks,
            callbacks=[store.MetricsFile(directory), display],
            on_compiled=display.on_compiled,
            on_chosen=choose,
            on_note=scene.note,
            should_stop=scene.should_stop,
            keep=keep_run(writer, where.past, store.history(directory)),
            **request.settings,
        )
    scene.stopped(solution.stop_reason, directory)
    result = store.write_solution(directory, solution)
    report.write(directory, solution, result, equation, scene.command)
    return result


def _march(where: Place, evolution: Evolution, settings: Settings, equation: str, scene: Scene) -> dict[str, Any]:
    request, directory, writer = where.request, where.directory, where.writer()
    writer.facts["settings"] = settings.model_dump()
    title = f"{evolution.name}, {evolution.steps} time steps to t = {evolution.until:g}, {request.method}"
    with Display(scene.console, title, request.seconds, evolution.steps) as display, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        trajectory = march(
            evolution,
            request.method,
            seconds=request.seconds,
            steps=request.steps,
            seed=request.seed,
            preset=request.preset,
            callbacks=[trajectories.metrics_file(directory), _shown_by(display)],
            should_stop=scene.should_stop,
            keep=keep_march(writer, where.past),
            **request.settings,
        )
    scene.stopped(trajectory.stop_reason, directory)
    result = trajectories.write_result(directory, trajectory)
    figures = {"march": report.Picture("Solutions, errors and energy", time_plots.trajectory_figure(trajectory))}
    report.write_page(directory, evolution, settings, result, equation, scene.command, figures)
    return result


def _shown_by(display: Display) -> Callable[[TimeStep], None]:
    """A callback that shows time steps where the display shows the steps of a run."""
    spent = 0.0

    def show(step: TimeStep) -> None:
        nonlocal spent
        spent += step.seconds
        if step.compile_seconds > 0:
            display.on_compiled(step.compile_seconds)
        measured = {"rmse": step.rmse, "energy": step.energy}
        display(
            Record(
                step.number,
                spent,
                {"t": step.time},
                {"u": step.steps},
                {"u": step.residual},
                {name: value for name, value in measured.items() if value is not None},
            )
        )

    return show


def _stem(problem: PDE | Evolution, method: str) -> str:
    return f"{problem.name.replace('.py:', '-')}-{problem.dim}d-{method}"

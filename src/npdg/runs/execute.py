"""A run from the command line: build the equation, make its directory, solve with a display, write everything."""

import shlex
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from rich.console import Console

from npdg.errors import InputError
from npdg.evolution import Evolution, implicit_step
from npdg.loop import Record
from npdg.marching import TimeStep
from npdg.methods import recipe
from npdg.pair import Pair
from npdg.pde import PDE
from npdg.presets import candidates
from npdg.problems.user import load_file
from npdg.runs import closing, lock, place, store, trajectories, transports
from npdg.runs.config import Request, Target
from npdg.runs.display import Display
from npdg.runs.place import Place
from npdg.runs.points import read_points
from npdg.runs.signals import EXIT_CODES
from npdg.runs.snapshots import keep_march, keep_run
from npdg.runs.tracking import Tracker, trackers
from npdg.settings import Settings
from npdg.sizes import check_memory
from npdg.solution import solve as solve_pde
from npdg.stopping import read_until, stopping_rule, transport_rule
from npdg.trajectory import march, marching_settings
from npdg.transport_settings import TransportSettings, choose_transport
from npdg.transportation import carry

LEAST_COST = "the map T that carries ρ₀ to ρ₁ at the least cost E₀|x − T(x)|²/2"


@dataclass(frozen=True)
class Scene:
    """What surrounds a run: the terminal, whether to stop, and the tracking services it reports to."""

    console: Console
    should_stop: Callable[[], str | None]
    track: Sequence[str] = ()

    def note(self, sentence: str) -> None:
        """A line for the person at the terminal."""
        self.console.print(sentence, highlight=False, soft_wrap=True)

    def stopped(self, reason: str, directory: Path) -> None:
        """If a run was asked to stop, say how it goes on; its checkpoint is written, its report is still to come."""
        if reason in EXIT_CODES:
            self.note(f"{reason}; go on with: npdg resume {shlex.quote(str(directory))}")


Problem = PDE | Evolution | Pair


def build(target: Target) -> tuple[Problem, str]:
    """The problem a target names, and how it is written."""
    if target.card is not None:
        assert target.dim is not None
        return target.card.build(target.dim, **target.options), target.card.equation
    if target.samples is not None:
        first, second = (
            read_points(path, None, side) for path, side in zip(target.samples, ("source", "target"), strict=True)
        )
        return Pair(first, second), LEAST_COST
    assert target.file is not None
    problem = load_file(*target.file, target.dim)
    if isinstance(problem, Pair):
        return problem, LEAST_COST
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
    request = _with_budget(request, problem)
    options = _options(request, problem)  # refuses what cannot be done before anything is written
    directory = store.new_directory(request.out, _stem(problem, request.method))
    with lock.held(directory):
        where = place.new(directory, request, target, problem)
        where.write_config(options[0] if len(options) == 1 or request.steps is not None else None)
        where.write_environment(options[0].precision)
        closing.begin(directory, command)
        return _carry_out(where, options[0], Scene(console, should_stop, track))


def resume(
    directory: Path, request: Request, target: Target, console: Console, *, should_stop: Callable[[], str | None]
) -> dict[str, Any]:
    """Go on with a run in its own directory, to the budget of the request."""
    problem, _ = build(target)
    request = _with_budget(request, problem)
    options = _options(request, problem)
    scene = Scene(console, should_stop)
    with lock.held(directory):
        warn = lambda text: scene.note(f"resume: {text}")
        where = place.reopen(directory, request, target, problem, warn)
        if changed := where.changed(options[0]):
            warn(f"{', '.join(changed)} in config.toml is not what the checkpoint had; the run goes on with it")
        if len(options) == 1 or request.steps is not None:
            where.write_config(options[0])
        return _carry_out(where, options[0], scene)


def _with_budget(request: Request, problem: Problem) -> Request:
    """A march goes to its tolerance; an equation has a minute unless told otherwise."""
    if isinstance(problem, Evolution) or request.seconds is not None or request.steps is not None:
        return request
    return request.model_copy(update={"seconds": 60.0})


def _options(request: Request, problem: Problem) -> Sequence[Settings | TransportSettings]:
    """The settings that a run may use, or an `InputError` if there are none."""
    if isinstance(problem, Evolution):
        if request.until is not None:
            raise InputError("until: a march ends at its last time; set tolerance=1e-4, say, for each of its steps.")
        settings = marching_settings(problem, request.method, request.preset, request.settings)
        check_memory(settings, problem.dim)
        recipe(implicit_step(problem), request.method, settings)
        return [settings]
    if isinstance(problem, Pair):
        if request.until is not None:
            transport_rule(read_until(request.until), exact=problem.truth is not None)
        chosen = choose_transport(problem.name, problem.dim, request.method, request.preset, request.settings)
        check_memory(chosen, problem.dim)
        return [chosen]
    if request.until is not None:
        stopping_rule(read_until(request.until), request.method, exact=problem.exact is not None)
    options = candidates(problem.name, problem.dim, request.method, request.preset, request.settings)
    for option in options:
        check_memory(option, problem.dim)
    recipe(problem, request.method, options[0])
    return options


def settings_of(request: Request, target: Target) -> Sequence[Settings | TransportSettings]:
    """The settings that a run may use, with those that come from the problem itself."""
    return _options(request, build(target)[0])


def _carry_out(where: Place, settings: Settings | TransportSettings, scene: Scene) -> dict[str, Any]:
    if isinstance(where.problem, Pair):
        return _transport(where, where.problem, settings, scene)
    assert isinstance(settings, Settings)
    if isinstance(where.problem, Evolution):
        return _march(where, where.problem, settings, scene)
    return _solve(where, where.problem, settings, scene)


@contextmanager
def _watched(
    where: Place, settings: BaseModel, scene: Scene, title: str, steps: int | None
) -> Iterator[tuple[Display, list[Tracker]]]:
    """The display of a run and its trackers, while it lasts."""
    with (
        trackers(scene.track, where.directory, where.directory.name, where.about(settings)) as tracking,
        Display(scene.console, title, where.request.seconds, steps) as display,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", RuntimeWarning)  # divergence is reported by the exit code and one line
        yield display, tracking


def _solve(where: Place, pde: PDE, settings: Settings, scene: Scene) -> dict[str, Any]:
    request, directory = where.request, where.directory
    title = f"{pde.name} {pde.dim}-D, {request.method}, {settings.precision}"
    writer = where.writer()

    def choose(chosen: Settings) -> None:
        where.write_config(chosen)
        writer.facts["settings"] = chosen.model_dump()

    with _watched(where, settings, scene, title, request.steps) as (display, tracking):
        solution = solve_pde(
            pde,
            request.method,
            seconds=request.seconds,
            steps=request.steps,
            seed=request.seed,
            preset=request.preset,
            until=request.until,
            rollbacks=request.rollbacks,
            callbacks=[store.MetricsFile(directory), display, *tracking],
            on_compiled=display.on_compiled,
            on_chosen=choose,
            on_note=scene.note,
            should_stop=scene.should_stop,
            keep=keep_run(writer, where.past, store.history(directory)),
            **request.settings,
        )
    scene.stopped(solution.stop_reason, directory)
    result = store.write_solution(directory, solution)
    closing.close(directory, solution)
    return result


def _march(where: Place, evolution: Evolution, settings: Settings, scene: Scene) -> dict[str, Any]:
    request, directory, writer = where.request, where.directory, where.writer()
    writer.facts["settings"] = settings.model_dump()
    title = f"{evolution.name}, {evolution.steps} time steps to t = {evolution.until:g}, {request.method}"
    with _watched(where, settings, scene, title, evolution.steps) as (display, tracking):
        trajectory = march(
            evolution,
            request.method,
            seconds=request.seconds,
            steps=request.steps,
            seed=request.seed,
            preset=request.preset,
            rollbacks=request.rollbacks,
            callbacks=[trajectories.metrics_file(directory), _shown_by(display), *tracking],
            on_note=scene.note,
            should_stop=scene.should_stop,
            keep=keep_march(writer, where.past),
            **request.settings,
        )
    scene.stopped(trajectory.stop_reason, directory)
    result = trajectories.write_result(directory, trajectory)
    closing.close(directory, trajectory)
    return result


def _transport(where: Place, pair: Pair, settings: BaseModel, scene: Scene) -> dict[str, Any]:
    assert isinstance(settings, TransportSettings)
    request, directory, writer = where.request, where.directory, where.writer()
    writer.facts["settings"] = settings.model_dump()
    transports.write_samples(directory, pair)
    title = f"{pair.name} {pair.dim}-D, {request.method}, {settings.precision}"
    with _watched(where, settings, scene, title, request.steps) as (display, tracking):
        solution = carry(
            pair,
            request.method,
            seconds=request.seconds,
            steps=request.steps,
            seed=request.seed,
            preset=request.preset,
            until=request.until,
            rollbacks=request.rollbacks,
            callbacks=[store.MetricsFile(directory), display, *tracking],
            on_compiled=display.on_compiled,
            on_note=scene.note,
            should_stop=scene.should_stop,
            keep=keep_run(writer, where.past, store.history(directory)),
            **request.settings,
        )
    scene.stopped(solution.stop_reason, directory)
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
                step.number,
                spent,
                {"t": step.time},
                {"u": step.steps},
                {"u": step.residual},
                {name: value for name, value in measured.items() if value is not None},
            ),
        )

    return show


def _stem(problem: Problem, method: str) -> str:
    return f"{problem.name.replace('.py:', '-')}-{problem.dim}d-{method}"

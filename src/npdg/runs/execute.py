"""A run from the command line: plan it, make its directory, carry it out with a display, write everything."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from npdg.catalogue.user import load_file
from npdg.driver import make_plan, run
from npdg.methods.base import Plan
from npdg.problem.transport import Transport
from npdg.results.base import Result
from npdg.runs import finalise, lock
from npdg.runs.crash import crash_goes_to
from npdg.runs.directory import RunDirectory
from npdg.runs.display import Display
from npdg.runs.export.points import read_points
from npdg.runs.request import Request, Target
from npdg.runs.save import MetricsFile, new_directory, write_result, write_samples
from npdg.runs.signals import EXIT_CODES
from npdg.runs.terminal import clean
from npdg.runs.tracking.services import Tracker, trackers
from npdg.training.progress import Budget, Events


@dataclass(frozen=True)
class Surroundings:
    """What surrounds a run: the terminal, whether to stop, and the tracking services it reports to.

    `on_leaving` is told what to do before the process is left in the middle of something.
    """

    console: Console
    should_stop: Callable[[], str | None]
    track: Sequence[str] = ()
    on_leaving: Callable[[Callable[[str], object]], None] = lambda last_words: None

    def note(self, sentence: str) -> None:
        """A line for the person at the terminal."""
        self.console.print(clean(sentence), highlight=False, soft_wrap=True, markup=False)


@dataclass(frozen=True)
class Finished:
    """A run that has ended: its result, and the figures that are also in `result.json`."""

    result: Result
    figures: dict[str, Any]


def build(target: Target) -> Any:
    """The problem a target names."""
    if target.card is not None:
        assert target.dim is not None
        return target.card.build(target.dim, **target.options)
    if target.samples is not None:
        source, goal = target.samples
        return Transport(read_points(source, None, "source"), read_points(goal, None, "target"))
    assert target.file is not None
    return load_file(*target.file, target.dim)


def plan_of(request: Request, target: Target) -> Plan:
    """What a request means, checked; nothing is written."""
    budget = Budget(request.seconds, request.steps, request.until, request.rollbacks)
    return make_plan(build(target), request.method, budget, request.seed, preset=request.preset, **request.settings)


def solve(request: Request, target: Target, around: Surroundings, command: str) -> Finished:
    """Carry out a request in a new directory."""
    plan = plan_of(request, target)
    stem = f"{plan.problem.name.replace('.py:', '-')}-{plan.problem.dim}d-{request.method}"
    path = new_directory(request.out, stem)
    with lock.held(path):
        crash_goes_to(path)
        directory = RunDirectory.new(path, request, target, plan)
        write_samples(path, plan.problem)
        finalise.begin(path, command)
        return _carry_out(directory, around)


def resume(path: Path, request: Request, target: Target, around: Surroundings) -> Finished:
    """Go on with a run in its own directory, to the budget of the request."""
    plan = plan_of(request, target)
    with lock.held(path):
        crash_goes_to(path)
        warn = lambda text: around.note(f"resume: {text}")
        return _carry_out(RunDirectory.reopened(path, request, target, plan, warn), around)


def _carry_out(directory: RunDirectory, around: Surroundings) -> Finished:
    plan, path, writer = directory.plan, directory.path, directory.writer()

    def leave(reason: str) -> None:
        directory.last_words(writer, reason)
        _say_how_to_go_on(around, path, reason)

    around.on_leaving(leave)
    if plan.decided:
        writer.facts["settings"] = plan.settings.flat()
    with _watched(directory, around) as (display, tracking):
        events = Events(
            callbacks=[MetricsFile(path), display, *tracking],
            on_compiled=display.on_compiled,
            on_chosen=directory.chosen(writer),
            on_note=around.note,
            should_stop=around.should_stop,
            checkpoints=directory.checkpoints(writer),
        )
        result = run(plan, events)
    asked = result.stop_reason in EXIT_CODES  # its checkpoint is written; who asked it to stop does not wait for more
    if asked:
        _say_how_to_go_on(around, path, result.stop_reason)
    around.on_leaving(lambda reason: write_result(path, result, brief=True))  # it is solved, if not measured
    figures = write_result(path, result, brief=asked)
    around.on_leaving(lambda reason: None)
    finalise.finalise(path, result, brief=asked)
    return Finished(result, figures)


def _say_how_to_go_on(around: Surroundings, path: Path, reason: str) -> None:
    around.note(f"{reason}; go on with: npdg resume {shlex.quote(str(path))}")


@contextmanager
def _watched(directory: RunDirectory, around: Surroundings) -> Iterator[tuple[Display, list[Tracker]]]:
    """The display of a run and its trackers, while it lasts."""
    plan, path = directory.plan, directory.path
    title, count = plan.method.headline(plan.problem, plan.settings), plan.method.count(plan.problem, plan.budget)
    with (
        trackers(around.track, path, path.name, directory.about()) as tracking,
        Display(around.console, title, plan.budget.seconds, count) as display,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", RuntimeWarning)  # divergence is reported by the exit code and one line
        yield display, tracking

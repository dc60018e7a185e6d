"""How far a run has come, what it may still use, and who listens to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from npdg.errors import InputError
from npdg.fields.base import Field
from npdg.saddle.saddle import Residual
from npdg.training.records import Record, Report, TimeStep
from npdg.training.step import Info, Recipe, State
from npdg.training.stopping import Enough, StopReason, never

MOST_ROLLBACKS = 3

Evaluate = Callable[[State], dict[str, float]]  # what is measured of a state
RecipeAfter = Callable[[int], tuple[Recipe, str]]  # so many roll-backs, with what they changed in words


class Program(NamedTuple):
    """Some steps, compiled: `run(state, count)`; and which of their terms is the residual."""

    run: Callable[[State, int], tuple[State, Info, Any]]
    residual: Residual | None


@dataclass(frozen=True)
class Progress:
    """How far a run has come.

    `stop` is why it, or its last part, ended; nothing while it goes on. `settings` and `recipe` are those in use,
    `tried` says what was tried besides, and `beside` is the best of it, which is taken in the end if it is better. A
    march has a `trail` of time steps, and `kept` solutions by their times.
    """

    state: State
    recipe: Recipe
    settings: Any
    history: list[Record] = field(default_factory=list)
    seconds: float = 0.0
    compile_seconds: float = 0.0
    stop: StopReason | None = None
    detail: str = ""
    rollbacks: int = 0
    program: Program | None = None
    tried: tuple[str, ...] = ()
    trail: tuple[TimeStep, ...] = ()
    kept: tuple[tuple[float, Field], ...] = ()
    beside: Progress | None = None

    def remarked(self, *sentences: str) -> Progress:
        """The same with more to say about it."""
        return replace(self, detail="; ".join(filter(None, [self.detail, *sentences])))


@dataclass(frozen=True)
class Budget:
    """What a run may use in all.

    Arguments:
        seconds: training seconds.
        steps: training steps.
        until: ends the run earlier, such as "rel_l2=1e-3".
        rollbacks: how often the run may go back to its last good state after a fault.
    """

    seconds: float | None = None
    steps: int | None = None
    until: str | None = None
    rollbacks: int = 0

    def __post_init__(self) -> None:
        seconds, steps, rollbacks = self.seconds, self.steps, self.rollbacks
        if seconds is not None and not (isinstance(seconds, (int, float)) and 0 < seconds < float("inf")):
            raise InputError(f"seconds: {seconds!r} is not allowed; give a positive number.")
        if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int) or steps < 1):
            raise InputError(f"steps: {steps!r} is not allowed; give a whole number of at least 1.")
        if isinstance(rollbacks, bool) or not isinstance(rollbacks, int) or not 0 <= rollbacks <= MOST_ROLLBACKS:
            raise InputError(
                f"rollbacks: {rollbacks!r} is not allowed; give a whole number from 0 to {MOST_ROLLBACKS}."
            )


@dataclass(frozen=True)
class Limits:
    """Where a part of a run ends: training seconds and steps in all, or when `enough`, which sees the history, says so.

    A chunk of steps between two looks at them is `chunk_steps` long, or as many as take a second.
    """

    seconds: float | None = None
    steps: int | None = None
    enough: Enough = never
    chunk_steps: int | None = None


@dataclass(frozen=True)
class Checkpoints:
    """Where the states of a run go, and the one to go on from: nowhere and none unless the caller says so.

    `restore(fresh)` gives the progress that had been made before, its state in the shape of the fresh one, or nothing;
    `between` sees what has come out after every chunk or time step, `trained` at the end unless it diverged.
    `rollbacks` is how many there were before the state to be restored.
    """

    restore: Callable[[Progress], Progress | None] = lambda fresh: None
    between: Callable[[Progress], None] = lambda progress: None
    trained: Callable[[Progress], None] = lambda progress: None
    rollbacks: int = 0


@dataclass(frozen=True)
class Events:
    """What the caller of a run wants to hear, where its states are kept, and whether it wants to stop.

    Arguments:
        callbacks: called as `callback(number, report)` about once a second, or after every time step of a march.
        on_compiled: called with the seconds of compilation so far.
        on_chosen: called with the settings that are used, once they are decided.
        on_note: called with a sentence about what happens.
        should_stop: asked between chunks; any true answer ends the run.
        checkpoints: where states are kept.
    """

    callbacks: Sequence[Callable[[int, Any], None]] = ()
    on_compiled: Callable[[float], None] = lambda seconds: None
    on_chosen: Callable[[Any], None] = lambda settings: None
    on_note: Callable[[str], None] = lambda note: None
    should_stop: Callable[[], object] = lambda: None
    checkpoints: Checkpoints = field(default_factory=Checkpoints)

    def report(self, report: Report) -> None:
        """Tell every callback."""
        for callback in self.callbacks:
            callback(report.number, report)

    def named(self, where: str) -> Events:
        """The same, with notes that begin with where they come from."""
        return replace(self, on_note=lambda note: self.on_note(f"{where}: {note}"))

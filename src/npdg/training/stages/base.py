"""What a stage is, what it is told, and the fold that makes a run of several."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import equinox as eqx

from npdg.training.clock import Clock
from npdg.training.progress import Budget, Evaluate, Events, Limits, Progress, RecipeAfter
from npdg.training.step import Recipe, initial
from npdg.training.stopping import StopReason, never, read_until

TRAINING, HANDOVER = "training", "handover"  # names of stages, in records


@runtime_checkable
class Trainer(Protocol):
    """What stages ask of a method."""

    def recipe(self, problem: Any, settings: Any) -> Recipe:
        """All that training needs."""
        ...

    def careful(self, settings: Any, times: int) -> tuple[Any, str]:
        """The settings after so many roll-backs, and what they changed in words."""
        ...

    def meter(self, problem: Any, settings: Any) -> Evaluate:
        """What is measured of a state as training goes on, in the precision that is set when this is called."""
        ...


@dataclass(frozen=True)
class Context:
    """What a run is about: the problem, the method, settings to choose from, the budget, and who listens.

    `seconds` are the training seconds at which the present stage ends; the whole budget less what later stages want.
    `recipe` is that of the first settings, if it has been made.
    """

    problem: Any
    method: Trainer
    candidates: Sequence[Any]
    budget: Budget
    seed: int
    events: Events = field(default_factory=Events)
    clock: Clock = field(default_factory=Clock)
    seconds: float | None = None
    recipe: Recipe | None = None

    @property
    def timed(self) -> bool:
        """Whether the run has a budget of seconds, of which stages may take a part; one of steps is those steps."""
        return self.budget.steps is None and self.budget.seconds is not None

    @property
    def limits(self) -> Limits:
        """Where the present stage ends."""
        until = None if self.budget.until is None else read_until(self.budget.until)
        return Limits(self.seconds, self.budget.steps, never if until is None else until.met)

    def recipe_after(self, settings: Any) -> RecipeAfter:
        """The recipe for settings that have become more careful by some roll-backs."""

        def after(times: int) -> tuple[Recipe, str]:
            changed, words = self.method.careful(settings, times)
            made = self.recipe if changed is self.candidates[0] else None
            return self.method.recipe(self.problem, changed) if made is None else made, words

        return after

    def fresh(self, settings: Any, rollbacks: int = 0) -> Progress:
        """The progress before the first step; to be called in the settings' precision."""
        recipe, _ = self.recipe_after(settings)(rollbacks)
        return Progress(initial(recipe, self.seed), recipe, settings)


def handed_over(progress: Progress) -> bool:
    """Whether a run, resumed after its records, was past the hand-over from the tangent dual to exact duals."""
    return bool(progress.history) and progress.history[-1].stage == HANDOVER and progress.settings.stages.handover


@runtime_checkable
class Stage(Protocol):
    """One part of a run."""

    def __call__(self, context: Context, progress: Progress | None) -> Progress:
        """The progress after this stage; the first stage of a run is given none."""
        ...

    def reserve(self, context: Context, progress: Progress, seconds: float) -> float:
        """How many of the seconds that a run has left for this and earlier stages it wants for itself."""
        ...


def take_beside(context: Context, progress: Progress) -> Progress:
    """The run with what was tried beside it in place of what was trained: its newest state, and the settings for it."""
    beside, events = progress.beside, context.events
    assert beside is not None
    events.on_note(f"{beside.settings.in_words()} are better than the trained network, and are taken")
    events.on_chosen(beside.settings)
    step = progress.state.step + 1
    record = beside.history[-1]._replace(step=int(step), seconds=progress.seconds)
    taken = replace(
        progress,
        state=eqx.tree_at(lambda state: state.step, beside.state, step),
        recipe=beside.recipe,
        settings=beside.settings,
        history=[*progress.history, record],
        program=None,
        stop=StopReason.SECONDS if progress.stop is StopReason.DIVERGED else progress.stop,
        beside=None,
    )
    events.report(record)
    events.checkpoints.trained(taken)
    return taken


def run_stages(stages: Sequence[Stage], context: Context) -> Progress:
    """One stage after another, until one of them ends the run."""
    progress: Progress | None = None
    for number, stage in enumerate(stages):
        if progress is not None and progress.stop is not None and not progress.stop.goes_on:
            diverged = progress.stop is StopReason.DIVERGED and progress.beside is not None
            progress = take_beside(context, progress) if diverged else progress
            break
        seconds = context.budget.seconds
        if context.timed and progress is not None:
            assert seconds is not None
            for later in reversed(stages[number + 1 :]):
                seconds -= later.reserve(context, progress, seconds)
        progress = stage(replace(context, seconds=seconds), progress)
    assert progress is not None
    return progress if progress.stop is not None else replace(progress, stop=StopReason.DONE)

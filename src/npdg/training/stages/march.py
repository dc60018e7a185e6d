"""The stages of a march: a network is fitted to the start, then every step of implicit Euler is a stage.

All steps share one compiled program: what changes between them, the solution before and the time, is data.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from npdg.fields.base import Field
from npdg.precision import precision
from npdg.training.progress import Checkpoints, Limits, Progress, RecipeAfter
from npdg.training.records import Record, TimeStep
from npdg.training.rollback import go_on
from npdg.training.stages.base import Context
from npdg.training.step import Recipe, State, initial
from npdg.training.stopping import StopReason, residuals

CHUNK_STEPS = 4  # Training steps between two looks at the residual.
FIT_STEPS, FIT_PATIENCE = 200, 12  # Training steps for the fit of the start, and those without progress that end it.
FIT_SHARE = 0.2  # Part of a march's seconds that the fit of the start may take.
STALLED_RATIO = 0.9  # A median residual above this part of the one before is no progress.


def first_state(recipe: Recipe, seed: int, u: Field | None = None) -> State:
    """The state before the first time step of a march that starts from u; without it, only the shape of one."""
    state = initial(recipe, seed)
    start = state.fields["u"] if u is None else u
    data = {"before": start, "time": jnp.zeros(())}
    return State({**state.fields, "u": start}, state.rules, state.key, state.step, data)


def next_state(state: State, recipe: Recipe, seed: int, number: int, time: float) -> State:
    """The state before the time step of some number, which begins at the solution of the one before."""
    rules = {name: recipe.rules[name].renewed(rule, state.fields[name]) for name, rule in state.rules.items()}
    data = {"before": state.fields["u"], "time": jnp.asarray(time)}
    return State(state.fields, rules, jax.random.fold_in(jax.random.key(seed), number), jnp.zeros((), int), data)


@dataclass(frozen=True)
class FitStart:
    """Go on from a checkpoint, or fit a network to the start, by Gauss and Newton's method whatever the march uses."""

    def __call__(self, context: Context, progress: Progress | None) -> Progress:
        settings, checkpoints = context.candidates[0], context.events.checkpoints
        context.events.on_chosen(settings)
        with precision(settings.precision):
            recipe, _ = context.recipe_after(settings)(checkpoints.rollbacks)
            fresh = Progress(first_state(recipe, context.seed), recipe, settings)
            restored = checkpoints.restore(fresh)
            if restored is not None:
                last = restored.trail[-1].rollbacks
                return replace(restored, recipe=context.recipe_after(settings)(last)[0], rollbacks=last)
            fitted = self._fitted(context, fresh)
            recipe, _ = context.recipe_after(settings)(fitted.rollbacks)
            begun = Progress(
                first_state(recipe, context.seed, fitted.state.fields["u"]),
                recipe,
                settings,
                rollbacks=fitted.rollbacks,
            )
            return finished_step(context, begun, fitted, 0, 0.0)

    def reserve(self, context: Context, progress: Progress, seconds: float) -> float:
        return 0.0

    def _fitted(self, context: Context, fresh: Progress) -> Progress:
        method: Any = context.method
        settings, recipe_after = method.fit(context.problem, fresh.settings)
        seconds = None if context.budget.seconds is None else FIT_SHARE * context.budget.seconds
        recipe, _ = recipe_after(0)
        start = Progress(initial(recipe, context.seed), recipe, settings)
        limits = Limits(seconds, FIT_STEPS, good_enough(settings.march.tolerance / 2, FIT_PATIENCE), CHUNK_STEPS)
        return solved_step(context, start, recipe_after, limits, 0)


@dataclass(frozen=True)
class MarchStep:
    """One step of implicit Euler."""

    number: int

    def __call__(self, context: Context, progress: Progress | None) -> Progress:
        assert progress is not None
        evolution, settings = context.problem, progress.settings
        if progress.trail[-1].number >= self.number:  # a resumed march that was past it
            return progress
        time = float(evolution.times[self.number])
        with precision(settings.precision):
            # What earlier steps left of the seconds is for all that are still to come.
            seconds, left = context.budget.seconds, None
            if seconds is not None:
                left = (seconds - progress.seconds) / (evolution.steps - self.number + 1)
                if left <= 0:
                    context.events.checkpoints.trained(progress)
                    return replace(progress, stop=StopReason.SECONDS)
            state = next_state(progress.state, progress.recipe, context.seed, self.number, time)
            fresh = replace(progress, state=state, history=[], seconds=0.0, compile_seconds=0.0, detail="")
            steps = settings.march.step_max if context.budget.steps is None else context.budget.steps
            limits = Limits(left, steps, good_enough(settings.march.tolerance, settings.march.patience), CHUNK_STEPS)
            solved = solved_step(context, fresh, context.recipe_after(settings), limits, self.number)
            return finished_step(context, progress, solved, self.number, time)

    def reserve(self, context: Context, progress: Progress, seconds: float) -> float:
        return 0.0


def solved_step(context: Context, start: Progress, recipe_after: RecipeAfter, limits: Limits, number: int) -> Progress:
    """Train until the step is good enough; nobody hears of it but through notes."""
    where = "the fit of the start" if number == 0 else f"time step {number}"
    quiet = replace(context.events, callbacks=(), on_compiled=lambda seconds: None, checkpoints=Checkpoints())
    method: Any = context.method
    measure = method.measure(context.problem)

    def evaluate(state: State) -> dict[str, float]:
        rmse = measure.rmse(number, state.fields["u"])
        return {} if rmse is None else {"rmse": rmse}

    return go_on(
        start,
        recipe_after,
        context.budget.rollbacks,
        limits,
        quiet.named(where),
        evaluate=evaluate,
        clock=context.clock,
    )


def finished_step(context: Context, before: Progress, solved: Progress, number: int, time: float) -> Progress:
    """The progress of a march after a step was solved: its report, and its solution if it is kept."""
    method: Any = context.method
    measure, u = method.measure(context.problem), solved.state.fields["u"]
    known = residuals(solved.history)
    assert solved.stop is not None
    step = TimeStep(
        number,
        time,
        known[-1] if known else float("nan"),
        str(solved.stop),
        solved.detail,
        solved.seconds,
        solved.compile_seconds,
        solved.history,
        rmse=measure.rmse(number, u),
        energy=measure.energy(u),
        steps=len(solved.history),
        rollbacks=solved.rollbacks,
        spent=before.seconds + solved.seconds,
    )
    kept = ((time, u),) if method.keeps(number) else ()
    after = replace(
        before,
        state=before.state if number == 0 else solved.state,
        recipe=before.recipe if number == 0 else solved.recipe,
        program=None if number == 0 else solved.program,
        seconds=before.seconds + solved.seconds,
        compile_seconds=before.compile_seconds + solved.compile_seconds,
        rollbacks=solved.rollbacks,
        trail=(*before.trail, step),
        kept=(*before.kept, *kept),
        stop=None if step.complete else solved.stop,
    )
    if solved.compile_seconds > 0:
        context.events.on_compiled(after.compile_seconds)
    context.events.report(step)
    checkpoints = context.events.checkpoints
    if not step.complete:
        checkpoints.trained(before)
    elif number == context.problem.steps:
        checkpoints.trained(after)
    else:
        checkpoints.between(after)
    return after


def good_enough(tolerance: float, patience: int) -> Callable[[Sequence[Record]], StopReason | None]:
    """Enough is a residual below the tolerance, or one that has not fallen by a tenth in the last few steps."""

    def enough(history: Sequence[Record]) -> StopReason | None:
        if history and history[-1].rms_residual is not None and history[-1].rms_residual <= tolerance:
            return StopReason.TOLERANCE
        known = residuals(history)
        if len(known) < 2 * patience:
            return None
        # Medians, since samples change.
        before, recent = (statistics.median(part) for part in (known[-2 * patience : -patience], known[-patience:]))
        return StopReason.STALLED if recent > STALLED_RATIO * before else None

    return enough

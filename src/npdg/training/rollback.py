"""What a run does after a fault, if it may: go back to the last good state and go on more carefully."""

from dataclasses import replace

import jax

from npdg.training.clock import Clock
from npdg.training.loop import advance
from npdg.training.progress import Evaluate, Events, Limits, Progress, RecipeAfter
from npdg.training.step import Recipe, State
from npdg.training.stopping import StopReason


def forgotten(recipe: Recipe, state: State, times: int) -> State:
    """The same fields at the same step, with rules that have forgotten and samples that were not seen before."""
    rules = {name: recipe.rules[name].init(state.fields[name]) for name in state.rules}
    return State(state.fields, rules, jax.random.fold_in(state.key, times), state.step, state.data)


def go_on(
    before: Progress,
    recipe_after: RecipeAfter,
    rollbacks: int,
    limits: Limits,
    events: Events,
    *,
    stage: str = "",
    evaluate: Evaluate = lambda state: {},
    clock: Clock = Clock(),  # noqa: B008 (it has no state)
) -> Progress:
    """Go on from what there is to the limits; after a fault, from the last good state if that is allowed."""
    good, notes, so_far = before.state, [], before

    def between(progress: Progress) -> None:
        nonlocal good
        good = progress.state
        events.checkpoints.between(progress)

    watched = replace(events, checkpoints=replace(events.checkpoints, between=between))
    while True:
        progress = advance(replace(so_far, detail=""), limits, watched, stage=stage, evaluate=evaluate, clock=clock)
        if progress.stop is not StopReason.DIVERGED or progress.rollbacks >= rollbacks:
            break
        times, at = progress.rollbacks + 1, int(good.step)
        recipe, words = recipe_after(times)
        history = [record for record in progress.history if record.step <= at]
        notes.append(f"{progress.detail.partition(';')[0]}: rolled back to step {at} with {words}")
        events.on_note(notes[-1])
        so_far = replace(
            progress,
            state=forgotten(recipe, good, times),
            recipe=recipe,
            history=history,
            program=None,
            rollbacks=times,
        )
    fault, progress = progress.detail, replace(progress, detail=before.detail)
    progress = progress.remarked(*notes, fault)
    if progress.stop is not StopReason.DIVERGED:
        events.checkpoints.trained(progress)
    return progress

"""What a run does after a fault, if it may: go back to the last good state and go on more carefully."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import jax

from npdg.errors import InputError
from npdg.hooks import Hooks
from npdg.loop import Outcome, Recipe, Record, State, run
from npdg.settings import Settings
from npdg.transport_settings import TransportSettings

MOST = 3  # times in a run
DAMPED = ("npdg", "natural-pinn")
RecipeAfter = Callable[[int], tuple[Recipe, str]]  # so many roll-backs, with what they changed in words
Chosen = TypeVar("Chosen", Settings, TransportSettings)


def check_rollbacks(rollbacks: int) -> None:
    """Refuse a number of roll-backs that is not one."""
    if isinstance(rollbacks, bool) or not isinstance(rollbacks, int) or not 0 <= rollbacks <= MOST:
        raise InputError(f"rollbacks: {rollbacks!r} is not allowed; give a whole number from 0 to {MOST}.")


def careful(method: str, settings: Chosen, times: int) -> Chosen:
    """The settings after so many roll-backs: ten times the damping each, or half the steps where there is none."""
    if times == 0:
        return settings
    if method in DAMPED and settings.damping > 0:
        return settings.model_copy(update={"damping": settings.damping * 10**times})
    steps = [key for key in ("tau_u", "tau_phi", "tau_psi") if hasattr(settings, key)]
    halved = {key: getattr(settings, key) / 2**times for key in steps}
    return settings.model_copy(update=halved)


def in_words(method: str, settings: Settings | TransportSettings) -> str:
    """What `careful` has changed."""
    if method in DAMPED and settings.damping > 0:
        return f"damping={settings.damping:g}"
    return f"tau_u={settings.tau_u:g}"


def recipes(method: str, settings: Chosen, build: Callable[[Chosen], Recipe]) -> RecipeAfter:
    """What `build` makes of the settings after any number of roll-backs."""

    def after(times: int) -> tuple[Recipe, str]:
        changed = careful(method, settings, times)
        return build(changed), in_words(method, changed)

    return after


def again(recipe: Recipe, state: State, times: int) -> State:
    """The same fields at the same step, with rules that have forgotten and samples that were not seen before."""
    rules = {name: recipe.rules[name].init(state.fields[name]) for name in state.rules}
    return State(state.fields, rules, jax.random.fold_in(state.key, times), state.step)


def go_on(
    recipe: Recipe,
    recipe_after: RecipeAfter,
    before: Outcome,
    rollbacks: int,
    hooks: Hooks,
    **budget: Any,
) -> Outcome:
    """Go on from what there is to the end of the budget; after a fault, from the last good state if that is allowed."""
    history, good, notes = before.history, before.state, []
    so_far = before

    def whole(outcome: Outcome) -> Outcome:
        return replace(
            outcome,
            history=history + outcome.history,
            compile_seconds=so_far.compile_seconds + outcome.compile_seconds,
            rollbacks=so_far.rollbacks,
        )

    def between(outcome: Outcome) -> None:
        nonlocal good
        good = outcome.state
        hooks.keep.between(whole(outcome))

    def compiled(more: float) -> None:
        hooks.on_compiled(so_far.compile_seconds + more)

    def enough(new: Sequence[Record]) -> str | None:
        return hooks.enough([*history, *new])

    while True:
        outcome = run(
            recipe,
            so_far.state,
            spent=so_far.seconds,
            program=so_far.program,
            on_compiled=compiled,
            on_record=hooks.on_record,
            on_state=between,
            should_stop=hooks.should_stop,
            enough=enough,
            **budget,
        )
        fault, outcome = outcome.detail, whole(outcome)
        if outcome.stop_reason != "diverged" or outcome.rollbacks >= rollbacks:
            break
        times, step = outcome.rollbacks + 1, int(good.step)
        recipe, words = recipe_after(times)
        history = [record for record in outcome.history if record.step <= step]
        so_far = replace(outcome, state=again(recipe, good, times), program=None, rollbacks=times)
        notes.append(f"{fault.partition(';')[0]}: rolled back to step {step} with {words}")
        hooks.on_note(notes[-1])
    outcome.detail = "; ".join([*notes, outcome.detail]).rstrip("; ")
    if outcome.stop_reason != "diverged":
        hooks.keep.trained(outcome)
    return outcome

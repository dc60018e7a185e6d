"""The stages of a run: a trial where there is a choice of networks, the training, its late phase, the linear polish.

Each is a run of the one loop; what they share is the clock. A run of given steps is those steps and nothing else.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax

from npdg import late, methods, polish
from npdg.evaluation import error_meter
from npdg.fields import Linearised
from npdg.hooks import Hooks
from npdg.loop import Outcome, Recipe, State, initial, run
from npdg.pde import PDE
from npdg.rollback import careful, go_on, recipes
from npdg.settings import Settings
from npdg.stopping import last_phase, residual
from npdg.trial import Start, choose_start, judge

LIVE_POINTS = 10_000


@dataclass(frozen=True)
class Trained:
    """The settings a run came to, how it ended, and what was tried before."""

    settings: Settings
    outcome: Outcome
    tried: tuple[Start, ...]


def precision(name: str):
    """The context in which jax computes in float32 or float64; the user's own mode comes back after it."""
    return jax.enable_x64(name == "float64")


def train(
    pde: PDE,
    method: str,
    options: list[Settings],
    *,
    seconds: float | None,
    steps: int | None,
    seed: int,
    rollbacks: int = 0,
    hooks: Hooks,
) -> Trained:
    """Choose among the options, train with at most so many roll-backs, go on with exact duals if that helps, polish."""
    evaluate = _meter(pde, options[0].precision)
    budget = seconds if steps is None else None  # what a trial and a polish may take a part of
    tried: list[Start] = []
    keep = hooks.keep
    if budget is not None and len(options) > 1:
        start, tried = choose_start(
            pde, method, options, seed, budget, precision, evaluate=evaluate, should_stop=hooks.should_stop
        )
        settings, recipe, before = start.settings, start.recipe, start.outcome
    else:
        settings = options[0]
        with precision(settings.precision):
            recipe = methods.recipe(pde, method, careful(method, settings, keep.rollbacks))
            fresh = initial(recipe, seed)
            before = keep.restore(fresh) or Outcome(fresh, "seconds")
    hooks.on_chosen(settings)
    if tried:
        _replay(before, pde, hooks)
    reserved = polish.seconds_of(budget, before.state.fields["u"]) if budget and settings.polish else 0.0
    if tried:
        spent = max(trial.outcome.seconds for trial in tried)
        before = replace(before, seconds=spent, compile_seconds=sum(trial.outcome.compile_seconds for trial in tried))
    if before.stop_reason != "seconds":  # the trial was interrupted, or nothing that was tried could go on
        if before.stop_reason != "diverged":
            keep.trained(before)
        return Trained(settings, before, tuple(tried))
    late_part, late_begun = 0.0, settings.late and late.begun(before.history)
    if budget is not None and settings.late:
        left = max(budget - reserved - before.seconds, 0.0)  # a late phase that had begun goes on, however short
        u = before.state.fields["u"]
        late_part = left if late_begun else late.seconds_of(budget - reserved, before.seconds, u)

    def on(recipe: Recipe, settings: Settings, before: Outcome, reserved: float, hooks: Hooks) -> Outcome:
        with precision(settings.precision):
            outcome = go_on(
                recipe,
                recipes(method, settings, lambda s: methods.recipe(pde, method, s)),
                before,
                rollbacks,
                hooks,
                seconds=seconds if budget is None else budget - reserved,
                steps=steps,
                evaluate=_meter(pde, settings.precision),
            )
        outcome.detail = "; ".join(filter(None, [before.detail, outcome.detail]))
        return outcome

    if late_begun and budget is None:  # resumed for so many steps, which the tangent dual would lead back with
        with precision("float64"):
            chosen, late_recipe, state = late.begin(pde, settings, before, seed)
        kept = replace(hooks, keep=late.kept_as(recipe, before.state, keep))
        return Trained(settings, on(late_recipe, chosen, replace(before, state=state), 0.0, kept), tuple(tried))
    outcome = on(recipe, settings, before, reserved + late_part, hooks)
    if late_part > 0 and outcome.stop_reason == "seconds":
        attempt = _attempt(pde, settings, outcome, seed, late_part, hooks)
        tried.append(attempt)
        whole = _after(outcome, attempt.outcome)
        if attempt.ratio < 1 or late_begun:
            _replay(attempt.outcome, pde, hooks)
            keep_late = replace(hooks, keep=late.kept_as(recipe, outcome.state, keep))
            outcome = on(attempt.recipe, attempt.settings, whole, reserved, keep_late)
        else:
            hooks.on_note(f"they were no better by {whole.seconds:.0f} s: training goes on as before")
            back = replace(outcome, seconds=whole.seconds, compile_seconds=whole.compile_seconds)
            outcome = on(recipe, settings, back, reserved, hooks)
    if budget is not None and outcome.stop_reason == "seconds":
        remark = _short(outcome, budget) or (
            _plateau(outcome) if method == "npdg" and settings.dual != "network" else ""
        )
        outcome.detail = "; ".join(filter(None, [outcome.detail, remark]))
        if reserved > 0:  # what training took too long, by a machine that was busy, is not taken from the polish
            until = max(budget, outcome.seconds + reserved)
            outcome = _polish(pde, outcome, until, polish.twice(budget, outcome.state.fields["u"]), seed, hooks)
    return Trained(settings, outcome, tuple(tried))


def _replay(outcome: Outcome, pde: PDE, hooks: Hooks) -> None:
    """Report what was kept back until it was known to be part of the run."""
    for record in outcome.history:
        if record.errors or pde.exact is None:
            hooks.on_record(record)


def _attempt(pde: PDE, settings: Settings, trained: Outcome, seed: int, seconds: float, hooks: Hooks) -> Start:
    """The beginning of the late phase."""
    hooks.on_note(f"exact duals in small batches are tried from {trained.seconds:.0f} s on")
    with precision("float64"):
        return late.attempt(
            pde,
            settings,
            trained,
            seed,
            seconds,
            evaluate=_meter(pde, "float64"),
            should_stop=hooks.should_stop,
            enough=lambda new: hooks.enough([*trained.history, *new]),
        )


def _after(first: Outcome, then: Outcome) -> Outcome:
    """Two parts of a run as one."""
    return replace(
        then,
        history=first.history + then.history,
        compile_seconds=first.compile_seconds + then.compile_seconds,
        detail=first.detail,
        rollbacks=first.rollbacks,
    )


def _polish(pde: PDE, trained: Outcome, seconds: float, twice: bool, seed: int, hooks: Hooks) -> Outcome:
    """The linear correction, in one tangent space or, if `twice`, in two, the second of which one batch tells."""
    with precision("float64"):
        u = polish.as_float64(trained.state.fields["u"])
        start, how = Linearised.at(u, (u,)), {"per_parameter": polish.points(seconds - trained.seconds, u)}
        if twice:
            one = int(trained.state.step) + 1
            trained = _corrected(pde, trained, start, seed, hooks, {"per_parameter": polish.POINTS_FIRST}, steps=one)
            found = trained.state.fields["u"]
            if isinstance(found, Linearised):
                start = polish.doubled(found)
                doubts = polish.doubts(trained.state.rules["u"].matrix, jax.random.key(seed))
                how = {"per_parameter": polish.POINTS_TWICE, "sought": polish.RARE, "doubts": doubts}
        if trained.stop_reason != "seconds" or trained.seconds >= seconds:  # the first batch may have taken it all
            return trained
        return _corrected(pde, trained, start, seed, hooks, how, seconds=seconds)


def _corrected(
    pde: PDE, before: Outcome, start: Linearised, seed: int, hooks: Hooks, how: dict[str, Any], **until: Any
) -> Outcome:
    """A run for the coefficients of `start`, taken if it is better on fresh points."""
    recipe = polish.correction(pde, start, **how)
    state: State = eqx.tree_at(lambda s: s.step, initial(recipe, seed), before.state.step)
    evaluate = _meter(pde, "float64")
    outcome = run(recipe, state, spent=before.seconds, evaluate=evaluate, should_stop=hooks.should_stop, **until)
    ended = outcome.stop_reason in ("seconds", "steps", "diverged")
    stop_reason = before.stop_reason if ended else outcome.stop_reason
    merit = judge(pde)
    if merit(outcome.state.fields) < merit({"u": start}):  # also of one that diverged after it
        _replay(outcome, pde, hooks)
        return replace(_after(before, outcome), stop_reason=stop_reason)
    remark = f"the linear correction was {'not better' if ended else outcome.stop_reason} and was left out"
    return replace(
        before,
        stop_reason=stop_reason,
        seconds=outcome.seconds,
        compile_seconds=before.compile_seconds + outcome.compile_seconds,
        detail="; ".join(filter(None, [before.detail, remark])),
    )


def _short(outcome: Outcome, seconds: float) -> str:
    """A sentence if not even one step fitted into the budget."""
    if len(outcome.history) != 1 or outcome.seconds <= 1.5 * seconds:
        return ""
    return (
        f"one step took {outcome.seconds:.1f} s, more than the budget of {seconds:g} s; give more seconds, or set a "
        "smaller n_interior or width"
    )


def _plateau(outcome: Outcome) -> str:
    """A sentence if the last third of the time brought no progress over the third before it."""
    if not outcome.history:
        return ""
    phase = last_phase(outcome.history)
    began = 0.0 if len(phase) == len(outcome.history) else phase[0].seconds
    third = (outcome.seconds - began) / 3
    merits = [(record.seconds - began, residual(record) ** 2) for record in phase]
    middle = [merit for at, merit in merits if third < at <= 2 * third]
    last = [merit for at, merit in merits if at > 2 * third]
    if min(len(middle), len(last)) < 5 or statistics.median(last) < 0.8 * statistics.median(middle):
        return ""
    return (
        f"plateau: the residual has stayed near its value at {began + third:.0f} s; a wider or deeper network may help"
    )


def _meter(pde: PDE, at: str) -> Callable[[Any], dict[str, float]]:
    if pde.exact is None:
        return lambda state: {}
    with precision(at):
        meter = error_meter(pde, LIVE_POINTS)
    return lambda state: vars(meter(state.fields["u"]))

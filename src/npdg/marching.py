"""The march: a network is fitted to the start, then every step of implicit Euler is a run of the one loop.

All steps share one compiled program: what changes between them, the solution before and the time, is data.
"""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from npdg import methods
from npdg.evolution import Clock, Evolution, fitting, implicit_step
from npdg.fields import Field
from npdg.hooks import Hooks
from npdg.loop import Outcome, Program, Recipe, Record, State, initial
from npdg.rollback import RecipeAfter, go_on, recipes
from npdg.settings import Settings
from npdg.stopping import residual

Evaluate = Callable[[State], dict[str, float]]
CHUNK = 4  # steps between two looks at the residual
FIT = "natural-pinn"
FIT_STEPS, FIT_PATIENCE = 200, 12  # for the start
FIT_SHARE = 0.2  # of the seconds of a march
GENTLEST, STEEPEST = 6.0, 200.0


@dataclass(frozen=True)
class TimeStep:
    """One step of a march: its number and time, how it was solved, why solving stopped, and what was measured then.

    `residual` is the root mean square one at the end, `rmse` the error against the truth where one is known, `steps`
    the number of training steps, of which a saved march keeps no history, `rollbacks` how often the march has gone back
    so far.
    """

    number: int
    time: float
    residual: float
    stop_reason: str
    detail: str
    seconds: float
    compile_seconds: float
    history: list[Record]
    rmse: float | None = None
    energy: float | None = None
    steps: int = 0
    rollbacks: int = 0

    @property
    def complete(self) -> bool:
        """Whether the march goes on from it."""
        return self.stop_reason not in ("diverged", "interrupted", "terminated")


class Reached(NamedTuple):
    """Where a march goes on from: the number of the last complete time step, the state then, the seconds spent and
    the times it has gone back."""

    number: int
    state: State
    seconds: float
    rollbacks: int


@dataclass(frozen=True)
class Limits:
    """When a time step is good enough: a root mean square residual, in how many steps it must fall by a tenth, and
    budgets of steps and of seconds in all; how often a march may go back after a fault."""

    tolerance: float
    patience: int
    steps: int
    seconds: float | None
    rollbacks: int = 0


def steepness(evolution: Evolution, points: int = 256) -> float:
    """How steep layers may become, relative to half the size of the domain: diffusion against reaction at the start."""
    pde = evolution.first
    x = jnp.asarray(pde.domain.spread(points))
    one = lambda y: jnp.ones((), y.dtype)
    kappa = jnp.abs(jax.vmap(lambda y: pde.conductivity(evolution.start, y))(x))
    slope = jnp.abs(jax.vmap(lambda y: pde.reaction_slope(evolution.start, one, y))(x))
    lower, upper = pde.domain.bounds()
    length = float(jnp.sqrt(jnp.min(kappa) / jnp.max(slope))) if float(jnp.max(slope)) > 0 else np.inf
    return float(np.clip(np.max(upper - lower) / 2 / (4 * length), GENTLEST, STEEPEST))


def time_steps(
    evolution: Evolution,
    method: str,
    settings: Settings,
    seed: int,
    limits: Limits,
    error: Callable[[int, Field], float | None],
    hooks: Hooks,
    reached: Reached | None = None,
) -> Iterator[tuple[TimeStep, State]]:
    """The fit of the start (number 0), then one step after another; ends early when one diverges or is interrupted, or
    when no seconds are left for the next.

    With `reached`, from the step after that on. `error(number, u)` is recorded as steps go on; nothing here looks at
    it.
    """
    key = jax.random.key(seed)
    recipe_after = recipes(method, settings, lambda s: methods.recipe(implicit_step(evolution), method, s))
    if reached is None:
        fit = _fit(evolution, settings, seed, limits, _evaluate(error, 0), hooks)
        fitted, u = _report(0, 0.0, fit), fit.state.fields["u"]
        reached = Reached(0, first_state(recipe_after(fit.rollbacks)[0], seed, u), fitted.seconds, fit.rollbacks)
        yield fitted, reached.state
        if not fitted.complete:
            return
    program: Program | None = None
    _, state, spent, rollbacks = reached
    recipe, _ = recipe_after(rollbacks)
    for number in range(reached.number + 1, evolution.steps + 1):
        time = evolution.times[number]
        state = replace_fields(state, before=state.fields["u"], time=Clock(jnp.asarray(time)))
        rules = {name: recipe.rules[name].renewed(rule, state.fields[name]) for name, rule in state.rules.items()}
        state = State(state.fields, rules, jax.random.fold_in(key, number), jnp.zeros((), int))
        # What earlier steps left of the seconds is for all that are still to come.
        left = None if limits.seconds is None else (limits.seconds - spent) / (evolution.steps - number + 1)
        if left is not None and left <= 0:
            return
        before = Outcome(state, "steps", program=program, rollbacks=rollbacks)
        evaluate, within = _evaluate(error, number), replace(limits, seconds=left)
        outcome = _solve(recipe, recipe_after, before, within, evaluate, _named(hooks, f"time step {number}"))
        program, state, spent = outcome.program, outcome.state, spent + outcome.seconds
        if outcome.rollbacks > rollbacks:  # the program is another now
            rollbacks = outcome.rollbacks
            recipe, _ = recipe_after(rollbacks)
        step = _report(number, float(time), outcome)
        yield step, state
        if not step.complete:
            return


def first_state(recipe: Recipe, seed: int, u: Field | None = None) -> State:
    """The state before the first step of a march that starts from u; without it, only the shape of one."""
    state = initial(recipe, seed)
    start = state.fields["u"] if u is None else u
    return replace_fields(state, u=start, before=start, time=Clock(jnp.zeros(())))


def replace_fields(state: State, **fields: Any) -> State:
    """The same state with some fields changed."""
    return State({**state.fields, **fields}, state.rules, state.key, state.step)


def _evaluate(error: Callable[[int, Field], float | None], number: int) -> Evaluate:
    def evaluate(state: State) -> dict[str, float]:
        rmse = error(number, state.fields["u"])
        return {} if rmse is None else {"rmse": rmse}

    return evaluate


def _fit(
    evolution: Evolution,
    settings: Settings,
    seed: int,
    limits: Limits,
    evaluate: Evaluate,
    hooks: Hooks,
) -> Outcome:
    """The network nearest to the start, by Gauss and Newton's method whatever the march itself uses."""
    damped = {"damping": settings.damping or 1e-3, "solver": {"minres": "cg"}.get(settings.solver, settings.solver)}
    ours = settings.model_copy(update={**damped, "dual": "none"})
    recipe_after = recipes(FIT, ours, lambda s: methods.recipe(fitting(evolution), FIT, s))
    seconds = None if limits.seconds is None else FIT_SHARE * limits.seconds
    limits = Limits(limits.tolerance / 2, FIT_PATIENCE, FIT_STEPS, seconds, limits.rollbacks)
    recipe, _ = recipe_after(0)
    before = Outcome(initial(recipe, seed), "steps")
    return _solve(recipe, recipe_after, before, limits, evaluate, _named(hooks, "the fit of the start"))


def _named(hooks: Hooks, where: str) -> Hooks:
    """The same, with notes that begin with where they come from."""
    return replace(hooks, on_note=lambda note: hooks.on_note(f"{where}: {note}"))


def _solve(
    recipe: Recipe,
    recipe_after: RecipeAfter,
    before: Outcome,
    limits: Limits,
    evaluate: Evaluate,
    hooks: Hooks,
) -> Outcome:
    def enough(history: Sequence[Record]) -> str | None:
        if history and residual(history[-1]) <= limits.tolerance:
            return "tolerance"
        return "stalled" if _stalled(history, limits.patience) else None

    return go_on(
        recipe,
        recipe_after,
        before,
        limits.rollbacks,
        replace(hooks, enough=enough),
        seconds=limits.seconds,
        steps=limits.steps,
        evaluate=evaluate,
        chunk_steps=CHUNK,
    )


def _stalled(history: Sequence[Record], patience: int) -> bool:
    """Whether the residual has not fallen by a tenth in the last few steps; medians, since samples change."""
    if len(history) < 2 * patience:
        return False
    recent = statistics.median(residual(r) for r in history[-patience:])
    return recent > 0.9 * statistics.median(residual(r) for r in history[-2 * patience : -patience])


def _report(number: int, time: float, outcome: Outcome) -> TimeStep:
    last = residual(outcome.history[-1]) if outcome.history else float("nan")
    return TimeStep(
        number,
        time,
        last,
        outcome.stop_reason,
        outcome.detail,
        outcome.seconds,
        outcome.compile_seconds,
        outcome.history,
        steps=len(outcome.history),
        rollbacks=outcome.rollbacks,
    )

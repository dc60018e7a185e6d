"""The one door: a problem, a method, a budget and events go in, a result comes out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from npdg.compilation import keep_programs
from npdg.errors import InputError
from npdg.methods.base import Method, Plan
from npdg.methods.registry import make_method
from npdg.problem.evolution import Evolution
from npdg.problem.pde import PDE
from npdg.problem.transport import Map, Transport
from npdg.training.progress import Budget, Events
from npdg.training.stages.base import Context, run_stages
from npdg.training.stopping import StopReason, read_until

EVENTS = frozenset(field.name for field in fields(Events))


def make_plan(problem: Any, method: str | Method, budget: Budget, seed: int = 0, **how: Any) -> Plan:
    """Resolve and check everything that a run needs, or refuse it with an `InputError`; nothing is begun.

    Arguments:
        problem: a `PDE`, an `Evolution` or a `Transport`.
        method: a name from `npdg list`, or a `Method`.
        budget: what the run may use.
        seed: of the networks and the samples.
        how: the preset, the user's own network and changed settings, for a method that is given by its name.
    """
    keep_programs()
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise InputError(f"seed: {seed!r} is not allowed; give a whole number from 0 to 4294967295.")
    if isinstance(method, Method):
        if how.pop("preset", "default") != "default" or how.pop("network", None) is not None or how:
            raise InputError("method: it was given as a value; give its preset, network and settings to it instead.")
        chosen = method.adapted(problem.kind)
    else:
        chosen = make_method(problem.kind, method, **how)
    candidates = chosen.candidates(problem)
    if budget.until is not None:
        chosen.check_until(problem, read_until(budget.until))
    if budget.seconds is None and budget.steps is None:
        budget = replace(budget, seconds=chosen.default_seconds)
    recipe = chosen.recipe(problem, candidates[0])  # refuses what the method cannot take
    return Plan(problem, chosen, candidates, recipe, budget, seed)


def run(plan: Plan, events: Events | None = None) -> Any:
    """Carry out a plan: a `Solution`, `Trajectory` or `TransportMap`."""
    heard = Events() if events is None else events
    context = Context(plan.problem, plan.method, plan.candidates, plan.budget, plan.seed, heard, recipe=plan.recipe)
    progress = run_stages(plan.method.stages(plan.problem, plan.settings), context)
    result = plan.method.result(plan.problem, progress, plan.seed)
    if result.stop_reason is StopReason.DIVERGED:
        warnings.warn(f"diverged: {result.detail}", RuntimeWarning, stacklevel=3)
    return result


def solve(
    problem: PDE | Transport,
    method: str | Method = "npdg",
    *,
    seconds: float | None = None,
    steps: int | None = None,
    until: str | None = None,
    seed: int = 0,
    events: Events | None = None,
    **others: Any,
) -> Any:
    """Solve a problem for some training seconds and return a `Solution`, or a `TransportMap`.

    Arguments:
        problem: an `npdg.PDE`, or an `npdg.Transport`.
        method: a name from `npdg list`, or a value such as `npdg.NPDG(width=64)`.
        seconds: training seconds, without compilation and evaluation; 60 unless `steps` is given.
        steps: training steps; then nothing but those steps is done.
        until: ends the run earlier: "rel_l2=1e-3", also rel_h1, residual, map_l2, uvp, sliced_w2, or "plateau".
        seed: of the networks and the samples.
        events: what the caller wants to hear, and whether it wants to stop; its fields may be given here as well, such
            as `callbacks=[...]`, which are called as `callback(step, record)` about once a second.
        others: `preset="paper"`; `network=`, any callable pytree of one point in place of u's network; `rollbacks=`,
            how often a run that diverges goes back to its last good state and on more carefully; and any setting, such
            as `width=128` or `precision="float64"`. Every number is chosen for you.

    A run that diverges ends with `stop_reason == "diverged"`, a warning, and the last finite fields.
    """
    if isinstance(problem, Evolution):
        raise InputError("problem: an Evolution is marched in time; call npdg.march(evolution).")
    if not hasattr(problem, "kind"):
        raise InputError(f"pde: {type(problem).__name__} is not allowed; give an npdg.PDE.")
    heard, others = _events(events, others)
    budget = Budget(seconds, steps, until, others.pop("rollbacks", 0))
    return run(make_plan(problem, method, budget, seed, **others), heard)


def march(
    evolution: Evolution,
    method: str | Method = "npdg",
    *,
    times: Sequence[float] | None = None,
    seconds: float | None = None,
    steps: int | None = None,
    seed: int = 0,
    events: Events | None = None,
    **others: Any,
) -> Any:
    """March an `Evolution` by implicit Euler and return a `Trajectory`.

    Arguments:
        evolution: the equation in time, its start, and the number of time steps.
        method: a name from `npdg list`, or a value such as `npdg.NPDG(width=64)`, which solves the time steps.
        times: those at which solutions are kept; all by default.
        seconds: training seconds of the whole march, if it is not to go to its tolerance whatever that takes; where
            none are left, it ends.
        steps: training steps of a time step at the most.
        seed: of the networks and the samples.
        events: what the caller wants to hear; callbacks are called as `callback(number, step)` after every time step.
        others: as for `npdg.solve`. A time step ends when its residual is below `tolerance`, or no longer falls.
    """
    if not isinstance(evolution, Evolution):
        raise InputError(f"evolution: {type(evolution).__name__} is not allowed; give an npdg.Evolution.")
    heard, others = _events(events, others)
    budget = Budget(seconds, steps, others.pop("until", None), others.pop("rollbacks", 0))
    by_name = not isinstance(method, Method)
    chosen = make_method(evolution.kind, method, **others) if by_name else method.adapted(evolution.kind)
    plan = make_plan(evolution, chosen.keeping(times), budget, seed, **({} if by_name else others))
    return run(plan, heard)


def transport(
    source: Any,
    target: Any,
    method: str | Method = "npdg",
    *,
    true_map: Map | None = None,
    seconds: float | None = None,
    steps: int | None = None,
    seed: int = 0,
    **others: Any,
) -> Any:
    """The optimal map from one measure to another, a `TransportMap`.

    Arguments:
        source, target: each a distribution, or an array of samples `(n, d)`.
        method: a name from `npdg list`, or a `Method`.
        true_map: the optimal map, if known, to measure errors.
        seconds: training seconds; 60 unless `steps` is given.
        steps: training steps.
        seed: of the networks and the samples.
        others: as for `npdg.solve`; `affine=False`, say, starts from a shift instead of the best affine map.
    """
    problem = Transport(source, target, true_map)
    return solve(problem, method, seconds=seconds, steps=steps, seed=seed, **others)


def _events(events: Events | None, others: dict[str, Any]) -> tuple[Events, dict[str, Any]]:
    """Events with those that were given one by one, and what is left."""
    own = {key: value for key, value in others.items() if key in EVENTS}
    left = {key: value for key, value in others.items() if key not in EVENTS}
    return replace(Events() if events is None else events, **own), left

"""Where the time of a step goes: samples and gradients timed apart, with the run's own sizes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
from jax import Array

from npdg import methods
from npdg.evaluation import error_meter
from npdg.evolution import Clock, implicit_step
from npdg.fields import split
from npdg.loop import Recipe, State, initial
from npdg.marching import replace_fields
from npdg.saddle import Fields, Player, Samples
from npdg.stages import LIVE_POINTS, precision
from npdg.transport_recipe import transport_recipe
from npdg.transportation import meter

if TYPE_CHECKING:
    from npdg.solution import Solution
    from npdg.trajectory import Trajectory
    from npdg.transportation import TransportSolution

REPEATS, ENOUGH = 10, 0.2  # calls timed, and seconds after which no further one is begun


def of_solution(solution: Solution) -> dict[str, float] | None:
    """Seconds of one step's samples, of its gradients, of the rest of it (Gram solves), and of one evaluation."""
    if solution.steps == 0:
        return None
    with precision(solution.settings.precision):
        recipe = methods.recipe(solution.pde, solution.method, solution.settings)
        found = _parts(recipe, initial(recipe, solution.seed), _step_seconds(solution))
    if solution.pde.exact is not None:
        with precision(solution.precision):
            meter = error_meter(solution.pde, LIVE_POINTS)
            found["evaluation"] = _seconds(lambda: meter(solution.u))
    return found


def _step_seconds(solution: Solution) -> float:
    """Of a step before the late phase, which reports other terms."""
    training = [record for record in solution.history if record.terms.keys() == solution.history[0].terms.keys()]
    if not training:
        return solution.seconds / solution.steps
    return training[-1].seconds / training[-1].step


def of_trajectory(trajectory: Trajectory) -> dict[str, float] | None:
    """The same for the steps within the time steps of a march, the fit of the start left out."""
    marched = trajectory.steps[1:]
    steps = sum(len(step.history) for step in marched)
    if steps == 0:
        return None
    with precision(trajectory.settings.precision):
        recipe = methods.recipe(implicit_step(trajectory.evolution), trajectory.method, trajectory.settings)
        u = trajectory.fields[-1]
        state = replace_fields(
            initial(recipe, trajectory.seed), u=u, before=u, time=Clock(jax.numpy.asarray(marched[-1].time))
        )
        return _parts(recipe, state, sum(step.seconds for step in marched) / steps)


def of_transport(solution: TransportSolution) -> dict[str, float] | None:
    """The same for the steps of a transport run."""
    if solution.steps == 0:
        return None
    with precision(solution.precision):
        recipe = transport_recipe(solution.pair, solution.method, solution.settings)
        found = _parts(recipe, initial(recipe, solution.seed), solution.seconds / solution.steps)
        judge = meter(solution.pair, solution.settings)
        return {**found, "evaluation": _seconds(lambda: judge(solution.fields))}


def _parts(recipe: Recipe, state: State, step_seconds: float) -> dict[str, float]:
    sample = jax.jit(lambda key: recipe.saddle.sample(key, recipe.sizes))
    samples = sample(state.key)
    slope = jax.jit(lambda fields, samples: gradients(recipe, fields, samples))
    sampling = min(_seconds(lambda: sample(state.key)), step_seconds) if recipe.resample else 0.0
    gradient = min(_seconds(lambda: slope(state.fields, samples)), step_seconds - sampling)
    return {
        "sampling": sampling,
        "gradients": gradient,
        "solves": step_seconds - sampling - gradient,
        "step": step_seconds,
    }


def gradients(recipe: Recipe, fields: Fields, samples: Samples) -> dict[str, Array]:
    """The gradient of every player, as a step computes it."""
    saddle = recipe.saddle
    known = {**fields, **{player.name: player.fresh(fields) for player in saddle.players if player.fresh}}

    def one(player: Player) -> Array:
        vector, build = split(known[player.name])
        return jax.grad(lambda v: saddle.value({**known, player.name: build(v)}, samples, player.name))(vector)

    return {player.name: one(player) for player in saddle.players}


def _seconds(call: Callable[[], Any]) -> float:
    """The mean of a few calls, the first of which compiles and is not counted."""
    jax.block_until_ready(call())
    began, calls = time.perf_counter(), 0
    while calls < REPEATS and time.perf_counter() - began < ENOUGH:
        jax.block_until_ready(call())
        calls += 1
    return (time.perf_counter() - began) / calls

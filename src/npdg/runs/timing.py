"""Where the time of a step goes: samples and gradients timed apart, with the run's own sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax import Array

from npdg.compilation import jit
from npdg.fields.base import split
from npdg.precision import precision
from npdg.results.base import Result
from npdg.saddle.saddle import Batch, Fields, Player, Saddle
from npdg.training.clock import Clock
from npdg.training.step import Recipe, State, initial, with_fresh

REPEATS, ENOUGH = 10, 0.2  # Calls that are timed, and seconds after which no further one is begun.


def timing(result: Result) -> dict[str, float] | None:
    """Seconds of one step's samples, of its gradients, of the rest of it (Gram solves), and of one evaluation."""
    if result.training_steps == 0:
        return None
    method, settings = result.trainer, result.settings
    with precision(settings.precision):
        recipe = method.recipe(result.problem, settings)
        fresh = initial(recipe, result.seed)
        state = State(fresh.fields, fresh.rules, fresh.key, fresh.step, result.final_data())
        found = _parts(recipe, state, result.step_seconds())
    with precision(result.precision):
        evaluate = method.meter(result.problem, settings)
        state = State(result.final_fields(), {}, fresh.key, fresh.step)
        if evaluate(state):
            found["evaluation"] = _seconds(lambda: evaluate(state))
    return found


def _parts(recipe: Recipe, state: State, step_seconds: float) -> dict[str, float]:
    saddle = recipe.lower(state.data)
    sample = jit(lambda key: saddle.sample(key, recipe.sizes))
    samples = sample(state.key)
    slope = jit(lambda fields, samples: gradients(saddle, fields, samples))
    sampling = min(_seconds(lambda: sample(state.key)), step_seconds) if recipe.resample else 0.0
    gradient = min(_seconds(lambda: slope(state.fields, samples)), step_seconds - sampling)
    return {
        "sampling": sampling,
        "gradients": gradient,
        "solves": step_seconds - sampling - gradient,
        "step": step_seconds,
    }


def gradients(saddle: Saddle, fields: Fields, samples: Batch) -> dict[str, Array]:
    """The gradient of every player, as a step computes it."""
    known = with_fresh(saddle, fields)

    def one(player: Player) -> Array:
        vector, build = split(known[player.name])
        return jax.grad(lambda v: saddle.value({**known, player.name: build(v)}, samples, player.name))(vector)

    return {player.name: one(player) for player in saddle.players}


def _seconds(call: Callable[[], Any]) -> float:
    """The mean of a few calls, the first of which compiles and is not counted."""
    clock, spent, calls = Clock(), 0.0, 0
    jax.block_until_ready(call())
    while calls < REPEATS and spent < ENOUGH:
        spent += clock.timed(call)[1]
        calls += 1
    return spent / calls

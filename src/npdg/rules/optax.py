"""Update rules that are made from an optimizer of optax: Adam and its kin, and L-BFGS."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from npdg.fields.base import Field, split
from npdg.rules.base import Move, Rule, View, moved, report


def from_optax(optimizer: optax.GradientTransformation) -> Rule:
    """Any optax optimizer of the gradient, such as `optax.adam(1e-3)`."""

    def step(view: View, state: Any) -> tuple[Field, Any, Move]:
        # Optax descends: hand it the gradient of what this player minimises.
        update, state = optimizer.update(-view.sense * view.gradient, state, split(view.field)[0])
        update = view.sense * jnp.asarray(update)
        return moved(view, update), state, report(view.gradient, update)

    return Rule(lambda field: optimizer.init(split(field)[0]), step)


def adam(rate: float, decay: float = 0.0) -> Rule:
    """Adam with the rate `rate`/(1 + decay·k) in step k."""
    return from_optax(optax.adam(lambda k: rate / (1 + decay * k)))


class Memory(NamedTuple):
    """The state of `lbfgs`: optax's own, and whether the last line search failed."""

    optimizer: Any
    failed: Array


def lbfgs(rate: float = 1.0, *, line_search: bool = True, memory: int = 20) -> Rule:
    """L-BFGS, for a player whose samples do not change.

    With a line search (Wolfe's conditions), a step that finds no lower value is not taken and the memory is emptied;
    if the gradient itself leads nowhere lower either, the player is stuck and says so. Without, the length of every
    step is `rate`, as in the authors' scripts.
    """
    search = optax.scale_by_zoom_linesearch(max_linesearch_steps=20, initial_guess_strategy="one")
    optimizer = optax.lbfgs(None if line_search else rate, memory, linesearch=search if line_search else None)

    def init(field: Field) -> Memory:
        return Memory(optimizer.init(split(field)[0]), jnp.zeros((), bool))

    def step(view: View, state: Memory) -> tuple[Field, Memory, Move]:
        vector, build = split(view.field)
        lower = lambda v: -view.sense * view.value(build(v))
        before, gradient = lower(vector), -view.sense * view.gradient
        update, new = optimizer.update(gradient, state.optimizer, vector, value=before, grad=gradient, value_fn=lower)
        update = jnp.asarray(update)
        if not line_search:
            return build(vector + update), Memory(new, state.failed), report(view.gradient, update)
        failed = ~(lower(vector + update) < before)
        update = jnp.where(failed, 0.0, update)
        new = jax.tree.map(lambda empty, full: jnp.where(failed, empty, full), optimizer.init(vector), new)
        return build(vector + update), Memory(new, failed), report(gradient, update, stuck=failed & state.failed)

    return Rule(init, step)

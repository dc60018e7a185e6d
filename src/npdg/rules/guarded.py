"""Steps that are watched by the supremum over the duals, and taken back where that has grown."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from npdg.fields.base import Field, split
from npdg.rules.base import Acceptance, Direction, Move, Prepared, Rule, View, combined, report

SMALLEST_STEP = 1e-5  # below which a player that only steps back is stuck


class Guard(NamedTuple):
    """The memory of `guarded`: the last good parameters and their supremum, the damping and the step."""

    vector: Array
    supremum: Array
    damping: Array
    tau: Array


def watched(tau: float = 1.0, damping: float = 1e-3, smallest: float = 1e-6) -> Acceptance:
    """If the supremum has more than doubled since the last good step, on fresh samples, that step is taken back.

    Then the damping, which is absolute, grows tenfold and τ halves; otherwise it shrinks and τ grows back.
    """

    def init(field: Field) -> Guard:
        vector = split(field)[0]
        number = lambda value: jnp.asarray(value, vector.dtype)
        return Guard(vector, number(jnp.inf), number(damping), number(tau))

    def step(view: View, prepare: Callable[[], Prepared], state: Guard) -> tuple[Field, Guard, Move]:
        assert view.supremum is not None
        supremum = view.supremum()
        good = supremum <= 2 * state.supremum  # false for NaN

        def advance() -> tuple[Array, Guard, Move]:
            vector = split(view.field)[0]
            solved = prepare().solve(view.gradient, state.damping)
            new = Guard(
                vector, supremum, jnp.maximum(0.7 * state.damping, smallest), jnp.minimum(1.15 * state.tau, tau)
            )
            return vector + view.sense * state.tau * solved.x, new, report(view.gradient, state.tau * solved.x, solved)

        def retreat() -> tuple[Array, Guard, Move]:
            new = state._replace(damping=jnp.minimum(10 * state.damping, 0.1), tau=state.tau / 2)
            none = jnp.zeros_like(state.vector)
            return state.vector, new, report(none, none, stuck=new.tau < SMALLEST_STEP)

        vector, state, move = lax.cond(good, advance, retreat)
        return split(view.field)[1](vector), state, move

    return Acceptance(init, step)


def guarded(direction: Direction, *, tau: float = 1.0, damping: float = 1e-3, smallest: float = 1e-6) -> Rule:
    """The natural gradient, watched by the supremum over the duals, for a descending player."""
    return combined(direction, watched(tau, damping, smallest))

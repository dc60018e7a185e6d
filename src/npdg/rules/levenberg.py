"""Dampings that look after themselves, by looking at L again on the same samples."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from npdg.fields.base import Field, split
from npdg.linalg.result import Solve
from npdg.rules.base import Acceptance, Direction, Move, Prepared, Rule, View, combined, moved, report

SMALLEST_DAMPING, LARGEST_DAMPING = 1e-16, 1e3
FACTORS = (0.1, 0.3, 1.0, 3.0, 30.0)  # A trusted step tries the last damping times each of these.
LONG, SHORT, NONE = 0.5, 1.0, 10.0  # what becomes of a damping after a full step, a shorter one, and none


def _within(damping: Array) -> Array:
    return jnp.clip(damping, SMALLEST_DAMPING, LARGEST_DAMPING)


def _worth(view: View, update: Array) -> Array:
    """How good an update is, the larger the better; one that leads nowhere is a candidate that lost."""
    value = view.sense * view.value(moved(view, update))
    return jnp.where(jnp.isfinite(value), value, -jnp.inf)


def shortened(tau: float, damping: float = 1e-2, shorter: float = 0.25) -> Acceptance:
    """One solve a step; if L is no better, a shorter step is tried, and at last none is taken.

    The damping, which is absolute, halves after a full step and grows tenfold where there was none.
    """

    def step(view: View, prepare: Callable[[], Prepared], state: Array) -> tuple[Field, Array, Move]:
        solved = prepare().solve(view.gradient, state)
        direction = jnp.where(jnp.isfinite(solved.x), solved.x, 0.0)
        lengths = jnp.asarray((tau, shorter * tau, 0.0), direction.dtype)
        worths = jax.vmap(lambda length: _worth(view, length * direction))(lengths)
        better = worths > worths[-1]
        chosen = jnp.where(jnp.any(better), jnp.argmax(better), 2)
        update = lengths[chosen] * direction
        state = _within(state * jnp.asarray((LONG, SHORT, NONE), state.dtype)[chosen])
        return moved(view, update), state, report(update, update, Solve(update, *solved[1:]))

    return Acceptance(lambda field: jnp.asarray(damping, split(field)[0].dtype), step)


def levenberg(tau: float, direction: Direction, *, damping: float = 1e-2, shorter: float = 0.25) -> Rule:
    """The natural gradient with one solve a step, after which L is looked at again on the same samples."""
    return combined(direction, shortened(tau, damping, shorter))


class Trust(NamedTuple):
    """The memory of `trusted`: the damping and the last update."""

    damping: Array
    update: Array


def best_damping(damping: float = 1e-3, momentum: float = 0.0, factors: tuple[float, ...] = FACTORS) -> Acceptance:
    """Every step tries the last damping times each of `factors` and takes the field with the best L.

    If none is better than standing still, it stands still and the damping grows. The damping is relative to the scale
    of G, so that it means the same for every equation. What it holds to is not zero but `momentum` times the last
    update: what a batch does not tell, the batches before it do (SPRING, of Goldshlager, Abrahamsen and Lin).
    """

    def init(field: Field) -> Trust:
        vector = split(field)[0]
        return Trust(jnp.asarray(damping, vector.dtype), jnp.zeros_like(vector))

    def step(view: View, prepare: Callable[[], Prepared], state: Trust) -> tuple[Field, Trust, Move]:
        ready = prepare()
        gradient, scale, prior = ready.gradient(), ready.scale(), momentum * state.update

        def attempt(factor: Array) -> tuple[Array, Array, Solve]:
            relative = _within(state.damping * factor)
            solved = ready.descent(relative * scale, prior)
            return _worth(view, solved.x), relative, solved

        worths, dampings, solves = jax.vmap(attempt)(jnp.asarray(factors, gradient.dtype))
        best = jnp.argmax(worths)
        chosen = Solve(*(leaf[best] for leaf in solves))
        accepted = worths[best] > view.sense * view.value(view.field)
        update = jnp.where(accepted, chosen.x, 0.0)
        grown = jnp.minimum(state.damping * factors[-1], LARGEST_DAMPING)
        state = Trust(jnp.where(accepted, dampings[best], grown), update)
        return moved(view, update), state, report(gradient, update, chosen)

    return Acceptance(init, step, carries_over=True)


def trusted(direction: Direction, *, damping: float = 1e-3, momentum: float = 0.0, sees_gradient: bool = True) -> Rule:
    """The natural gradient with the damping that is best on its samples, for players whose L is ½|features|²; the
    gradient of L is left out for a direction that has it in its rows."""
    return combined(direction, best_damping(damping, momentum))._replace(sees_gradient=sees_gradient)

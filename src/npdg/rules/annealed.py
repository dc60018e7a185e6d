"""Steps against sampling noise, which become shorter as they go on and hold to the last direction."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from npdg.fields.base import Field, split
from npdg.linalg.result import Solve
from npdg.rules.base import TINY, Acceptance, Direction, Move, Prepared, Rule, View, combined, report

FADE = 0.7  # The part of the earlier steps' evidence about noise that a step keeps.
WORSE = 3.0  # A natural gradient longer by this factor says that the last step was a mistake.


class Heading(NamedTuple):
    """The memory of `annealed`: the last direction, how many steps were taken, the last good parameters with the length
    of the natural gradient there, and how much of the last directions fresh samples confirmed, beside their whole."""

    direction: Array
    taken: Array
    vector: Array
    slope: Array
    signal: Array
    whole: Array


def settling_down(tau: float, settling: float, reach: float, damping: float, keep: float = 0.9) -> Acceptance:
    """Step k is τ/(1 + k/settling), and never longer than `reach` in the metric.

    The last direction d tells signal from noise, by the gradients g of its own samples and h of fresh ones: h·d/g·d,
    over some steps, is the share of d that was not noise and is still to go. No step is longer than that share, nor
    shorter than a quarter of what is planned, which parts that move slowly need while the others hover.

    The solve starts from `keep` of the last direction, of which the damping term remembers as much: what the samples do
    not tell apart is an average over steps. If the natural gradient has become three times as long as before the last
    step, or is not finite, that step is taken back and steps become half as long.
    """

    def init(field: Field) -> Heading:
        vector = split(field)[0]
        nothing = jnp.zeros((), vector.dtype)
        return Heading(jnp.zeros_like(vector), nothing, vector, jnp.full_like(nothing, jnp.inf), nothing, nothing)

    def step(view: View, prepare: Callable[[], Prepared], state: Heading) -> tuple[Field, Heading, Move]:
        vector, build = split(view.field)
        solved = prepare().descent(damping, keep * state.direction)
        direction = solved.x
        slope = jnp.sqrt(jnp.abs(jnp.vdot(view.gradient, direction)))
        known = jnp.isfinite(state.slope)
        signal = FADE * state.signal + jnp.where(known, jnp.vdot(view.gradient, state.direction), 0.0)
        whole = FADE * state.whole + jnp.where(known, state.slope**2, 0.0)
        planned = tau / (1 + state.taken / settling)
        length = jnp.clip(signal / jnp.maximum(whole, TINY), planned / 4, planned)
        length = jnp.minimum(length, reach / jnp.maximum(slope, TINY))
        good = jnp.isfinite(slope) & (slope <= WORSE * state.slope)
        update = jnp.where(good, length * direction, 0.0)
        # After a step back anything is believed once: the good slope may have been luck of the samples.
        kept = Heading(direction, state.taken + 1, vector, slope, signal, whole)
        back = state._replace(
            direction=jnp.zeros_like(vector),
            taken=2 * state.taken + settling,
            slope=jnp.full_like(state.slope, jnp.inf),
        )
        state = jax.tree.map(lambda a, b: jnp.where(good, a, b), kept, back)
        well = Solve(update, solved.iterations, jnp.where(good, solved.residual, 0.0), solved.status)
        gradient = jnp.where(good, view.gradient, 0.0)
        return build(state.vector + view.sense * update), state, report(gradient, update, well)

    return Acceptance(init, step)


def annealed(
    direction: Direction, *, tau: float, settling: float, reach: float, damping: float, keep: float = 0.9
) -> Rule:
    """The natural gradient against noise."""
    return combined(direction, settling_down(tau, settling, reach, damping, keep))

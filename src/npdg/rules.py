"""Update rules: how one player moves, given what it sees in a step.

A rule is a pair of pure functions. `init(field)` makes its state; `step(view, state)` returns the moved
field, the new state and a `Move` that is reported and never fed back.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from npdg.directions import Prepare, View
from npdg.fields import Field, split
from npdg.krylov import Solve, Status, cg

FADE = 0.7  # a step, of what is known about the noise of the steps before
WORSE = 3.0  # of a natural gradient's length: a step that led there was a mistake
TINY = 1e-30
SMALLEST_STEP = 1e-5  # of a guarded player, before it gives up
SMALLEST_DAMPING, LARGEST_DAMPING = 1e-16, 1e3  # relative to the scale of the Gram matrix


class Move(NamedTuple):
    """What a rule reports: norms of the gradient and of the update, how its linear solve ended, and whether the
    player is stuck: whatever it tried was no better, so that there is no point in going on."""

    gradient: Array
    update: Array
    iterations: Array
    residual: Array
    status: Array
    stuck: Array


class Rule(NamedTuple):
    """An update rule: `init(field) -> state` and `step(view, state) -> (field, state, Move)`.

    `renewed(state, field)` is the state for a like problem with other data, such as the next time step; a new one
    unless a rule's memory is worth keeping.
    """

    init: Callable[[Field], Any]
    step: Callable[[View, Any], tuple[Field, Any, Move]]
    kept: bool = False

    def renewed(self, state: Any, field: Field) -> Any:
        return state if self.kept else self.init(field)


def natural(tau: float, prepare: Prepare, *, damping: float = 0.0) -> Rule:
    """θ ← θ ± τ (G + damping)⁻¹ ∇L: the natural gradient."""

    def step(view: View, state: None) -> tuple[Field, None, Move]:
        solve = prepare(view).solve(view.gradient, damping)
        return moved(view, tau * solve.x), state, report(view.gradient, tau * solve.x, solve)

    return Rule(lambda field: None, step)


def levenberg(tau: float, prepare: Prepare, *, damping: float = 1e-2, shorter: float = 0.25) -> Rule:
    """The natural gradient with one solve a step, after which L is looked at again on the same samples.

    If L is no better, a shorter step is tried, and at last none is taken. The damping, which is absolute, halves
    after a full step and grows tenfold where there was none.
    """

    def step(view: View, state: Array) -> tuple[Field, Array, Move]:
        solved = prepare(view).solve(view.gradient, state)
        direction = jnp.where(jnp.isfinite(solved.x), solved.x, 0.0)
        lengths = jnp.asarray((tau, shorter * tau, 0.0), direction.dtype)
        values = jax.vmap(lambda length: view.sense * view.value(moved(view, length * direction)))(lengths)
        better = jnp.isfinite(values) & (values > values[-1])
        chosen = jnp.where(jnp.any(better), jnp.argmax(better), 2)
        update = lengths[chosen] * direction
        state = jnp.clip(state * jnp.asarray((0.5, 1.0, 10.0), state.dtype)[chosen], SMALLEST_DAMPING, LARGEST_DAMPING)
        return moved(view, update), state, report(update, update, Solve(update, *solved[1:]))

    return Rule(lambda field: jnp.asarray(damping, split(field)[0].dtype), step)


class Heading(NamedTuple):
    """The memory of `annealed`: the last direction, how many steps were taken, the last good parameters with the length
    of the natural gradient there, and how much of the last directions fresh samples confirmed, beside their whole."""

    direction: Array
    taken: Array
    vector: Array
    slope: Array
    signal: Array
    whole: Array


def annealed(
    tau: float,
    settling: float,
    reach: float,
    damping: float,
    iterations: int,
    *,
    rtol: float = 1e-3,
    keep: float = 0.9,
) -> Rule:
    """The natural gradient against noise: step k is τ/(1 + k/settling), and never longer than `reach` in the metric.

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

    def step(view: View, state: Heading) -> tuple[Field, Heading, Move]:
        vector, build = split(view.field)
        product = view.gram().product
        remembered = keep * state.direction
        solved = cg(rtol, iterations)(product, view.gradient - product(remembered), shift=damping)
        direction = remembered + solved.x
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

    return Rule(init, step)


class Trust(NamedTuple):
    """The memory of `trusted`: the damping and the last update."""

    damping: Array
    update: Array


def trusted(
    prepare: Prepare,
    *,
    damping: float = 1e-3,
    momentum: float = 0.0,
    factors: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 30.0),
) -> Rule:
    """The natural gradient with a damping that looks after itself, for players whose L is ½|features|².

    Every step tries the last damping times each of `factors` and takes the field with the best L on the same
    samples; if none is better than standing still, it stands still and the damping grows. The damping is relative
    to the scale of G, so that it means the same for every equation. What it holds to is not zero but `momentum` times
    the last update: what a batch does not tell, the batches before it do (SPRING, of Goldshlager, Abrahamsen and Lin).
    """

    def init(field: Field) -> Trust:
        vector = split(field)[0]
        return Trust(jnp.asarray(damping, vector.dtype), jnp.zeros_like(vector))

    def step(view: View, state: Trust) -> tuple[Field, Trust, Move]:
        ready = prepare(view)
        gradient, scale, prior = ready.gradient(), ready.scale(), momentum * state.update

        def attempt(factor: Array) -> tuple[Array, Array, Solve]:
            relative = jnp.clip(state.damping * factor, SMALLEST_DAMPING, LARGEST_DAMPING)
            solved = ready.descent(relative * scale, prior)
            # A matrix that is singular to rounding, or a step out of the net's range, is a candidate that lost.
            value = view.sense * view.value(moved(view, solved.x))
            return jnp.where(jnp.isfinite(value), value, -jnp.inf), relative, solved

        values, dampings, solves = jax.vmap(attempt)(jnp.asarray(factors, gradient.dtype))
        best = jnp.argmax(values)
        chosen = Solve(*(leaf[best] for leaf in solves))
        accepted = values[best] > view.sense * view.value(view.field)
        update = jnp.where(accepted, chosen.x, 0.0)
        grown = jnp.minimum(state.damping * factors[-1], LARGEST_DAMPING)
        state = Trust(jnp.where(accepted, dampings[best], grown), update)
        return moved(view, update), state, report(gradient, update, chosen)

    return Rule(init, step, kept=True)


class Guard(NamedTuple):
    """The memory of `guarded`: the last good parameters and their supremum, the damping and the step."""

    vector: Array
    supremum: Array
    damping: Array
    tau: Array


def guarded(prepare: Prepare, *, tau: float = 1.0, damping: float = 1e-3, smallest: float = 1e-6) -> Rule:
    """The natural gradient, watched by the supremum over the duals, for a descending player.

    If that has more than doubled since the last good step, on fresh samples, the step is taken back, damping grows
    tenfold and τ halves; otherwise damping shrinks and τ grows back. The damping is absolute.
    """

    def init(field: Field) -> Guard:
        vector = split(field)[0]
        number = lambda value: jnp.asarray(value, vector.dtype)
        return Guard(vector, number(jnp.inf), number(damping), number(tau))

    def step(view: View, state: Guard) -> tuple[Field, Guard, Move]:
        assert view.supremum is not None
        supremum = view.supremum()
        good = supremum <= 2 * state.supremum  # false for NaN

        def advance() -> tuple[Array, Guard, Move]:
            vector = split(view.field)[0]
            solved = prepare(view).solve(view.gradient, state.damping)
            new = Guard(
                vector, supremum, jnp.maximum(0.7 * state.damping, smallest), jnp.minimum(1.15 * state.tau, tau)
            )
            return vector + view.sense * state.tau * solved.x, new, report(view.gradient, state.tau * solved.x, solved)

        def retreat() -> tuple[Array, Guard, Move]:
            new = state._replace(damping=jnp.minimum(10 * state.damping, 0.1), tau=state.tau / 2)
            # Standing at a point that was good and finding no way on, again and again: say so.
            none = jnp.where(new.tau < SMALLEST_STEP, jnp.nan, jnp.zeros_like(state.vector))
            return state.vector, new, report(none, none)

        vector, state, move = lax.cond(good, advance, retreat)
        return split(view.field)[1](vector), state, move

    return Rule(init, step)


def plain(tau: float) -> Rule:
    """θ ← θ ± τ ∇L: the flat gradient of the paper's ablation."""

    def step(view: View, state: None) -> tuple[Field, None, Move]:
        update = tau * view.gradient
        return moved(view, update), state, report(view.gradient, update)

    return Rule(lambda field: None, step)


def moved(view: View, update: Array) -> Field:
    """The field a step along its player's sense leads to."""
    vector, build = split(view.field)
    return build(vector + view.sense * update)


def report(gradient: Array, update: Array, solve: Solve | None = None, *, stuck: Array | bool = False) -> Move:
    """The report of a step, with or without a linear solve."""
    if solve is None:
        zero = jnp.zeros((), int)
        solve = Solve(update, zero, jnp.zeros_like(gradient[0]), zero + Status.CONVERGED)
    return Move(
        jnp.linalg.norm(gradient),
        jnp.linalg.norm(update),
        solve.iterations,
        solve.residual,
        solve.status,
        jnp.asarray(stuck, bool),
    )

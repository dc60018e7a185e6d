"""What a rule sees, how it moves a player, and what it reports.

A rule is a pair of pure functions: `init(field)` makes its state, `step(view, state)` returns the moved field, the new
state and a `Move` that is reported and never fed back. Most rules are a direction combined with an acceptance.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from npdg.fields.base import Field, split
from npdg.linalg.gram import Gram
from npdg.linalg.result import Solve, Status

TINY = 1e-30


class View(NamedTuple):
    """What a rule sees: the field, the gradient of L by its parameters, its sense and its Gram matrix.

    There is no gradient for a rule that says that it does not look at it. `value` is L at another field of this player
    on the same samples. For a descending player, `supremum` is L at its present field and at the duals that have just
    moved: how far from the solution it is. What is a function costs nothing unless it is called;
    `gram(products=False)` has rows alone.
    """

    field: Field
    gradient: Array
    sense: int
    value: Callable[[Field], Array]
    gram: Callable[..., Gram]
    supremum: Callable[[], Array] | None = None


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
    unless a rule's memory is worth keeping. A rule without `sees_gradient` has all it
    needs in the rows of its Gram matrix.
    """

    init: Callable[[Field], Any]
    step: Callable[[View, Any], tuple[Field, Any, Move]]
    carries_over: bool = False
    sees_gradient: bool = True

    def renewed(self, state: Any, field: Field) -> Any:
        return state if self.carries_over else self.init(field)


class Prepared(NamedTuple):
    """A direction made ready for one Gram matrix.

    `solve(g, shift)` solves (G + shift) v = g. For a player whose L is ½|features|², `gradient` is that of L,
    `descent(shift, prior)` finds the v of least |features − J v|² + shift |v − prior|² by whatever way is best, and
    `scale` is the size of a typical eigenvalue. What is not called costs nothing.
    """

    solve: Callable[[Array, Array | float], Solve]
    descent: Callable[[Array | float, Array], Solve]
    gradient: Callable[[], Array]
    scale: Callable[[], Array]


Direction = Callable[[View], Prepared]


class Acceptance(NamedTuple):
    """How much of a direction is taken: `step(view, prepare, state)`, where `prepare()` makes the direction ready."""

    init: Callable[[Field], Any]
    step: Callable[[View, Callable[[], Prepared], Any], tuple[Field, Any, Move]]
    carries_over: bool = False


def combined(direction: Direction, acceptance: Acceptance) -> Rule:
    """The rule that takes of a direction what an acceptance allows."""
    step = lambda view, state: acceptance.step(view, lambda: direction(view), state)
    return Rule(acceptance.init, step, acceptance.carries_over)


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

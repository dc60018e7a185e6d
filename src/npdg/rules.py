"""Update rules: how one player moves, given what it sees in a step.

A rule is a pair of pure functions. `init(field)` makes its state; `step(view, state)` returns the moved
field, the new state and a `Move` that is reported and never fed back.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import optax
from jax import Array

from npdg.fields import Field, split
from npdg.gram import Gram
from npdg.krylov import Solver, Status


class View(NamedTuple):
    """What a rule sees: the field, the gradient of L by its parameters, its sense and its Gram matrix.

    `gram` is a function: who does not call it does not pay for the linearisation.
    """

    field: Field
    gradient: Array
    sense: int
    gram: Callable[[], Gram]


class Move(NamedTuple):
    """What a rule reports: norms of the gradient and of the update, and how its linear solve ended."""

    gradient: Array
    update: Array
    iterations: Array
    residual: Array
    status: Array


class Rule(NamedTuple):
    """An update rule: `init(field) -> state` and `step(view, state) -> (field, state, Move)`."""

    init: Callable[[Field], Any]
    step: Callable[[View, Any], tuple[Field, Any, Move]]


def natural(tau: float, solver: Solver, *, damping: float = 0.0) -> Rule:
    """θ ← θ ± τ (G + damping)⁻¹ ∇L: the natural gradient, solved for by `solver`."""

    def step(view: View, state: None) -> tuple[Field, None, Move]:
        solve = solver(view.gram().product, view.gradient, shift=damping)
        return (
            *_moved(view, tau * solve.x, state),
            Move(jnp.linalg.norm(view.gradient), tau * jnp.linalg.norm(solve.x), solve.iterations, solve.residual, solve.status),
        )

    return Rule(lambda field: None, step)


def plain(tau: float) -> Rule:
    """θ ← θ ± τ ∇L: the flat gradient of the paper's ablation."""

    def step(view: View, state: None) -> tuple[Field, None, Move]:
        return (*_moved(view, tau * view.gradient, state), _without_solve(view, tau * view.gradient))

    return Rule(lambda field: None, step)


def from_optax(optimizer: optax.GradientTransformation) -> Rule:
    """Any optax optimizer of the gradient, such as `optax.adam(1e-3)`."""

    def step(view: View, state: Any) -> tuple[Field, Any, Move]:
        # Optax descends: hand it the gradient of what this player minimises.
        update, state = optimizer.update(-view.sense * view.gradient, state, split(view.field)[0])
        update = view.sense * jnp.asarray(update)
        return (*_moved(view, update, state), _without_solve(view, update))

    return Rule(lambda field: optimizer.init(split(field)[0]), step)


def _moved(view: View, update: Array, state: Any) -> tuple[Field, Any]:
    vector, build = split(view.field)
    return build(vector + view.sense * update), state


def _without_solve(view: View, update: Array) -> Move:
    zero = jnp.zeros((), int)
    return Move(
        jnp.linalg.norm(view.gradient), jnp.linalg.norm(update), zero, jnp.zeros_like(view.gradient[0]), zero + Status.CONVERGED
    )

"""What a linear solver takes and returns, and how a solve may end."""

import enum
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

Operator = Callable[[Array], Array]


class Status(enum.IntEnum):
    """How a solve ended; `advice` says what a user may do about it."""

    CONVERGED = 0
    CAP = 1
    BREAKDOWN = 2
    NOT_FINITE = 3

    @property
    def advice(self) -> str:
        return {
            Status.CONVERGED: "the tolerance was reached",
            Status.CAP: "the iteration cap was reached first: raise minres_max or minres_rtol",
            Status.BREAKDOWN: "no more progress above the tolerance (rounding, or an inconsistent system): "
            "raise damping or use float64",
            Status.NOT_FINITE: "a product was NaN or infinite: look at the samples and the fields",
        }[self]


class Solve(NamedTuple):
    """A solution, the number of iterations, the relative residual recomputed at the end, and the status."""

    x: Array
    iterations: Array
    residual: Array
    status: Array


Solver = Callable[..., Solve]


# (v ↦ J v, b, c, shift) ↦ the minimiser of |J v − b|² + |√shift v − c|²
RowSolver = Callable[[Operator, Array, Array, float | Array], Solve]


def checked(
    apply: Operator,
    b: Array,
    x: Array,
    count: Array | int,
    stopped: Array | bool,
    capped: Array | bool,
    rtol: float | None,
) -> Solve:
    """Recompute the residual and let it, not the recurrence, decide what is called converged."""
    norm_b = jnp.linalg.norm(b)
    none = norm_b == 0  # false for NaN
    residual = jnp.where(none, 0, jnp.linalg.norm(b - apply(x)) / jnp.where(none, 1, norm_b))
    finite = jnp.isfinite(residual) & jnp.all(jnp.isfinite(x))
    honest = jnp.asarray(stopped) if rtol is None else jnp.asarray(stopped) & (residual <= 2 * rtol)
    status = jnp.where(
        honest,
        Status.CONVERGED,
        jnp.where(jnp.asarray(stopped) | ~jnp.asarray(capped), Status.BREAKDOWN, Status.CAP),
    )
    return Solve(x, jnp.asarray(count), residual, jnp.where(finite, status, Status.NOT_FINITE))

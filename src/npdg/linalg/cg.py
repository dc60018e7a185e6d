"""Conjugate gradients: one iteration, and the two ways to repeat it."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from npdg.linalg.result import Operator, Solve, Solver, checked


class _State(NamedTuple):
    """The iterate and its residual, the search direction, r·z, the last curvature p·Ap, and a count."""

    x: Array
    r: Array
    p: Array
    rz: Array
    curvature: Array
    taken: Array


def cg(rtol: float = 1e-3, max_iterations: int = 1000, *, preconditioner: Operator | None = None) -> Solver:
    """Conjugate gradients until |r| ≤ rtol·|b|, for positive definite operators; one that is singular needs a shift."""
    precondition = (lambda r: r) if preconditioner is None else preconditioner

    def solve(operator: Operator, b: Array, x0: Array | None = None, shift: float | Array = 0.0) -> Solve:
        apply = lambda v: operator(v) + shift * v
        x = jnp.zeros_like(b) if x0 is None else x0
        goal = rtol * jnp.linalg.norm(b)
        done = lambda s: (jnp.linalg.norm(s.r) <= goal) | ~(s.curvature > 0) | ~jnp.isfinite(s.rz)
        end = lax.while_loop(
            lambda s: (s.taken < max_iterations) & ~done(s),
            lambda s: _iterate(apply, precondition, s, 0.0),
            _start(x, b if x0 is None else b - apply(x), precondition),
        )
        return checked(apply, b, end.x, end.taken, done(end), end.taken >= max_iterations, rtol)

    return solve


def truncated_cg(operator: Operator, b: Array, iterations: int, least_curvature: float) -> Array:
    """So many iterations from zero, which end where the curvature along p is below `least_curvature`·|p|²."""
    precondition = lambda r: r
    body = lambda _, s: _iterate(operator, precondition, s, least_curvature)
    return lax.fori_loop(0, iterations, body, _start(jnp.zeros_like(b), b, precondition)).x


def _start(x: Array, r: Array, precondition: Operator) -> _State:
    z = precondition(r)
    return _State(x, r, z, jnp.vdot(r, z), jnp.ones((), r.dtype), jnp.zeros((), int))


def _iterate(apply: Operator, precondition: Operator, s: _State, least_curvature: float) -> _State:
    """One iteration; with a `least_curvature`, nothing moves along a direction that has less."""
    q = apply(s.p)
    curvature = jnp.vdot(s.p, q)
    good = curvature > (least_curvature * jnp.vdot(s.p, s.p) if least_curvature > 0 else 0.0)
    step = jnp.where(good, s.rz / curvature, 0.0)
    x, r = s.x + step * s.p, s.r - step * q
    z = precondition(r)
    rz = jnp.vdot(r, z)
    p = z + (rz / s.rz) * s.p
    if least_curvature > 0:
        p = jnp.where(good & (s.rz > 0), p, s.p)
    return _State(x, r, p, rz, curvature, s.taken + 1)

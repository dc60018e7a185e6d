"""Linear solvers for symmetric positive semi-definite operators: one product an iteration, an honest status.

A solver is a constructor that returns a function `(operator, b, x0, shift) -> Solve` of
(A + shift·I) x = b on flat vectors, safe inside `jit`.
"""

import enum
from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import lineax
from jax import Array, lax

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


def minres(
    rtol: float = 1e-3,
    max_iterations: int = 1000,
    *,
    stop: Literal["residual", "scipy"] = "residual",
    preconditioner: Operator | None = None,
) -> Solver:
    """MINRES of Paige and Saunders, for symmetric and possibly singular operators.

    `stop="residual"` ends when |r| ≤ rtol·|b|. `stop="scipy"` ends as `scipy.sparse.linalg.minres` does, when
    |r| ≤ rtol·‖A‖|x| or |Ar| ≤ rtol·‖A‖|r| with a running estimate of ‖A‖ that includes |b|: the authors'
    rule, which is not scale-invariant and which ends far earlier. `preconditioner` must be positive definite.
    """
    precondition = (lambda r: r) if preconditioner is None else preconditioner

    def solve(operator: Operator, b: Array, x0: Array | None = None, shift: float | Array = 0.0) -> Solve:
        apply = lambda v: operator(v) + shift * v
        x = jnp.zeros_like(b) if x0 is None else x0
        r = b if x0 is None else b - apply(x)
        y = precondition(r)
        beta = jnp.sqrt(jnp.maximum(jnp.vdot(r, y), 0))
        # The recurrence measures residuals in the preconditioner's norm; so must the target.
        scale = beta if x0 is None else jnp.sqrt(jnp.maximum(jnp.vdot(b, precondition(b)), 0))
        eps = float(jnp.finfo(b.dtype).eps)
        start = _start(x, r, y, beta)

        def done(s: _Minres) -> Array:
            norm_a = jnp.sqrt(s.norm_a2)
            if stop == "residual":
                # An inconsistent system never gets there: end when the residual is in the null space.
                met = (s.residual <= rtol * scale) | s.stalled | (s.root <= eps**0.6 * norm_a)
            else:
                norm_x = jnp.linalg.norm(s.x)
                test_r = s.residual <= rtol * norm_a * norm_x
                test_ar = s.root <= rtol * norm_a
                rounding = norm_a * norm_x * eps >= beta
                met = (s.iteration > 0) & (test_r | test_ar | rounding | (s.gamma_max >= 0.1 / eps * s.gamma_min))
            # β = 0: the Krylov space is exhausted, x is the best there is.
            return met | (s.beta <= 10 * eps * beta) | ~jnp.isfinite(s.residual)

        def iterate(s: _Minres) -> _Minres:
            new = _lanczos_step(s, apply, precondition, eps)
            # Where the recurrence divides by what is left of a null space, a step adds more rounding to the
            # residual than it takes off: keep x as it was.
            noise = eps * jnp.sqrt(new.norm_a2) * jnp.linalg.norm(new.x - s.x)
            stalled = (stop == "residual") & (noise > s.residual - new.residual)
            return new._replace(x=jnp.where(stalled, s.x, new.x), stalled=stalled)

        end = lax.while_loop(lambda s: (s.iteration < max_iterations) & ~done(s), iterate, start)
        return _report(
            apply,
            b,
            end.x,
            end.iteration,
            done(end),
            end.iteration >= max_iterations,
            rtol if stop == "residual" else None,
        )

    return solve


class _Minres(NamedTuple):
    """The state of the Lanczos recurrence and its QR factorisation, in SciPy's notation."""

    x: Array
    r1: Array
    r2: Array
    y: Array
    w: Array
    w_old: Array
    beta: Array
    residual: Array
    beta_old: Array
    dbar: Array
    epsln: Array
    cs: Array
    sn: Array
    norm_a2: Array
    root: Array
    gamma_max: Array
    gamma_min: Array
    iteration: Array
    stalled: Array


def _start(x: Array, r: Array, y: Array, beta: Array) -> _Minres:
    zero, infinity = jnp.zeros_like(beta), jnp.full_like(beta, jnp.inf)
    return _Minres(
        x=x,
        r1=r,
        r2=r,
        y=y,
        w=jnp.zeros_like(x),
        w_old=jnp.zeros_like(x),
        beta=beta,
        residual=beta,
        beta_old=jnp.ones_like(beta),
        dbar=zero,
        epsln=zero,
        cs=-jnp.ones_like(beta),
        sn=zero,
        norm_a2=zero,
        root=infinity,
        gamma_max=zero,
        gamma_min=infinity,
        iteration=jnp.zeros((), int),
        stalled=jnp.zeros((), bool),
    )


def _lanczos_step(s: _Minres, apply: Operator, precondition: Operator, eps: float) -> _Minres:
    v = s.y / s.beta
    y = apply(v)
    y = jnp.where(s.iteration > 0, y - (s.beta / s.beta_old) * s.r1, y)
    alpha = jnp.vdot(v, y)
    r = y - (alpha / s.beta) * s.r2
    y = precondition(r)
    beta = jnp.sqrt(jnp.maximum(jnp.vdot(r, y), 0))

    delta = s.cs * s.dbar + s.sn * alpha
    gbar = s.sn * s.dbar - s.cs * alpha
    dbar = -s.cs * beta
    root = jnp.hypot(gbar, dbar)
    gamma = jnp.maximum(jnp.hypot(gbar, beta), eps)
    cs, sn = gbar / gamma, beta / gamma
    w = (v - s.epsln * s.w_old - delta * s.w) / gamma
    return _Minres(
        x=s.x + cs * s.residual * w,
        r1=s.r2,
        r2=r,
        y=y,
        w=w,
        w_old=s.w,
        beta=beta,
        residual=sn * s.residual,
        beta_old=s.beta,
        dbar=dbar,
        epsln=s.sn * beta,
        cs=cs,
        sn=sn,
        norm_a2=s.norm_a2 + alpha**2 + s.beta**2 + beta**2,
        root=root,
        gamma_max=jnp.maximum(s.gamma_max, gamma),
        gamma_min=jnp.minimum(s.gamma_min, gamma),
        iteration=s.iteration + 1,
        stalled=s.stalled,
    )


def cg(rtol: float = 1e-3, max_iterations: int = 1000, *, preconditioner: Operator | None = None) -> Solver:
    """Conjugate gradients, for positive definite operators: give a shift when the operator may be singular."""
    precondition = (lambda r: r) if preconditioner is None else preconditioner

    def solve(operator: Operator, b: Array, x0: Array | None = None, shift: float | Array = 0.0) -> Solve:
        apply = lambda v: operator(v) + shift * v
        x = jnp.zeros_like(b) if x0 is None else x0
        r = b if x0 is None else b - apply(x)
        z = precondition(r)
        goal = rtol * jnp.linalg.norm(b)
        done = lambda s: (jnp.linalg.norm(s[1]) <= goal) | ~(s[4] > 0) | ~jnp.isfinite(s[3])

        def iterate(s):
            x, r, p, rz, _, count = s
            q = apply(p)
            curvature = jnp.vdot(p, q)
            step = jnp.where(curvature > 0, rz / curvature, 0.0)
            x, r = x + step * p, r - step * q
            z = precondition(r)
            rz_new = jnp.vdot(r, z)
            return x, r, z + (rz_new / rz) * p, rz_new, curvature, count + 1

        start = (x, r, z, jnp.vdot(r, z), jnp.ones((), b.dtype), jnp.zeros((), int))
        end = lax.while_loop(lambda s: (s[5] < max_iterations) & ~done(s), iterate, start)
        return _report(apply, b, end[0], end[5], done(end), end[5] >= max_iterations, rtol)

    return solve


# (v ↦ J v, b, c, shift) ↦ the minimiser of |J v − b|² + |√shift v − c|²
RowSolver = Callable[[Operator, Array, Array, float | Array], Solve]


def lsmr(rtol: float = 1e-2, maxiter: int = 60) -> RowSolver:
    """LSMR of (JᵀJ + shift) v = Jᵀb + √shift c as least squares; the residual is that of these normal equations."""

    def solve(jacobian: Operator, b: Array, c: Array, shift: float | Array) -> Solve:
        vector = jax.ShapeDtypeStruct(c.shape, c.dtype)
        root = jnp.sqrt(jnp.asarray(shift, c.dtype))
        operator = lineax.FunctionLinearOperator(lambda v: (jacobian(v), root * v), vector)
        solver = lineax.LSMR(rtol=rtol, atol=0.0, max_steps=maxiter, conlim=jnp.inf)
        found = lineax.linear_solve(operator, (b, c), solver, throw=False)
        pull = jax.linear_transpose(jacobian, vector)
        normal = lambda v: pull(jacobian(v))[0] + shift * v
        count = found.stats["num_steps"]
        return _report(normal, pull(b)[0] + root * c, found.value, count, count < maxiter, count >= maxiter, None)

    return solve


def dense(matrix: Array) -> Solver:
    """Cholesky factorisation of a given matrix plus shift, for small systems; one factorisation per shift."""

    def solve(operator: Operator, b: Array, x0: Array | None = None, shift: float | Array = 0.0) -> Solve:
        del operator, x0
        shifted = matrix + shift * jnp.eye(b.size, dtype=b.dtype)
        x = jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(shifted, lower=True), b)
        return _report(lambda v: shifted @ v, b, x, jnp.ones((), int), True, False, None)

    return solve


def _report(
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

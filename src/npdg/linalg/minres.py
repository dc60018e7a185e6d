"""MINRES of Paige and Saunders."""

from typing import Literal, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from npdg.linalg.result import Operator, Solve, Solver, checked


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
        return checked(
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

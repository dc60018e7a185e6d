"""Optimal transport as a saddle (Sec. 2.5.1):

    sup over φ, inf over T of  E₀[½|x − T(x)|² + φ(T(x))] − E₁[φ(y)].

T descends in L²(ρ₀). The potential φ ascends in one of three metrics: its values at T(x) (`identity`), its gradient
there (`gradient`, both of the paper), or both, on T#ρ₀ and on ρ₁ alike (`h1`), where the derivative of the functional
is bounded also before T#ρ₀ is near ρ₁. The reduced dual Hessian is E₀[∇φ(T)ᵀ DT ∇φ(T)]: that metric is near Newton's.

With `refine`, what φ sees of T is its refinement, some steps towards the minimiser of ½|x − y|² + φ(y), and T learns
that: a network cannot be as steep between the modes of a target as the map is, but the minimiser can.

Noise enters through φ alone, whose terms are means over large samples ("source", "target"); Gram matrices, and all
that T sees, are means over smaller ones ("source metric", "target metric").
"""

from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array, lax

from npdg.calculus import Scalar, grad
from npdg.measures import Measure, Points
from npdg.saddle import Feature, Fields, Integral, Player, Saddle

PotentialMetric = Literal["identity", "gradient", "h1"]
LONGEST = 1.0  # step of the refinement
CAUTIOUS = 0.4  # of the residual, where the curvature is not positive
INNER = 2  # iterations of conjugate gradients in a Newton step


def refined(phi: Scalar, x: Array, y: Array, rounds: int) -> Array:
    """Some truncated Newton steps from y down ½|x − y|² + φ(y), into the well in which y lies."""
    height = lambda z: _half_square(x - z) + phi(z)

    def newton(_: int, y: Array) -> Array:
        slope, curve = jax.linearize(grad(phi), y)
        residual = x - y - slope
        step = _conjugate(lambda v: v + curve(v), residual)
        step = step * jnp.minimum(1.0, LONGEST / jnp.maximum(jnp.linalg.norm(step), 1e-12))
        return jnp.where(height(y + step) < height(y), y + step, y + step / 4)

    return lax.fori_loop(0, rounds, newton, y)


def _conjugate(product: Callable[[Array], Array], residual: Array) -> Array:
    """A few iterations of conjugate gradients from zero, which end where the curvature is not positive."""

    def body(carry):
        k, step, residual, direction, square = carry
        pushed = product(direction)
        curvature = jnp.vdot(direction, pushed)
        good = curvature > 1e-3 * jnp.vdot(direction, direction)
        length = jnp.where(good, square / jnp.where(good, curvature, 1.0), jnp.where(k == 0, CAUTIOUS, 0.0))
        after = jnp.where(good, residual - length * pushed, 0.0)
        new = jnp.vdot(after, after)
        ahead = after + jnp.where(square > 0, new / jnp.where(square > 0, square, 1.0), 0.0) * direction
        return k + 1, step + length * direction, after, ahead, new

    start = (0, jnp.zeros_like(residual), residual, residual, jnp.vdot(residual, residual))
    return lax.fori_loop(0, INNER, lambda _, carry: body(carry), start)[1]


def monge(source: Measure, target: Measure, *, metric: PotentialMetric = "h1", refine: int = 0) -> Saddle:
    """Lower a pair of measures to the saddle of a map T and a potential φ; `refine`: Newton steps after T."""

    def reached(f: Fields, x: Array) -> Array:
        """Where φ sees x carried to; by the envelope theorem nothing is to be differentiated here."""
        fixed = lax.stop_gradient({name: f[name] for name in ("T", "phi")})
        return lax.stop_gradient(refined(fixed["phi"], x, fixed["T"](x), refine))

    def value(f: Fields, y: Array) -> Array:
        return f["phi"](y)[None]

    def slope(f: Fields, y: Array) -> Array:
        return grad(f["phi"])(y)

    def both(f: Fields, y: Array) -> Array:
        return jnp.concatenate([value(f, y), slope(f, y)])

    measured = {"identity": value, "gradient": slope, "h1": both}[metric]
    pushed = lambda f, p: measured(f, reached(f, p.x))
    if metric == "h1":
        features = (Feature("source metric", pushed, 0.5), Feature("target metric", lambda f, p: measured(f, p.x), 0.5))
    else:
        features = (Feature("source metric", pushed),)

    def cost(f: Fields, p: Points) -> Array:
        return _half_square(p.x - f["T"](p.x))

    def carried(f: Fields, p: Points) -> Array:
        return f["phi"](f["T"](p.x))

    def missed(f: Fields, p: Points) -> Array:
        return _half_square(f["T"](p.x) - reached(f, p.x))

    descent = (
        (Integral("missed", "source metric", missed, seen_by=("T",)),)
        if refine
        else (
            Integral("cost", "source metric", cost, seen_by=("T",)),
            Integral("carried", "source metric", carried, seen_by=("T",)),
        )
    )
    return Saddle(
        measures={"source": source, "target": target, "source metric": source, "target metric": target},
        players=(
            Player("phi", +1, features),
            Player("T", -1, (Feature("source metric", lambda f, p: f["T"](p.x)),)),
        ),
        integrals=(
            Integral("pushed", "source", lambda f, p: f["phi"](reached(f, p.x)), seen_by=("phi",)),
            Integral("target", "target", lambda f, p: -f["phi"](p.x), seen_by=("phi",)),
            *descent,
        ),
    )


def _half_square(v: Array) -> Array:
    return jnp.vdot(v, v) / 2

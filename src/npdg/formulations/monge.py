"""Optimal transport as a saddle (Sec. 2.5.1):

    sup over φ, inf over T of  E₀[½|x − T(x)|² + φ(T(x))] − E₁[φ(y)].

T descends in L²(ρ₀). The potential φ ascends in one of three metrics: its values at T(x) (`identity`), its gradient
there (`gradient`, both of the paper), or both, on T#ρ₀ and on ρ₁ alike (`h1`), where the derivative of the functional
is bounded also before T#ρ₀ is near ρ₁. The reduced dual Hessian is E₀[∇φ(T)ᵀ DT ∇φ(T)]: that metric is near Newton's.

With a `Search`, what φ sees of T is where that leads, towards the minimiser of ½|x − y|² + φ(y), and T learns that: a
network cannot be as steep between the modes of a target as the map is, but the minimiser can.

Noise enters through φ alone, whose terms are means over large samples ("source", "target"); Gram matrices, and all
that T sees, are means over smaller ones ("source metric", "target metric").
"""

from typing import Literal

import jax.numpy as jnp
from jax import Array, lax

from npdg.calculus import grad
from npdg.formulations.search import Search, half_square
from npdg.measures.points import Measure, Points
from npdg.saddle.saddle import Feature, Fields, Integral, Player, Saddle

PotentialMetric = Literal["identity", "gradient", "h1"]


def monge(source: Measure, target: Measure, *, metric: PotentialMetric = "h1", search: Search | None = None) -> Saddle:
    """Lower a pair of measures to the saddle of a map T and a potential φ."""

    def reached(f: Fields, x: Array) -> Array:
        """Where φ sees x carried to; by the envelope theorem nothing is to be differentiated here."""
        fixed = lax.stop_gradient({name: f[name] for name in ("T", "phi")})
        return lax.stop_gradient(fixed["T"](x) if search is None else search(fixed["T"], fixed["phi"], x))

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
        return half_square(p.x - f["T"](p.x))

    def carried(f: Fields, p: Points) -> Array:
        return f["phi"](f["T"](p.x))

    def missed(f: Fields, p: Points) -> Array:
        return half_square(f["T"](p.x) - reached(f, p.x))

    descent = (
        (Integral("missed", "source metric", missed, seen_by=("T",)),)
        if search is not None
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

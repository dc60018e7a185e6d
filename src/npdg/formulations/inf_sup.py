"""The paper's inf-sup formulation of −div flux(u) + reaction(u) = f, u = g (Secs. 2.3 and 4.1).

Ẽ(u, φ, ψ) = ⟨flux(u), ∇φ⟩ + ⟨reaction(u) − f, φ⟩ − ν/2 |M_d φ|²
           + λ (⟨u − g, ψ⟩_∂ − ν/2 |ψ|²_∂) + λ |u − g|²_∂

A flux g through the boundary is tested by ψ in the same way, or it is the natural condition of the weak form: then φ
does not vanish on the boundary, and −⟨g, φ⟩_∂ takes the place of ψ.
"""

from typing import Literal

import jax.numpy as jnp
from jax import Array

from npdg.formulations.metrics import METRICS, MetricName
from npdg.formulations.traces import TRACES, BoundaryNorm
from npdg.measures import Points
from npdg.pde import PDE
from npdg.saddle import Feature, Fields, Integral, Player, Saddle


def inf_sup(
    pde: PDE,
    *,
    nu: float = 1.0,
    lam: float = 10.0,
    pairing: Literal["weak", "strong"] = "weak",
    boundary_norm: BoundaryNorm = "l2",
    metric: MetricName = "gradient",
    residual_weight: float = 0.0,
) -> Saddle:
    """Lower a PDE to the saddle of u, φ (interior) and ψ (boundary), with M_p and M_d by `metric`.

    `residual_weight` · |residual|² is added to what u descends.
    """
    trace, measured = TRACES[boundary_norm], METRICS[metric]

    def primal(f: Fields, p: Points) -> Array:
        return measured.primal(pde.at(f), f["u"], f["u"], p.x)

    def dual(f: Fields, p: Points) -> Array:
        return measured.dual(pde.at(f), f["u"], f["phi"], p.x)

    def weak(f: Fields, p: Points) -> Array:
        return pde.at(f).weak(f["u"], f["phi"], p.x)

    def strong(f: Fields, p: Points) -> Array:
        return pde.at(f).residual(f["u"], p.x) * f["phi"](p.x)

    def mismatch(f: Fields, p: Points) -> Array:
        return pde.at(f).mismatch(f["u"], p, trace)

    def tested(f: Fields, p: Points) -> Array:
        return pde.boundary.tested(f["psi"], p, trace)

    # φ vanishes on the boundary, so both pairings have the same expectation; the variance of the strong
    # one vanishes with the residual. For u the weak one is as good, since φ → 0, and needs one derivative; but in the
    # metric of the operator its gradient would not lie in the range of its Gram matrix, and it asks for uniform points.
    if pairing == "weak":
        pairings = (Integral("pairing", "interior", weak),)
    elif metric in ("operator", "reaction") or pde.sampling is not None:
        pairings = (Integral("pairing", "interior", strong),)
    else:
        pairings = (
            Integral("pairing", "interior", strong, seen_by=("phi",)),
            Integral("weak pairing", "interior", weak, seen_by=("u",)),
        )
    extra = () if residual_weight == 0 else (_residual_loss(pde, residual_weight),)
    return Saddle(
        measures={"interior": pde.interior, "boundary": pde.domain.boundary},
        players=(
            Player("phi", +1, (Feature("interior", dual),)),
            Player("psi", +1, (Feature("boundary", tested, lam),)),
            Player(
                "u",
                -1,
                (
                    Feature("interior", primal),
                    Feature("boundary", mismatch, lam),
                ),
            ),
        ),
        integrals=(
            *pairings,
            Integral("dual energy", "interior", lambda f, p: _square(dual(f, p)), -nu / 2),
            Integral("boundary pairing", "boundary", lambda f, p: jnp.vdot(mismatch(f, p), tested(f, p)), lam),
            Integral("boundary dual energy", "boundary", lambda f, p: _square(tested(f, p)), -lam * nu / 2),
            Integral("boundary penalty", "boundary", lambda f, p: _square(mismatch(f, p)), lam),
            *extra,
        ),
    )


def natural_condition(pde: PDE, *, nu: float = 1.0, metric: MetricName = "gradient") -> Saddle:
    """Lower a PDE with a given flux through the boundary to the saddle of u and a φ that is free there."""
    measured = METRICS[metric]

    def dual(f: Fields, p: Points) -> Array:
        return measured.dual(pde.at(f), f["u"], f["phi"], p.x)

    return Saddle(
        measures={"interior": pde.interior, "boundary": pde.domain.boundary},
        players=(
            Player("phi", +1, (Feature("interior", dual),)),
            Player("u", -1, (Feature("interior", lambda f, p: measured.primal(pde.at(f), f["u"], f["u"], p.x)),)),
        ),
        integrals=(
            Integral("pairing", "interior", lambda f, p: pde.at(f).weak(f["u"], f["phi"], p.x)),
            Integral(
                "boundary flux",
                "boundary",
                lambda f, p: -pde.at(f).boundary.data(p.x) * f["phi"](p.x),
                pde.domain.surface_ratio,
            ),
            Integral("dual energy", "interior", lambda f, p: _square(dual(f, p)), -nu / 2),
        ),
    )


def _residual_loss(pde: PDE, weight: float) -> Integral:
    square = lambda f, p: pde.at(f).residual(f["u"], p.x) ** 2
    return Integral("residual loss", "interior", square, weight, seen_by=("u",))


def _square(v: Array) -> Array:
    return jnp.vdot(v, v)

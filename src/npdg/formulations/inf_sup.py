"""The paper's inf-sup formulation of −div flux(u) + reaction(u) = f, u = g (Secs. 2.3 and 4.1).

Ẽ(u, φ, ψ) = ⟨flux(u), ∇φ⟩ + ⟨reaction(u) − f, φ⟩ − ν/2 |M_d φ|²
           + λ (⟨u − g, ψ⟩_∂ − ν/2 |ψ|²_∂) + λ |u − g|²_∂
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
) -> Saddle:
    """Lower a PDE to the saddle of u, φ (interior) and ψ (boundary), with M_p and M_d by `metric`."""
    trace, measured = TRACES[boundary_norm], METRICS[metric]

    def primal(f: Fields, p: Points) -> Array:
        return measured.primal(pde, f["u"], f["u"], p.x)

    def dual(f: Fields, p: Points) -> Array:
        return measured.dual(pde, f["u"], f["phi"], p.x)

    def weak(f: Fields, p: Points) -> Array:
        return pde.weak(f["u"], f["phi"], p.x)

    def strong(f: Fields, p: Points) -> Array:
        return pde.residual(f["u"], p.x) * f["phi"](p.x)

    def mismatch(f: Fields, p: Points) -> Array:
        return trace(f["u"], p) - trace(pde.boundary.data, p)

    # φ vanishes on the boundary, so both pairings have the same expectation; the variance of the strong
    # one vanishes with the residual. For u the weak one is as good, since φ → 0, and needs one derivative; but in the
    # metric of the operator its gradient would not lie in the range of its Gram matrix.
    if pairing == "weak":
        pairings = (Integral("pairing", "interior", weak),)
    elif metric == "operator":
        pairings = (Integral("pairing", "interior", strong),)
    else:
        pairings = (
            Integral("pairing", "interior", strong, seen_by=("phi",)),
            Integral("weak pairing", "interior", weak, seen_by=("u",)),
        )
    return Saddle(
        measures={"interior": pde.domain.interior, "boundary": pde.domain.boundary},
        players=(
            Player("phi", +1, (Feature("interior", dual),)),
            Player("psi", +1, (Feature("boundary", lambda f, p: trace(f["psi"], p), lam),)),
            Player(
                "u",
                -1,
                (
                    Feature("interior", primal),
                    Feature("boundary", lambda f, p: trace(f["u"], p), lam),
                ),
            ),
        ),
        integrals=(
            *pairings,
            Integral("dual energy", "interior", lambda f, p: _square(dual(f, p)), -nu / 2),
            Integral("boundary pairing", "boundary", lambda f, p: jnp.vdot(mismatch(f, p), trace(f["psi"], p)), lam),
            Integral("boundary dual energy", "boundary", lambda f, p: _square(trace(f["psi"], p)), -lam * nu / 2),
            Integral("boundary penalty", "boundary", lambda f, p: _square(mismatch(f, p)), lam),
        ),
    )


def _square(v: Array) -> Array:
    return jnp.vdot(v, v)

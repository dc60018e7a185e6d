"""The paper's inf-sup formulation of −div flux(u) + reaction(u) = f, u = g (Secs. 2.3 and 4.1).

Ẽ(u, φ, ψ) = ⟨flux(u), ∇φ⟩ + ⟨reaction(u) − f, φ⟩ − ν/2 |M_d φ|²
           + λ (⟨u − g, ψ⟩_∂ − ν/2 |ψ|²_∂) + λ |u − g|²_∂

A flux g through the boundary is tested by ψ in the same way, or it is the natural condition of the weak form: then φ
does not vanish on the boundary, and −⟨g, φ⟩_∂ takes the place of ψ.
"""

from typing import Literal

import jax.numpy as jnp
from jax import Array

from npdg.formulations.equation import equation_saddle, square
from npdg.formulations.metrics import MetricName, Structure
from npdg.formulations.metrics import metric as metric_of
from npdg.formulations.traces import TRACES, BoundaryNorm
from npdg.measures.points import Points
from npdg.problem.pde import PDE
from npdg.saddle.saddle import Feature, Fields, Integral, Player, Residual, Saddle


def inf_sup(
    pde: PDE,
    *,
    nu: float = 1.0,
    lam: float = 10.0,
    pairing: Literal["weak", "strong"] = "weak",
    boundary_norm: BoundaryNorm = "l2",
    metric: MetricName = "gradient",
    residual_weight: float = 0.0,
    structure: Structure = "scalar",
) -> Saddle:
    """Lower a PDE to the saddle of u, φ (interior) and ψ (boundary), with M_p and M_d by `metric`.

    `residual_weight` · |residual|² is added to what u descends.
    """
    trace, measured = TRACES[boundary_norm], metric_of(metric, structure)

    def primal(f: Fields, p: Points) -> Array:
        return measured.primal(pde, f["u"], f["u"], p.x)

    def dual(f: Fields, p: Points) -> Array:
        return measured.dual(pde, f["u"], f["phi"], p.x)

    def mismatch(f: Fields, p: Points) -> Array:
        return pde.mismatch(f["u"], p, trace)

    def tested(f: Fields, p: Points) -> Array:
        return pde.boundary.tested(f["psi"], p, trace)

    pairings = _pairings(pde, pairing, metric)
    extra = () if residual_weight == 0 else (_residual_loss(pde, residual_weight),)
    return equation_saddle(
        pde,
        residual=Residual("residual loss", 1 / residual_weight) if extra else Residual("pairing"),
        players=(
            Player("phi", +1, (Feature("interior", dual),)),
            Player("psi", +1, (Feature("boundary", tested, lam),)),
            Player("u", -1, (Feature("interior", primal), Feature("boundary", mismatch, lam))),
        ),
        integrals=(
            *pairings,
            Integral("dual energy", "interior", lambda f, p: square(dual(f, p)), -nu / 2),
            Integral("boundary pairing", "boundary", lambda f, p: jnp.vdot(mismatch(f, p), tested(f, p)), lam),
            Integral("boundary dual energy", "boundary", lambda f, p: square(tested(f, p)), -lam * nu / 2),
            Integral("boundary penalty", "boundary", lambda f, p: square(mismatch(f, p)), lam),
            *extra,
        ),
    )


def _pairings(pde: PDE, pairing: Literal["weak", "strong"], metric: MetricName) -> tuple[Integral, ...]:
    """The pairing of the equation with φ.

    φ vanishes on the boundary, so both pairings have the same expectation; the variance of the strong one vanishes with
    the residual. For u the weak one is as good, since φ → 0, and needs one derivative; but in the operator's metric
    its gradient would not lie in the range of its Gram matrix, and it asks for uniform points.
    """

    def weak(f: Fields, p: Points) -> Array:
        return pde.weak(f["u"], f["phi"], p.x)

    def strong(f: Fields, p: Points) -> Array:
        return pde.residual(f["u"], p.x) * f["phi"](p.x)

    if pairing == "weak":
        return (Integral("pairing", "interior", weak),)
    if metric in ("operator", "reaction") or pde.sampling is not None:
        return (Integral("pairing", "interior", strong),)
    return (
        Integral("pairing", "interior", strong, seen_by=("phi",)),
        Integral("weak pairing", "interior", weak, seen_by=("u",)),
    )


def natural_condition(
    pde: PDE, *, nu: float = 1.0, metric: MetricName = "gradient", structure: Structure = "scalar"
) -> Saddle:
    """Lower a PDE with a given flux through the boundary to the saddle of u and a φ that is free there."""
    measured = metric_of(metric, structure)

    def dual(f: Fields, p: Points) -> Array:
        return measured.dual(pde, f["u"], f["phi"], p.x)

    return equation_saddle(
        pde,
        residual=Residual("pairing"),
        players=(
            Player("phi", +1, (Feature("interior", dual),)),
            Player("u", -1, (Feature("interior", lambda f, p: measured.primal(pde, f["u"], f["u"], p.x)),)),
        ),
        integrals=(
            Integral("pairing", "interior", lambda f, p: pde.weak(f["u"], f["phi"], p.x)),
            Integral(
                "boundary flux",
                "boundary",
                lambda f, p: pde.boundary.work(f["u"], f["phi"], p),
                pde.domain.surface_ratio,
            ),
            Integral("dual energy", "interior", lambda f, p: square(dual(f, p)), -nu / 2),
        ),
    )


def _residual_loss(pde: PDE, weight: float) -> Integral:
    square = lambda f, p: pde.residual(f["u"], p.x) ** 2
    return Integral("residual loss", "interior", square, weight, seen_by=("u",))

"""The inf-sup problem with M_p = L, M_d = Id and the dual players maximised exactly.

    sup over φ, ψ of  ⟨r(u), φ⟩ − ν/2 |φ|² + λ (⟨u − g, ψ⟩ − ν/2 |ψ|²)  =  (|r(u)|² + λ |u − g|²) / 2ν,

attained at φ = r(u)/ν, ψ = (u − g)/ν, where r is the strong residual (the paper's remark on operators that are
not in divergence form). No dual player is left to carry; u's Gram matrix in this metric is that of Gauss and Newton.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from npdg.formulations.equation import equation_saddle, square
from npdg.formulations.traces import TRACES, BoundaryNorm
from npdg.measures.points import Points
from npdg.problem.pde import PDE
from npdg.saddle.saddle import Feature, Fields, Integral, Player, Residual, Saddle


def least_squares(
    pde: PDE,
    *,
    lam: float = 10.0,
    boundary_norm: BoundaryNorm = "h1-sampled",
    weight: Callable[[Array], Array] | None = None,
) -> Saddle:
    """Lower a PDE to the descent of u in ½|weight·r(u)|² + λ/2 |u − g|²; the weight is 1 if none is given."""
    trace = TRACES[boundary_norm]

    def residual(f: Fields, p: Points) -> Array:
        value = pde.residual(f["u"], p.x)[None]
        return value if weight is None else weight(p.x) * value

    def mismatch(f: Fields, p: Points) -> Array:
        return pde.mismatch(f["u"], p, trace)

    return equation_saddle(
        pde,
        players=(Player("u", -1, (Feature("interior", residual), Feature("boundary", mismatch, lam))),),
        integrals=(
            Integral("residual", "interior", lambda f, p: square(residual(f, p)), 0.5),
            Integral("boundary", "boundary", lambda f, p: square(mismatch(f, p)), lam / 2),
        ),
        residual=Residual("residual", 2.0),
    )


def hardy_weight(pde: PDE) -> Callable[[Array], Array] | None:
    """The distance to the boundary over its largest, where u is given there; no weight elsewhere.

    By Hardy's inequality |∫ r φ| ≤ |ζ r| |φ/ζ| ≤ C |ζ r| |∇φ| for every φ that vanishes on the boundary: ζ r bounds the
    dual norm of the residual, and with it the error, where r itself may be large near a corner and mean nothing.
    """
    if not pde.boundary.essential:
        return None
    lower, upper = pde.domain.bounds()
    largest = float(pde.domain.cutoff(jnp.asarray((lower + upper) / 2)))
    return lambda x: pde.domain.cutoff(x) / largest

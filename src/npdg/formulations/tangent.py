"""The inf-sup problem in the gradient metric, with φ maximised in the tangent space of u and no ψ.

M_p = M_d = √κ ∇, where κ is the equation's own conductivity. φ = ζ·(∂_θ u · v) carries no state: it starts at zero in
every step and one natural step of length 1/ν is its exact maximiser. The pairing is strong for φ, on more points
than the metric uses, since this right-hand side is the only place where sampling noise enters; u is paired weakly,
on the points of the metric, so that its system is consistent. The linearised reaction acts on φ in u's gradient.
"""

from jax import Array

from npdg.calculus import Scalar
from npdg.fields.tangent import Tangent
from npdg.formulations.equation import equation_saddle, square
from npdg.formulations.metrics import MetricName, Structure
from npdg.formulations.metrics import metric as metric_of
from npdg.formulations.traces import TRACES, BoundaryNorm
from npdg.measures.points import Points
from npdg.problem.pde import PDE
from npdg.saddle.saddle import Feature, Fields, Integral, Player, Residual, Saddle


def tangent(
    pde: PDE,
    *,
    nu: float = 1.0,
    lam: float = 10.0,
    boundary_norm: BoundaryNorm = "h1",
    metric: MetricName = "energy",
    structure: Structure = "scalar",
) -> Saddle:
    """Lower a PDE to the saddle of u and a φ in u's tangent space; measures interior, metric and boundary."""
    trace, measured = TRACES[boundary_norm], metric_of(metric, structure)

    def slope(v: Scalar, f: Fields, p: Points) -> Array:
        return measured.primal(pde, f["u"], v, p.x)

    def strong(f: Fields, p: Points) -> Array:
        return pde.residual(f["u"], p.x) * f["phi"](p.x)

    def weak(f: Fields, p: Points) -> Array:
        return pde.weak(f["u"], f["phi"], p.x)

    def energy(f: Fields, p: Points) -> Array:
        return square(slope(f["phi"], f, p))

    def mismatch(f: Fields, p: Points) -> Array:
        # Values are weighed like the energy inside, or a large conductivity would make the boundary unimportant.
        weighed = lambda v, q: measured.weight(pde, f["u"], q.x) * trace(v, q)
        return pde.mismatch(f["u"], p, weighed)

    return equation_saddle(
        pde,
        measures={"metric": pde.interior},
        residual=Residual("pairing"),
        players=(
            Player(
                "phi",
                +1,
                (Feature("metric", lambda f, p: slope(f["phi"], f, p)),),
                fresh=lambda fields: Tangent.at(pde.domain, fields["u"]),
            ),
            Player(
                "u",
                -1,
                (Feature("metric", lambda f, p: slope(f["u"], f, p)), Feature("boundary", mismatch, lam)),
            ),
        ),
        integrals=(
            Integral("pairing", "interior", strong, seen_by=("phi",)),
            Integral("weak pairing", "metric", weak, seen_by=("u",)),
            Integral("dual energy", "metric", energy, -nu / 2, seen_by=("phi",)),
            Integral("boundary", "boundary", lambda f, p: square(mismatch(f, p)), lam / 2),
        ),
    )

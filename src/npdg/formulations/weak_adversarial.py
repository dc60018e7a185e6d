"""The objective of weak adversarial networks (WAN; Table 2 of the paper):

    log |⟨flux(u), ∇φ⟩ + ⟨reaction(u) − f, φ⟩|² − log |φ|² + λ |u − g|²_∂,

which φ maximises and u minimises. It is a ratio: the length of φ does not matter.
"""

from collections.abc import Mapping

import jax.numpy as jnp
from jax import Array

from npdg.formulations.equation import equation_saddle
from npdg.formulations.traces import l2_trace
from npdg.measures.points import Points
from npdg.problem.pde import PDE
from npdg.saddle.saddle import Fields, Integral, Player, Residual, Saddle


def weak_adversarial(pde: PDE, *, lam: float = 1e4) -> Saddle:
    """Lower a PDE to the saddle of u and a test function φ of arbitrary length."""

    def weak(f: Fields, p: Points) -> Array:
        return pde.weak(f["u"], f["phi"], p.x)

    def mismatch(f: Fields, p: Points) -> Array:
        return pde.mismatch(f["u"], p, l2_trace)[0]

    def ratio(terms: Mapping[str, Array]) -> Array:
        return jnp.log(terms["pairing"] ** 2) - jnp.log(terms["test norm"]) + terms["boundary"]

    return equation_saddle(
        pde,
        residual=Residual("pairing"),
        players=(Player("phi", +1, ()), Player("u", -1, ())),
        integrals=(
            Integral("pairing", "interior", weak),
            Integral("test norm", "interior", lambda f, p: f["phi"](p.x) ** 2),
            Integral("boundary", "boundary", lambda f, p: mismatch(f, p) ** 2, lam),
        ),
        combine=ratio,
    )

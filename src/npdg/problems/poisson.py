"""Poisson's equation on the unit cube (Sec. 5.1): −Δu = f, u = g, with u* = Σ sin(π x_k / 2)."""

from typing import TYPE_CHECKING, Any

from npdg.problems.card import Card
from npdg.problems.paper import COMMON

if TYPE_CHECKING:
    from npdg.pde import PDE


def build(dim: int) -> "PDE":
    """The equation in any dimension."""
    import jax.numpy as jnp

    from npdg.calculus import grad
    from npdg.domains import Box
    from npdg.pde import PDE, Dirichlet

    exact = lambda x: jnp.sum(jnp.sin(jnp.pi / 2 * x))
    return PDE(
        Box(0.0, 1.0, dim=dim),
        flux=lambda u, x: grad(u)(x),
        source=lambda x: (jnp.pi / 2) ** 2 * exact(x),
        boundary=Dirichlet(exact),
        exact=exact,
        name="poisson",
    )


def paper(method: str, dim: int) -> dict[str, Any]:
    """Sec. 5.1 for NPDG and its flat-gradient ablation; rates of PD-Adam from Table 2 (WAN/PD-Adam column)."""
    high = dim >= 50  # the paper's two regimes: up to 20-D, and 50-D
    npdg = {
        **COMMON,
        "n_interior": 4000 if high else 2000,
        "n_boundary": 80 * dim,
        "psi_width": 64,
        "depth": 6 if high else 4,
        "minres_rtol": 1e-4 if high else 1e-3,
    }
    adam = {
        "tau_u": 0.5e-3,
        "tau_phi": 0.5e-2,
        "tau_psi": 0.5e-2,
        "omega": 0.0,
        "n_interior": 10000,
        "n_boundary": 60 * dim,
    }
    return npdg | (adam if method == "pd-adam" else {})


CARD = Card(
    name="poisson",
    title="Poisson's equation on the unit cube",
    equation="−Δu = (π²/4) Σ sin(πx_k/2) in (0,1)^d,  u = Σ sin(πx_k/2) on the boundary",
    default_dim=10,
    build=build,
    paper=paper,
)

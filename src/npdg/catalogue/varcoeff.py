"""The elliptic equation with a variable coefficient (Sec. 5.2): −div(κ∇u) = f, with u* = ½ xᵀΛ⁻¹x."""

from typing import TYPE_CHECKING, Any

from npdg.catalogue.card import Card
from npdg.methods.presets.paper import COMMON, UNIT_STEPS, alone, rates

if TYPE_CHECKING:
    from npdg.problem.pde import PDE


def build(dim: int) -> "PDE":
    """The equation in any even dimension; Λ = diag(1, 4, 1, 4, …)."""
    import jax.numpy as jnp
    import numpy as np

    from npdg.calculus import grad
    from npdg.geometry.box import Box
    from npdg.problem.conditions import Dirichlet
    from npdg.problem.pde import PDE

    eigenvalues = tuple(float(value) for value in np.tile([1.0, 4.0], dim // 2))
    spectrum = lambda x: jnp.asarray(eigenvalues, x.dtype)
    kappa = lambda x: (jnp.vdot(x, spectrum(x) * x) + 1) / 2
    exact = lambda x: jnp.vdot(x, x / spectrum(x)) / 2
    trace = sum(1 / value for value in eigenvalues)
    return PDE(
        Box(-1.0, 1.0, dim=dim),
        flux=lambda u, x: kappa(x) * grad(u)(x),
        source=lambda x: -trace * kappa(x) - jnp.vdot(x, x),
        boundary=Dirichlet(exact),
        exact=exact,
        name="varcoeff",
    )


def paper(method: str, dim: int, **options: str) -> dict[str, Any]:
    """Table 1 with the H¹ boundary loss and √κ∇ metrics of Table 4; Table 2 for the others."""
    high, slow = dim >= 50, dim > 10
    npdg = {
        **COMMON,
        "tau_u": 0.05 if slow else 0.1,
        "tau_phi": 0.095 if slow else 0.19,
        "tau_psi": 0.095 if slow else 0.19,
        "n_interior": 6000 if high else 4000,
        "n_boundary": 80 * dim,
        "psi_width": 128,
        "depth": 6 if high else 4,
        "activation": "softplus",
        # Printed as ¼; but so flat a bend gives MINRES one or two iterations and no convergence (docs/method.md).
        "softplus_beta": 4.0,
        "metric": "energy",
        "boundary_norm": "h1",
        "minres_rtol": 1e-4 if high else 0.5e-3,
    }
    rate = 0.5e-3 if slow else 0.5e-2
    adam = rates(rate, 10 * rate, n_interior=4000)
    pinn = alone(1e-4, 1e4)
    others: dict[str, dict[str, Any]] = {
        "pd-adam": adam,
        "wan": adam | {"lam": 1e4},
        "pinn": pinn,
        "pinn-lbfgs": pinn | UNIT_STEPS,
        "deep-ritz": alone(0.5e-3, 1e3),
    }
    return npdg | others.get(method, {})


def formulas(dim: int) -> tuple[str, ...]:
    """The equation as it is set in a report."""
    cube = rf"(-1,1)^{{{dim}}}"
    return (
        rf"-\div(κ ∇u) = -\Tr(Λ^{{-1}}) κ - |x|^2 \quad \text{{in }} {cube}, \quad u = u^* \quad \text{{on }} ∂{cube}",
        r"κ = \frac{1}{2}(x^⊤ Λ x + 1), \quad Λ = \diag(1, 4, 1, 4, …), \quad u^* = \frac{1}{2} x^⊤ Λ^{-1} x",
    )


CARD = Card(
    name="varcoeff",
    title="an elliptic equation with a variable coefficient on a cube",
    equation="−div(κ∇u) = −Tr(Λ⁻¹)κ − |x|² in (−1,1)^d,  u = ½ xᵀΛ⁻¹x on the boundary,  "
    "κ = (xᵀΛx + 1)/2,  Λ = diag(1, 4, 1, 4, …)",
    default_dim=10,
    make=build,
    paper=paper,
    dims=lambda dim: dim % 2 == 0,
    dims_text="an even number from 2 to 1000",
    formulas=formulas,
)

"""The nonlinear elliptic equation on a ball of radius 3 (Sec. 5.3), with u* = cos(π|x|/2).

strong:  ½|∇u|² + V = Δu.     mild:  (ε₀/2)|∇u|² + Δu = V with ε₀ = 1/10.
"""

from typing import TYPE_CHECKING, Any

from npdg.catalogue.card import Card
from npdg.methods.presets.paper import COMMON, UNIT_STEPS, alone, rates

if TYPE_CHECKING:
    from npdg.problem.pde import PDE


def build(dim: int, variant: str = "strong") -> "PDE":
    """The equation in any dimension."""
    import jax.numpy as jnp

    from npdg.calculus import grad
    from npdg.geometry.ball import Ball
    from npdg.problem.conditions import Dirichlet
    from npdg.problem.pde import PDE

    # −Δu + factor·|∇u|² = source; both variants have the same solution.
    factor = 0.5 if variant == "strong" else -0.05
    exact = lambda x: _radial(x)[0]

    def source(x):
        value, slope_over_r, r2 = _radial(x)
        # Δ cos(πr/2) = −(π²/4) cos(πr/2) + (d − 1) u'(r)/r, and |∇u|² = (u'(r)/r)² r².
        laplacian = -((jnp.pi / 2) ** 2) * value + (dim - 1) * slope_over_r
        return -laplacian + factor * slope_over_r**2 * r2

    return PDE(
        Ball(3.0, dim=dim),
        flux=lambda u, x: grad(u)(x),
        reaction=lambda u, x: factor * jnp.vdot(grad(u)(x), grad(u)(x)),
        source=source,
        boundary=Dirichlet(0.0),
        exact=exact,
        name="nonlinear",
        options={"variant": variant},
    )


def _radial(x: Any) -> tuple[Any, Any, Any]:
    """cos(πr/2), its radial derivative over r, and r², smooth also at the centre."""
    import jax.numpy as jnp

    r2 = jnp.vdot(x, x)
    small = r2 < 1e-12
    r = jnp.sqrt(jnp.where(small, 1.0, r2))
    value = jnp.where(small, 1 - (jnp.pi / 2) ** 2 * r2 / 2, jnp.cos(jnp.pi / 2 * r))
    slope_over_r = jnp.where(small, -((jnp.pi / 2) ** 2), -jnp.pi / 2 * jnp.sin(jnp.pi / 2 * r) / r)
    return value, slope_over_r, r2


def paper(method: str, dim: int, **options: str) -> dict[str, Any]:
    """Sec. 5.3 for NPDG, Table 2 for the others. There is no energy: Deep Ritz is refused when it is built."""
    npdg = {**COMMON, "n_interior": 4000, "n_boundary": 40 * dim, "psi_width": 128}
    adam = rates(0.5e-3, 0.5e-2, lam=1e3)
    pinn = alone(1e-4, 1e4)
    others: dict[str, dict[str, Any]] = {
        "pd-adam": adam,
        "wan": adam,
        "pinn": pinn,
        "pinn-lbfgs": pinn | UNIT_STEPS,
        "deep-ritz": pinn,
    }
    return npdg | others.get(method, {})


def formulas(dim: int, variant: str = "strong") -> tuple[str, ...]:
    """The equation as it is set in a report."""
    equation = {"strong": r"\frac{1}{2}|∇u|^2 + V = Δu", "mild": r"\frac{1}{20}|∇u|^2 + Δu = V"}[variant]
    domain = rf"\text{{in }} |x| < 3, \, x ∈ ℝ^{{{dim}}}"
    return rf"{equation} \quad {domain}, \quad u = 0 \quad \text{{on }} |x| = 3", r"u^* = \cos(\frac{π}{2}|x|)"


CARD = Card(
    name="nonlinear",
    title="a nonlinear elliptic equation on a ball",
    equation="½|∇u|² + V = Δu (variant=strong) or (1/20)|∇u|² + Δu = V (variant=mild) in |x| < 3,  u = 0 on |x| = 3",
    default_dim=5,
    make=build,
    paper=paper,
    options={"variant": ("strong", "mild")},
    formulas=formulas,
)

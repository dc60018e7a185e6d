"""Poisson's equation on the unit cube (Sec. 5.1): −Δu = f, u = g, with u* = Σ sin(π x_k / 2), or another u*.

The other solutions are harder in one way each: `cosines` has a higher frequency, `paraboloid` is |x|², and `packet`
is not a sum of one-dimensional functions: exp(−|x − c|²) sin Σ x_k with c the centre of the cube.
"""

from typing import TYPE_CHECKING, Any

from npdg.catalogue.card import Card
from npdg.methods.presets.paper import COMMON, UNIT_STEPS, alone, rates

if TYPE_CHECKING:
    from npdg.problem.pde import PDE

SOLUTIONS = ("sines", "cosines", "paraboloid", "packet")


def build(dim: int, solution: str = "sines") -> "PDE":
    """The equation in any dimension."""
    import jax.numpy as jnp

    from npdg.calculus import grad
    from npdg.geometry.box import Box
    from npdg.problem.conditions import Dirichlet
    from npdg.problem.pde import PDE

    def packet(x: Any) -> tuple[Any, Any, Any]:
        """exp(−|x − c|²), sin Σx and cos Σx: what the packet and its Laplacian are made of."""
        return jnp.exp(-jnp.sum((x - 0.5) ** 2)), jnp.sin(jnp.sum(x)), jnp.cos(jnp.sum(x))

    def packet_source(x: Any) -> Any:
        bell, sine, cosine = packet(x)
        bell_laplacian = (4 * jnp.sum((x - 0.5) ** 2) - 2 * dim) * bell
        return -(bell_laplacian * sine - 4 * jnp.sum(x - 0.5) * bell * cosine - dim * bell * sine)

    exact, source = {
        "sines": (
            lambda x: jnp.sum(jnp.sin(jnp.pi / 2 * x)),
            lambda x: (jnp.pi / 2) ** 2 * jnp.sum(jnp.sin(jnp.pi / 2 * x)),
        ),
        "cosines": (
            lambda x: jnp.sum(jnp.cos(jnp.pi * x)),
            lambda x: jnp.pi**2 * jnp.sum(jnp.cos(jnp.pi * x)),
        ),
        "paraboloid": (lambda x: jnp.vdot(x, x), lambda x: jnp.full((), -2.0 * dim, x.dtype)),
        "packet": (lambda x: packet(x)[0] * packet(x)[1], packet_source),
    }[solution]
    return PDE(
        Box(0.0, 1.0, dim=dim),
        flux=lambda u, x: grad(u)(x),
        source=source,
        boundary=Dirichlet(exact),
        exact=exact,
        name="poisson",
        options={"solution": solution},
    )


def paper(method: str, dim: int, **options: str) -> dict[str, Any]:
    """Sec. 5.1 for NPDG and its flat-gradient ablation, Table 2 for the others."""
    high = dim >= 50  # the paper's two regimes: up to 20-D, and 50-D
    npdg = {
        **COMMON,
        "n_interior": 4000 if high else 2000,
        "n_boundary": 80 * dim,
        "psi_width": 64,
        "depth": 6 if high else 4,
        "minres_rtol": 1e-4 if high else 1e-3,
    }
    samples = {"n_interior": 10000, "n_boundary": 60 * dim}
    pinn = alone(1e-4, 1e4)
    others: dict[str, dict[str, Any]] = {
        "pd-adam": rates(0.5e-3, 0.5e-2, **samples),
        "wan": rates(0.5e-3, 0.5e-2, lam=1e4, **samples),
        "pinn": pinn,
        "pinn-lbfgs": pinn | UNIT_STEPS,
        "deep-ritz": pinn,
    }
    return npdg | others.get(method, {})


def formulas(dim: int, solution: str = "sines") -> tuple[str, ...]:
    """The equation as it is set in a report."""
    total = rf"∑_{{k=1}}^{{{dim}}}"
    exact = {
        "sines": rf"{total} \sin(\frac{{π}}{{2}} x_k)",
        "cosines": rf"{total} \cos(π x_k)",
        "paraboloid": r"|x|^2",
        "packet": rf"\exp(-|x-c|^2) \, \sin({total} x_k)",
    }[solution]
    cube = rf"(0,1)^{{{dim}}}"
    return rf"-Δu = f \quad \text{{in }} {cube}, \quad u = u^* \quad \text{{on }} ∂{cube}", rf"u^* = {exact}"


CARD = Card(
    name="poisson",
    title="Poisson's equation on the unit cube",
    equation="−Δu = f in (0,1)^d,  u = g on the boundary;  u* = Σ sin(πx_k/2), Σ cos(πx_k) (solution=cosines), "
    "|x|² (paraboloid) or exp(−|x − c|²) sin Σx_k (packet)",
    default_dim=10,
    make=build,
    paper=paper,
    options={"solution": SOLUTIONS},
    formulas=formulas,
)

"""A nonlinear equation with a known solution, and small networks of all its players."""

import jax
import jax.numpy as jnp

import npdg
from npdg import grad
from npdg.fields.base import Field
from npdg.fields.mlp import MLP
from npdg.fields.wrappers import CutOff
from npdg.geometry.domain import Domain
from npdg.problem.pde import PDE

EXACT = lambda x: jnp.sin(x[0]) * jnp.exp(x[1])


def equation(domain: Domain | None = None) -> PDE:
    """−div((2 + x₁) ∇u) + u³ = f with a known solution."""
    flux = lambda u, x: (2 + x[0]) * grad(u)(x)
    reaction = lambda u, x: u(x) ** 3
    source = lambda x: -npdg.div(lambda y: flux(EXACT, y))(x) + EXACT(x) ** 3
    domain = npdg.Box(0.0, 1.0, dim=2) if domain is None else domain
    return PDE(domain, flux, source, reaction, npdg.Dirichlet(EXACT), EXACT)


def fields_of(pde: PDE, seed: int = 0, width: int = 6) -> dict[str, Field]:
    """u, φ and ψ before training."""
    keys = jax.random.split(jax.random.key(seed), 3)
    return {
        "u": MLP(pde.dim, width, 3, key=keys[0]),
        "phi": CutOff(pde.domain, MLP(pde.dim, width, 3, key=keys[1])),
        "psi": MLP(pde.dim, width, 3, key=keys[2]),
    }

"""Poisson's equation in five dimensions, with a known solution to compare with."""

import jax.numpy as jnp

import npdg
from npdg import grad

exact = lambda x: jnp.sum(jnp.sin(jnp.pi / 2 * x))

pde = npdg.PDE(
    npdg.Box(0.0, 1.0, dim=5),
    flux=lambda u, x: grad(u)(x),
    source=lambda x: (jnp.pi / 2) ** 2 * exact(x),
    boundary=npdg.Dirichlet(exact),
    exact=exact,
)

if __name__ == "__main__":
    solution = npdg.solve(pde, steps=60)
    print(solution.error())
    assert solution.error().rel_l2 < 1e-3

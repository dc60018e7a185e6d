"""−Δu + u³ = f on the unit disc: a nonlinear reaction, and a point evaluation of u and ∇u."""

import jax.numpy as jnp

import npdg
from npdg import grad

exact = lambda x: jnp.cos(x[0]) * jnp.exp(x[1])  # Δ exact = 0

pde = npdg.PDE(
    npdg.Ball(1.0, dim=2),
    flux=lambda u, x: grad(u)(x),
    reaction=lambda u, x: u(x) ** 3,
    source=lambda x: exact(x) ** 3,
    boundary=npdg.Dirichlet(exact),
    exact=exact,
)

if __name__ == "__main__":
    solution = npdg.solve(pde, steps=150, activation="tanh")
    print(solution.error())
    print("u(0) =", solution([0.0, 0.0]), " ∇u(0) =", solution.gradient([0.0, 0.0]))
    assert solution.error().rel_l2 < 1e-4

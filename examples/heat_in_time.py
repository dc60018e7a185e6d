"""∂u/∂t = κΔu + f on a rectangle with heat flowing in on the left: a march in time, and u between two of its times."""

import jax.numpy as jnp
import numpy as np

import npdg
from npdg import grad

KAPPA = 0.2
exact = lambda x, t: (2 - x[0]) ** 2 / 2 + (1 + 2 * KAPPA) * t + jnp.cos(jnp.pi * x[1]) * jnp.exp(-t)

evolution = npdg.Evolution(
    lambda t: npdg.PDE(
        npdg.Box([0.0, 0.0], [2.0, 1.0]),
        flux=lambda u, x: KAPPA * grad(u)(x),
        source=lambda x: 1 + KAPPA + (KAPPA * jnp.pi**2 - 1) * jnp.cos(jnp.pi * x[1]) * jnp.exp(-t),
        boundary=npdg.Neumann(lambda x: jnp.where(x[0] < 1e-6, 2 * KAPPA, 0.0)),  # flux·n: in at x = 0, none elsewhere
        exact=lambda x: exact(x, t),  # only to measure the error
    ),
    start=lambda x: exact(x, 0.0),
    until=0.5,
    steps=5,
)

if __name__ == "__main__":
    trajectory = npdg.march(evolution, tolerance=1e-2)
    for step in trajectory.steps:
        print(f"t = {step.time:.1f}: error {step.rmse:.1e}, {len(step.history)} steps, stopped by {step.stop_reason}")
    print("u(0.25, ·) =", trajectory(0.25, np.array([[0.5, 0.5], [1.5, 0.5]])))
    assert max(trajectory.rmse.values()) < 2e-2  # what implicit Euler with these steps allows

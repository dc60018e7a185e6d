"""First order in time: the heat equation with exact solution e^{−dκπ²t} Π cos(πx_i), in 1, 2 and 5 dimensions.

    python benchmarks/heat.py

Marches to t = 1/(dκπ²) with 2, 4, 8 and 16 steps; the slope of log error against log h is printed for each dimension.
"""

import jax.numpy as jnp
import numpy as np

import npdg
from npdg import grad

KAPPA = 0.1
STEPS = (2, 4, 8, 16)


def heat(dim: int, steps: int) -> npdg.Evolution:
    """The equation on the unit cube, without flux through its boundary."""
    rate = dim * KAPPA * np.pi**2
    shape = lambda x: jnp.prod(jnp.cos(jnp.pi * x))
    return npdg.Evolution(
        lambda t: npdg.PDE(
            npdg.Box(0.0, 1.0, dim=dim),
            flux=lambda u, x: KAPPA * grad(u)(x),
            boundary=npdg.Neumann(0.0),
            exact=lambda x: jnp.exp(-rate * t) * shape(x),
        ),
        start=shape,
        until=1 / rate,
        steps=steps,
        name="heat",
    )


def main() -> None:
    for dim in (1, 2, 5):
        errors = []
        for steps in STEPS:
            trajectory = npdg.march(heat(dim, steps), tolerance=1e-3)
            errors.append(trajectory.rmse[trajectory.times[-1]])
            expected = abs((1 + 1 / steps) ** -steps - np.exp(-1)) * 2 ** (-dim / 2)
            print(
                f"{dim}-D, {steps} steps: error {errors[-1]:.3e}, implicit Euler alone {expected:.3e}, "
                f"fit of the start {trajectory.rmse[0.0]:.1e}, {trajectory.seconds:.1f} s",
                flush=True,
            )
        slope = -np.polyfit(np.log(STEPS), np.log(errors), 1)[0]
        print(f"{dim}-D: measured order {slope:.2f}", flush=True)


if __name__ == "__main__":
    main()

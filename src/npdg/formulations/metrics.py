"""The operator M of a first-order splitting: what of a function is measured inside the domain."""

from collections.abc import Callable
from typing import Literal

import jax.numpy as jnp
from jax import Array, lax

from npdg.calculus import Scalar, grad
from npdg.pde import PDE

MetricName = Literal["gradient", "energy"]
# (the equation, the present u, the function measured, the point) ↦ M v(x)
Metric = Callable[[PDE, Scalar, Scalar, Array], Array]


def gradient(pde: PDE, u: Scalar, v: Scalar, x: Array) -> Array:
    """∇v."""
    del pde, u
    return grad(v)(x)


def energy(pde: PDE, u: Scalar, v: Scalar, x: Array) -> Array:
    """√κ ∇v, with the equation's own conductivity at the present u, whose dependence on u is not differentiated."""
    kappa = lax.stop_gradient(pde.conductivity(u, x))
    return jnp.sqrt(jnp.maximum(kappa, jnp.finfo(kappa.dtype).tiny)) * grad(v)(x)


METRICS: dict[str, Metric] = {"gradient": gradient, "energy": energy}

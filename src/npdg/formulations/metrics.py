"""The operators M_p and M_d of a splitting: what of u and of φ is measured inside the domain."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from npdg.calculus import Scalar, grad
from npdg.pde import PDE

MetricName = Literal["gradient", "energy", "identity", "operator"]
# (the equation, the present u, the function measured, the point) ↦ M v(x)
Measured = Callable[[PDE, Scalar, Scalar, Array], Array]


class Metric(NamedTuple):
    """M_p for u and M_d for φ."""

    primal: Measured
    dual: Measured


def gradient(pde: PDE, u: Scalar, v: Scalar, x: Array) -> Array:
    """∇v."""
    del pde, u
    return grad(v)(x)


def energy(pde: PDE, u: Scalar, v: Scalar, x: Array) -> Array:
    """√κ ∇v, with the equation's own conductivity at the present u, whose dependence on u is not differentiated."""
    kappa = lax.stop_gradient(pde.conductivity(u, x))
    return jnp.sqrt(jnp.maximum(kappa, jnp.finfo(kappa.dtype).tiny)) * grad(v)(x)


def identity(pde: PDE, u: Scalar, v: Scalar, x: Array) -> Array:
    """v itself."""
    del pde, u
    return v(x)[None]


def operator(pde: PDE, u: Scalar, v: Scalar, x: Array) -> Array:
    """The equation's residual at v, whose derivative by v's parameters is the linearised operator's."""
    del u
    return pde.residual(v, x)[None]


METRICS: dict[str, Metric] = {
    "gradient": Metric(gradient, gradient),
    "energy": Metric(energy, energy),
    "identity": Metric(identity, identity),
    "operator": Metric(operator, identity),
}

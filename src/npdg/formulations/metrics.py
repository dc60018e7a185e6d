"""The operators M_p and M_d of a splitting: what of u and of φ is measured inside the domain."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from npdg.calculus import Scalar, grad
from npdg.pde import PDE

MetricName = Literal["gradient", "energy", "identity", "operator", "reaction-diffusion", "reaction"]
# (the equation, the present u, the function measured, the point) ↦ M v(x)
Measured = Callable[[PDE, Scalar, Scalar, Array], Array]


def unweighted(pde: PDE, u: Scalar, x: Array) -> Array:
    """1."""
    del pde, u
    return jnp.ones((), x.dtype)


def root_conductivity(pde: PDE, u: Scalar, x: Array) -> Array:
    """√κ, the equation's own conductivity at the present u, whose dependence on u is not differentiated."""
    kappa = lax.stop_gradient(pde.conductivity(u, x))
    return jnp.sqrt(jnp.maximum(kappa, jnp.finfo(kappa.dtype).tiny))


class Metric(NamedTuple):
    """M_p for u and M_d for φ, and the weight that a gradient has in them."""

    primal: Measured
    dual: Measured
    weight: Callable[[PDE, Scalar, Array], Array] = unweighted


def gradient(pde: PDE, u: Scalar, v: Scalar, x: Array) -> Array:
    """∇v."""
    del pde, u
    return grad(v)(x)


def energy(pde: PDE, u: Scalar, v: Scalar, x: Array) -> Array:
    """√κ ∇v."""
    return root_conductivity(pde, u, x) * grad(v)(x)


def identity(pde: PDE, u: Scalar, v: Scalar, x: Array) -> Array:
    """v itself."""
    del pde, u
    return v(x)[None]


def operator(pde: PDE, u: Scalar, v: Scalar, x: Array) -> Array:
    """The equation's residual at v, whose derivative by v's parameters is the linearised operator's."""
    del u
    return pde.residual(v, x)[None]


def reaction_diffusion(pde: PDE, u: Scalar, v: Scalar, x: Array) -> Array:
    """(√c v, √κ ∇v), c the slope of the reaction at the equilibrium u = 1 (the paper's Allen–Cahn with ε₀ = 0.1)."""
    c = pde.reaction_slope(lambda y: jnp.ones((), y.dtype), lambda y: jnp.ones((), y.dtype), x)
    return jnp.concatenate([jnp.sqrt(c) * v(x)[None], energy(pde, u, v, x)])


def reaction(pde: PDE, u: Scalar, v: Scalar, x: Array) -> Array:
    """reaction'(u) v: the linearised operator without its derivatives (the paper's Allen–Cahn with ε₀ = 0.01)."""
    one = lambda y: jnp.ones((), y.dtype)
    return lax.stop_gradient(pde.reaction_slope(u, one, x)) * v(x)[None]


METRICS: dict[str, Metric] = {
    "gradient": Metric(gradient, gradient),
    "energy": Metric(energy, energy, root_conductivity),
    "identity": Metric(identity, identity),
    "operator": Metric(operator, identity),
    "reaction-diffusion": Metric(reaction_diffusion, reaction_diffusion),
    "reaction": Metric(reaction, identity),
}

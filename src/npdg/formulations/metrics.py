"""The operators M_p and M_d of a splitting: what of u and of φ is measured inside the domain."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from npdg.calculus import Scalar, grad
from npdg.compilation import jit
from npdg.problem.pde import PDE

MetricName = Literal["gradient", "energy", "identity", "operator", "reaction-diffusion", "reaction"]
# What the conductivity ∂flux/∂∇u is at every point: a multiple of the identity, a diagonal matrix, or any matrix.
Structure = Literal["scalar", "diagonal", "full"]
# (the equation, the present u, the function measured, the point) ↦ M v(x)
Measured = Callable[[PDE, Scalar, Scalar, Array], Array]
WEIGHED: tuple[MetricName, ...] = ("energy", "reaction-diffusion")  # those in which a gradient has a weight
PROBES = 16  # points and random functions at which the structure of a conductivity is looked at


class Metric(NamedTuple):
    """M_p for u and M_d for φ, and the mean weight that a gradient has in them."""

    primal: Measured
    dual: Measured
    weight: Callable[[PDE, Scalar, Array], Array]


def metric(name: MetricName, structure: Structure = "scalar") -> Metric:
    """A metric by its name, for an equation whose conductivity has this structure."""
    weighed = lambda pde, u, v, x: _root(structure, pde, u, x, grad(v)(x))
    if name == "energy":
        return Metric(weighed, weighed, lambda pde, u, x: _mean_root(structure, pde, u, x))
    if name == "reaction-diffusion":
        both = lambda pde, u, v, x: jnp.concatenate([_stable_reaction(pde, v, x), weighed(pde, u, v, x)])
        return Metric(both, both, _one)
    if name == "operator":
        return Metric(_operator, _identity, _one)
    if name == "reaction":
        return Metric(_reaction, _identity, _one)
    measured = {"gradient": _gradient, "identity": _identity}[name]
    return Metric(measured, measured, _one)


def structure_of(pde: PDE) -> Structure:
    """What the equation's conductivity is at random points and functions."""
    with jax.enable_x64(True):
        points = jnp.asarray(pde.domain.sample_interior(jax.random.key(1), PROBES).x, jnp.float64)
        keys = jax.random.split(jax.random.key(0), PROBES)
        at = lambda key, x: pde.conductivity(random_wave(key, pde.dim), x)
        tensors = np.asarray(jit(jax.vmap(at))(keys, points))
    size = np.abs(tensors).max(axis=(1, 2), keepdims=True)
    diagonal = np.einsum("kii->ki", tensors)
    if np.any(np.abs(tensors - diagonal[:, :, None] * np.eye(pde.dim)) > 1e-9 * size):
        return "full"
    return "scalar" if np.all(np.abs(diagonal - diagonal[:, :1]) <= 1e-9 * size[:, 0]) else "diagonal"


def least_conductivity(pde: PDE, u: Scalar) -> Callable[[Array], Array]:
    """The size of the least eigenvalue of the conductivity at u, as a function of the point."""
    if structure_of(pde) == "scalar":
        return lambda x: jnp.abs(pde.first_conductivity(u, x))
    return lambda x: jnp.min(jnp.abs(jnp.linalg.eigvalsh(_symmetric(pde, u, x))))


def random_wave(key: Array, dim: int) -> Scalar:
    """A smooth function of no symmetry."""
    frequencies, phase = jax.random.normal(key, (dim,)) / dim**0.5, jax.random.normal(key)
    return lambda x: jnp.sin(jnp.vdot(frequencies, x) + phase)


def _root(structure: Structure, pde: PDE, u: Scalar, x: Array, slope: Array) -> Array:
    """√A slope, A being the conductivity at the present u, whose dependence on u is not differentiated."""
    if structure == "full":
        values, axes = jnp.linalg.eigh(_symmetric(pde, u, x))
        return axes @ (jnp.sqrt(_positive(values)) * (axes.T @ slope))
    return jnp.sqrt(_positive(_entries(structure, pde, u, x))) * slope


def _mean_root(structure: Structure, pde: PDE, u: Scalar, x: Array) -> Array:
    """√(tr A / d)."""
    if structure == "full":
        return jnp.sqrt(_positive(jnp.trace(_symmetric(pde, u, x)) / x.size))
    entries = _entries(structure, pde, u, x)
    return jnp.sqrt(_positive(entries if structure == "scalar" else jnp.mean(entries)))


def _entries(structure: Structure, pde: PDE, u: Scalar, x: Array) -> Array:
    """The diagonal of A, or its one number."""
    if structure == "scalar":
        return lax.stop_gradient(pde.first_conductivity(u, x))
    return lax.stop_gradient(jnp.diag(pde.conductivity(u, x)))


def _symmetric(pde: PDE, u: Scalar, x: Array) -> Array:
    tensor = lax.stop_gradient(pde.conductivity(u, x))
    return (tensor + tensor.T) / 2


def _positive(values: Array) -> Array:
    return jnp.maximum(values, jnp.finfo(values.dtype).tiny)


def _one(pde: PDE, u: Scalar, x: Array) -> Array:
    return jnp.ones((), x.dtype)


def _gradient(pde: PDE, u: Scalar, v: Scalar, x: Array) -> Array:
    return grad(v)(x)


def _identity(pde: PDE, u: Scalar, v: Scalar, x: Array) -> Array:
    return v(x)[None]


def _operator(pde: PDE, u: Scalar, v: Scalar, x: Array) -> Array:
    """The equation's residual at v, whose derivative by v's parameters is the linearised operator's."""
    return pde.residual(v, x)[None]


def _stable_reaction(pde: PDE, v: Scalar, x: Array) -> Array:
    """√c v, c the slope of the reaction at the equilibrium u = 1 (the paper's Allen–Cahn with ε₀ = 0.1)."""
    one = lambda y: jnp.ones((), y.dtype)
    return jnp.sqrt(pde.reaction_slope(one, one, x)) * v(x)[None]


def _reaction(pde: PDE, u: Scalar, v: Scalar, x: Array) -> Array:
    """reaction'(u) v: the linearised operator without its derivatives (the paper's Allen–Cahn with ε₀ = 0.01)."""
    one = lambda y: jnp.ones((), y.dtype)
    return lax.stop_gradient(pde.reaction_slope(u, one, x)) * v(x)[None]

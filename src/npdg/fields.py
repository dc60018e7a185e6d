"""Fields: functions of one point whose arrays are trained.

A field is an equinox module and a pytree of arrays only; what is constant is static or `Frozen`.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

from npdg.domains import Domain

Field = Any  # an equinox module called on one point


class Tanh(eqx.Module):
    """tanh."""

    def __call__(self, z: Array) -> Array:
        return jnp.tanh(z)


class Softplus(eqx.Module):
    """log(1 + exp(β z))/β."""

    beta: float = eqx.field(static=True, default=1.0)

    def __call__(self, z: Array) -> Array:
        return jax.nn.softplus(self.beta * z) / self.beta


class PReLU(eqx.Module):
    """max(z, 0) + slope·min(z, 0), with one learnable slope. Its second derivative is zero."""

    slope: Array = eqx.field(converter=jnp.asarray, default=0.25)

    def __call__(self, z: Array) -> Array:
        return jnp.where(z >= 0, z, self.slope * z)


class Sine(eqx.Module):
    """sin."""

    def __call__(self, z: Array) -> Array:
        return jnp.sin(z)


class Linear(eqx.Module):
    """x ↦ W x + b, started uniformly in ±1/√fan_in."""

    weight: Array
    bias: Array | None

    def __init__(self, n_in: int, n_out: int, *, bias: bool = True, key: Array):
        bound = n_in**-0.5
        weight_key, bias_key = jax.random.split(key)
        self.weight = jax.random.uniform(weight_key, (n_out, n_in), minval=-bound, maxval=bound)
        self.bias = jax.random.uniform(bias_key, (n_out,), minval=-bound, maxval=bound) if bias else None

    def __call__(self, x: Array) -> Array:
        y = self.weight @ x
        return y if self.bias is None else y + self.bias


class MLP(eqx.Module):
    """MLP_f(dim, width, 1, depth) of the paper's Appendix A: `depth` linear maps, a scalar result."""

    layers: tuple[Linear, ...]
    activation: Callable[[Array], Array]

    def __init__(
        self,
        dim: int,
        width: int,
        depth: int,
        *,
        activation: Callable[[Array], Array] | None = None,
        last_bias: bool = True,
        key: Array,
    ):
        sizes = [dim, *[width] * (depth - 1), 1]
        keys = jax.random.split(key, depth)
        self.layers = tuple(
            Linear(n_in, n_out, bias=last_bias or k < depth - 1, key=keys[k])
            for k, (n_in, n_out) in enumerate(zip(sizes[:-1], sizes[1:], strict=True))
        )
        self.activation = Tanh() if activation is None else activation

    def __call__(self, x: Array) -> Array:
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        return self.layers[-1](x)[0]


class CutOff(eqx.Module):
    """ζ·net: a field that vanishes on the boundary of a domain."""

    domain: Domain = eqx.field(static=True)
    net: Field

    def __call__(self, x: Array) -> Array:
        return self.domain.cutoff(x) * self.net(x)


class Centred(eqx.Module):
    """A network that sees its domain's bounding box as [−1, 1]^d."""

    domain: Domain = eqx.field(static=True)
    net: Field

    def __call__(self, x: Array) -> Array:
        lower, upper = (jnp.asarray(corner, x.dtype) for corner in self.domain.bounds())
        return self.net((2 * x - lower - upper) / (upper - lower))


class Extrapolated(eqx.Module):
    """new + ω (new − old), in function space."""

    new: Field
    old: Field
    omega: float = eqx.field(static=True)

    def __call__(self, x: Array) -> Array:
        new = self.new(x)
        return new + self.omega * (new - self.old(x))


class Frozen(eqx.Module):
    """A field that takes part in a computation but is not trained."""

    field: Field

    def __call__(self, x: Array) -> Array:
        return self.field(x)


class Tangent(eqx.Module):
    """ζ·(∂_θ u · v): a test function in the tangent space of a network u, with coefficients v.

    It is linear in v and vanishes on the boundary, and starts at v = 0.
    """

    domain: Domain = eqx.field(static=True)
    base: Frozen
    coefficients: Array

    @staticmethod
    def at(domain: Domain, u: Field) -> "Tangent":
        """The zero function of the tangent space at u."""
        return Tangent(domain, Frozen(u), jnp.zeros_like(split(u)[0]))

    def __call__(self, x: Array) -> Array:
        vector, build = split(self.base.field)
        slope = jax.jvp(lambda v: build(v)(x), (vector,), (self.coefficients,))[1]
        return self.domain.cutoff(x) * slope


def split(field: Field) -> tuple[Array, Callable[[Array], Field]]:
    """The trained numbers of a field as one vector, and the function that puts such a vector back."""
    is_frozen = lambda node: isinstance(node, Frozen)
    trained = jax.tree.map(lambda leaf: eqx.is_inexact_array(leaf), field, is_leaf=is_frozen)
    numbers, rest = eqx.partition(field, trained, is_leaf=is_frozen)
    vector, unravel = ravel_pytree(numbers)
    return vector, lambda v: eqx.combine(unravel(v), rest)


def parameter_count(field: Field) -> int:
    """How many numbers of a field are trained."""
    return split(field)[0].size

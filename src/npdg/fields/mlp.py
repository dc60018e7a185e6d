"""Multilayer perceptrons, their activations and starting values."""

from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float


class Tanh(eqx.Module):
    """tanh."""

    def __call__(self, z: Float[Array, " units"]) -> Float[Array, " units"]:
        return jnp.tanh(z)


class Softplus(eqx.Module):
    """log(1 + exp(β z))/β."""

    beta: float = eqx.field(static=True, default=1.0)

    def __call__(self, z: Float[Array, " units"]) -> Float[Array, " units"]:
        return jax.nn.softplus(self.beta * z) / self.beta


class PReLU(eqx.Module):
    """max(z, 0) + slope·min(z, 0), with one learnable slope. Its second derivative is zero."""

    slope: Array = eqx.field(converter=jnp.asarray, default=0.25)

    def __call__(self, z: Float[Array, " units"]) -> Float[Array, " units"]:
        return jnp.where(z >= 0, z, self.slope * z)


class Sine(eqx.Module):
    """sin."""

    def __call__(self, z: Float[Array, " units"]) -> Float[Array, " units"]:
        return jnp.sin(z)


def activation(name: str, beta: float = 1.0) -> Callable[[Array], Array]:
    """An activation by its name; `beta` is that of a softplus."""
    return {"tanh": Tanh(), "softplus": Softplus(beta), "prelu": PReLU(), "sine": Sine()}[name]


class Squares(eqx.Module):
    """z²/2 for the first half of the units, another activation for the rest.

    Products of inputs, and with a layer behind it functions of a quadratic form, are what layers of ridge functions
    are slowest to learn.
    """

    rest: Callable[[Array], Array]

    def __call__(self, z: Float[Array, " units"]) -> Float[Array, " units"]:
        half = z.shape[0] // 2
        return jnp.concatenate([z[:half] ** 2 / 2, self.rest(z[half:])])


class Linear(eqx.Module):
    """x ↦ W x + b, started uniformly in ±1/√fan_in."""

    weight: Array
    bias: Array | None

    def __init__(self, n_in: int, n_out: int, *, bias: bool = True, key: Array):
        bound = n_in**-0.5
        weight_key, bias_key = jax.random.split(key)
        self.weight = jax.random.uniform(weight_key, (n_out, n_in), minval=-bound, maxval=bound)
        self.bias = jax.random.uniform(bias_key, (n_out,), minval=-bound, maxval=bound) if bias else None

    @classmethod
    def ridges(cls, n_in: int, n_out: int, steepness: float, key: Array) -> "Linear":
        """Units that bend at places spread over [−1.1, 1.1]^n_in, from an eighth to all of `steepness` steep.

        The usual start puts every bend near the centre, and all units are alike: a basis for nothing in few dimensions.
        """
        start, direction_key, length_key, place_key = jax.random.split(key, 4)
        direction = jax.random.normal(direction_key, (n_out, n_in))
        length = steepness * 8.0 ** -jax.random.uniform(length_key, (n_out, 1))
        weight = length * direction / jnp.linalg.norm(direction, axis=1, keepdims=True)
        place = jax.random.uniform(place_key, (n_out, n_in), minval=-1.1, maxval=1.1)
        layer = cls(n_in, n_out, key=start)
        return eqx.tree_at(lambda one: (one.weight, one.bias), layer, (weight, -jnp.sum(weight * place, axis=1)))

    @classmethod
    def along_axes(cls, n_in: int, n_out: int, parts: int, key: Array) -> "Linear":
        """Units that see one coordinate each: in each of `parts` equal parts of the layer all coordinates, as often as
        they fit; what is left over starts as usual.

        Of many coordinates, units along random directions see only sums, in which each is lost.
        """
        start, length_key, bias_key = jax.random.split(key, 3)
        layer = cls(n_in, n_out, key=start)
        part = max(n_out // parts, 1)
        unit = jnp.arange(n_out) % part
        sees_one = (unit < part // n_in * n_in) & (jnp.arange(n_out) < parts * part)
        length = jax.random.uniform(length_key, (n_out, 1), minval=0.5, maxval=1.0)
        aligned = length * jax.nn.one_hot(unit % n_in, n_in, dtype=layer.weight.dtype)
        bias = jax.random.uniform(bias_key, (n_out,), minval=-1.5, maxval=1.5)
        assert layer.bias is not None
        return eqx.tree_at(
            lambda one: (one.weight, one.bias),
            layer,
            (jnp.where(sees_one[:, None], aligned, layer.weight), jnp.where(sees_one, bias, layer.bias)),
        )

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        y = self.weight @ x
        return y if self.bias is None else y + self.bias


@dataclass(frozen=True)
class FirstLayer:
    """What is particular to the first hidden layer of a network.

    Arguments:
        squares: half of its units are squares.
        steepness: where positive, it starts as `Linear.ridges` of this steepness.
        axes: it starts as `Linear.along_axes`, unless it has a steepness.
    """

    squares: bool = False
    steepness: float = 0.0
    axes: bool = False

    def started(self, usual: Linear, key: Array) -> Linear:
        """The layer as it starts; as usual if nothing is asked for."""
        n_out, n_in = usual.weight.shape
        if self.steepness > 0:
            return Linear.ridges(n_in, n_out, self.steepness, key)
        return Linear.along_axes(n_in, n_out, 2 if self.squares else 1, key) if self.axes else usual


class MLP(eqx.Module):
    """A multilayer perceptron with a scalar result.

    Arguments:
        dim, width, depth: inputs, units of a hidden layer, and how many linear maps there are.
        activation: that of the hidden layers; tanh if not given.
        first: what is particular to the first hidden layer.
        last_bias: whether the last linear map has a bias.
        out: how many numbers the result has, if it is not a scalar.
    """

    layers: tuple[Linear, ...]
    activation: Callable[[Array], Array]
    squares: bool = eqx.field(static=True)
    scalar: bool = eqx.field(static=True)

    def __init__(
        self,
        dim: int,
        width: int,
        depth: int,
        *,
        activation: Callable[[Array], Array] | None = None,
        first: FirstLayer = FirstLayer(),
        last_bias: bool = True,
        out: int | None = None,
        key: Array,
    ):
        sizes = [dim, *[width] * (depth - 1), 1 if out is None else out]
        keys = jax.random.split(key, depth)
        layers = [
            Linear(n_in, n_out, bias=last_bias or k < depth - 1, key=keys[k])
            for k, (n_in, n_out) in enumerate(zip(sizes[:-1], sizes[1:], strict=True))
        ]
        self.layers = tuple([first.started(layers[0], keys[0]), *layers[1:]] if depth > 1 else layers)
        self.activation = Tanh() if activation is None else activation
        self.squares, self.scalar = first.squares, out is None

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "..."]:
        for k, layer in enumerate(self.layers[:-1]):
            activation = Squares(self.activation) if self.squares and k == 0 else self.activation
            x = activation(layer(x))
        y = self.layers[-1](x)
        return y[0] if self.scalar else y

"""Fields of transport: a map T = affine + network, a potential φ = quadratic + network."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from npdg.fields import MLP, Field, Frozen

FAINT = 0.01  # of the usual start, for the last layer: T begins as the affine map


class Affine(eqx.Module):
    """x ↦ A x + b."""

    matrix: Array
    shift: Array

    def __call__(self, x: Array) -> Array:
        return self.matrix @ x + self.shift


class Quadratic(eqx.Module):
    """y ↦ ½ yᵀQy + q·y."""

    matrix: Array
    shift: Array

    def __call__(self, y: Array) -> Array:
        return jnp.vdot(y, self.matrix @ y) / 2 + jnp.vdot(self.shift, y)


class Sum(eqx.Module):
    """A function that is known to be close, plus a network."""

    base: Field
    net: Field

    def __call__(self, x: Array) -> Array:
        return self.base(x) + self.net(x)


def start_map(matrix: np.ndarray, shift: np.ndarray, *, key: Array, **shape: Any) -> Field:
    """A x + b + a network that is almost zero."""
    net = MLP(len(shift), out=len(shift), key=key, **shape)
    return Sum(Frozen(Affine(jnp.asarray(matrix), jnp.asarray(shift))), _faint(net))


def start_potential(matrix: np.ndarray, shift: np.ndarray, *, trained: bool, key: Array, **shape: Any) -> Field:
    """The potential whose optimal map is x ↦ A x + b, plus a network that is almost zero: ∇φ(y) = A⁻¹(y − b) − y.

    `trained`: the quadratic part is trained too. Where it starts far from the best one it is most of φ, and a network
    learns it slowly.
    """
    inverse = np.linalg.inv(matrix)
    quadratic = Quadratic(jnp.asarray(inverse - np.eye(len(shift))), jnp.asarray(-inverse @ shift))
    net = MLP(len(shift), last_bias=False, key=key, **shape)
    return Sum(quadratic if trained else Frozen(quadratic), _faint(net))


def _faint(net: MLP) -> MLP:
    return eqx.tree_at(lambda one: one.layers[-1].weight, net, FAINT * net.layers[-1].weight)

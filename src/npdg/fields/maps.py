"""Fields of transport: a map T = affine + network, a potential φ = quadratic + network."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from npdg.fields.base import Field, Frozen
from npdg.fields.mlp import MLP

LEAST_VARIANCE = 1e-6  # A variance below this part of the largest counts as none.
FAINT = 0.01  # Factor on the starting weights of the last layer, so that T begins as the affine map.


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


class Stretch(eqx.Module):
    """y ↦ ½ yᵀV(C∘P)Vᵀy + q·y, in which P and q are trained.

    With V and m the axes and variances of a covariance and C_ij = √(2/(m_i + m_j)), the gradients of P's entries are
    orthonormal under that covariance: natural steps are easy however stretched the measures are.
    """

    frame: Frozen
    entries: Array
    shift: Array

    @classmethod
    def zero(cls, covariance: np.ndarray) -> "Stretch":
        """The function 0."""
        variances, axes = np.linalg.eigh(covariance)
        floor = LEAST_VARIANCE * (
            variances[-1] if variances[-1] > 0 else 1.0
        )  # points that are all the same have no width
        weights = np.sqrt(2 / np.maximum(variances[:, None] + variances[None, :], floor))
        empty = jnp.zeros(covariance.shape)
        return cls(Frozen((jnp.asarray(axes), jnp.asarray(weights))), empty, empty[0])

    def __call__(self, y: Array) -> Array:
        axes, weights = self.frame.field
        z = axes.T @ y
        return jnp.vdot(z, (weights * self.entries) @ z) / 2 + jnp.vdot(self.shift, y)


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


def start_potential(
    matrix: np.ndarray, shift: np.ndarray, *, covariance: np.ndarray | None = None, key: Array, **shape: Any
) -> Field:
    """The potential whose optimal map is x ↦ A x + b, plus a network that is almost zero: ∇φ(y) = A⁻¹(y − b) − y.

    With a `covariance`, that of the points where φ is looked at, the quadratic part is trained too. Where it starts far
    from the best one it is most of φ, and a network learns it slowly.
    """
    inverse = np.linalg.inv(matrix)
    start = Frozen(Quadratic(jnp.asarray(inverse - np.eye(len(shift))), jnp.asarray(-inverse @ shift)))
    net = _faint(MLP(len(shift), last_bias=False, key=key, **shape))
    return Sum(start, net if covariance is None else Sum(Stretch.zero(covariance), net))


def _faint(net: MLP) -> MLP:
    return eqx.tree_at(lambda one: one.layers[-1].weight, net, FAINT * net.layers[-1].weight)

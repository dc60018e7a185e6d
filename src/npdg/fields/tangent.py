"""Functions in the tangent space of a network."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from npdg.fields.base import Field, Frozen, split
from npdg.geometry.domain import Domain


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

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "..."]:
        vector, build = split(self.base.field)
        slope = jax.jvp(lambda v: build(v)(x), (vector,), (self.coefficients,))[1]
        return self.domain.cutoff(x) * slope


class Linearised(eqx.Module):
    """base + Σ ∂_θ net_k · c_k: a field whose trained numbers, the coefficients c, enter linearly."""

    base: Frozen
    nets: tuple[Frozen, ...]
    coefficients: tuple[Array, ...]

    @classmethod
    def at(cls, base: Field, nets: Sequence[Field]) -> "Linearised":
        """The base field itself, with room for a correction in the tangent spaces of the nets."""
        return cls(Frozen(base), tuple(Frozen(net) for net in nets), tuple(jnp.zeros_like(split(n)[0]) for n in nets))

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "..."]:
        return self.base.field(x) + self.correction(x)

    def correction(self, x: Array) -> Array:
        """What is added to the base."""
        alike: dict[Any, list[tuple[Field, Array]]] = {}
        for net, c in zip(self.nets, self.coefficients, strict=True):
            shape = jax.tree.structure(net), tuple(leaf.shape for leaf in jax.tree.leaves(net))
            alike.setdefault(shape, []).append((net.field, c))
        return jnp.sum(jnp.stack([_slopes(group, x) for group in alike.values()]))


def _slopes(group: list[tuple[Field, Array]], x: Array) -> Array:
    """Σ ∂_θ net · c over networks of one shape, which are traced once."""

    def slope(net: Field, direction: Array) -> Array:
        vector, build = split(net)
        return jax.jvp(lambda v: build(v)(x), (vector,), (direction,))[1]

    if len(group) == 1:
        return slope(*group[0])
    nets, directions = jax.tree.map(lambda *leaves: jnp.stack(leaves), *group)
    return jnp.sum(jax.vmap(slope)(nets, directions))

"""Gram matrices G = E[JᵀJ] of a player's metric, applied without being formed.

The features are linearised once per step; a product is then one push forward and one pull back.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from npdg.fields import split
from npdg.saddle import Fields, Player, Samples

Operator = Callable[[Array], Array]


class Gram(NamedTuple):
    """The Gram matrix of one player at one point of the iteration, as an operator on flat vectors."""

    size: int
    push: Callable[[Array], list[Array]]
    pull: Callable[[list[Array]], Array]

    def product(self, v: Array) -> Array:
        """G v."""
        return self.pull(self.push(v))

    def dense(self) -> Array:
        """G as a matrix, for small networks: size × rows numbers are held at once."""
        identity = jnp.eye(self.size)
        jacobian = jnp.concatenate([jnp.reshape(block, (self.size, -1)) for block in jax.vmap(self.push)(identity)], 1)
        return jacobian @ jacobian.T


def gram(player: Player, fields: Fields, samples: Samples) -> Gram:
    """Linearise the features of a player's metric with respect to its own parameters."""
    vector, build = split(fields[player.name])

    def features(v: Array) -> list[Array]:
        moved = {**fields, player.name: build(v)}
        return [block.scaled(moved, samples) for block in player.metric]

    _, push = jax.linearize(features, vector)
    transpose = jax.linear_transpose(push, vector)
    return Gram(vector.size, push, lambda rows: transpose(rows)[0])

"""Gram matrices G = E[JᵀJ] of a player's metric, applied without being formed.

The features are linearised once per step; a product is then one push forward and one pull back.
"""

from collections.abc import Callable
from itertools import pairwise
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
    rows: Callable[[], Array]
    values: Callable[[], Array]

    def product(self, v: Array) -> Array:
        """G v."""
        return self.pull(self.push(v))

    def flat(self, v: Array) -> Array:
        """J v, all rows in one vector."""
        return jnp.concatenate([jnp.ravel(block) for block in self.push(v)])

    def dense(self) -> Array:
        """G as a matrix, for small networks."""
        return square(self.rows())


def square(rows: Array, blocks: int = 4) -> Array:
    """JᵀJ by blocks of columns, of which only those above the diagonal are multiplied."""
    size = rows.shape[1]
    if size < 64 * blocks:
        return rows.T @ rows
    edges = [size * k // blocks for k in range(blocks + 1)]
    parts = [rows[:, start:end] for start, end in pairwise(edges)]
    upper = {(i, j): parts[i].T @ parts[j] for i in range(blocks) for j in range(i, blocks)}
    return jnp.block([[upper[i, j] if i <= j else upper[j, i].T for j in range(blocks)] for i in range(blocks)])


def gram(player: Player, fields: Fields, samples: Samples) -> Gram:
    """Linearise the features of a player's metric with respect to its own parameters."""
    vector, build = split(fields[player.name])

    def features(v: Array) -> list[Array]:
        moved = {**fields, player.name: build(v)}
        return [block.scaled(moved, samples) for block in player.metric]

    def rows() -> Array:
        # Point by point: a sample's features depend on that sample alone, so each row costs one small sweep.
        moved = lambda v: {**fields, player.name: build(v)}
        return jnp.concatenate([block.jacobian(moved, vector, samples) for block in player.metric])

    _, push = jax.linearize(features, vector)
    transpose = jax.linear_transpose(push, vector)
    return Gram(
        size=vector.size,
        push=push,
        pull=lambda rows: transpose(rows)[0],
        rows=rows,
        values=lambda: jnp.concatenate([jnp.ravel(block) for block in features(vector)]),
    )

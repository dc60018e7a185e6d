"""A Gram matrix G = JᵀJ that is applied without being formed, and formed where that is cheaper."""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array


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

    def along(self, v: Array) -> Array:
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

"""The Gram matrix of a player's metric, linearised at the present fields.

The features are linearised once per step; a product is then one push forward and one pull back.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from npdg.fields.base import split
from npdg.linalg.gram import Gram
from npdg.saddle.saddle import Batch, Fields, Player


def gram(player: Player, fields: Fields, samples: Batch, *, products: bool = True) -> Gram:
    """Linearise the features of a player's metric with respect to its own parameters.

    Without `products` there are rows and values alone, which saves the time of tracing what is not used.
    """
    vector, build = split(fields[player.name])

    def features(v: Array) -> list[Array]:
        moved = {**fields, player.name: build(v)}
        return [block.scaled(moved, samples) for block in player.metric]

    def rows() -> Array:
        # Point by point: a sample's features depend on that sample alone, so each row costs one small sweep.
        moved = lambda v: {**fields, player.name: build(v)}
        return jnp.concatenate([block.jacobian(moved, vector, samples) for block in player.metric])

    values = lambda: jnp.concatenate([jnp.ravel(block) for block in features(vector)])
    if not products:
        return Gram(vector.size, _without_products, _without_products, rows, values)
    _, push = jax.linearize(features, vector)
    transpose = jax.linear_transpose(push, vector)
    return Gram(vector.size, push, lambda rows: transpose(rows)[0], rows, values)


def _without_products(vector: Any) -> Any:
    raise TypeError("this Gram matrix was asked for without its products")

"""What a field is: a pytree that is called on one point, and the numbers in it that are trained."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
from jax import Array
from jax.flatten_util import ravel_pytree
from jaxtyping import Float

Field = Any  # an equinox module called on one point


class Frozen(eqx.Module):
    """A field that takes part in a computation but is not trained."""

    field: Field

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "..."]:
        return self.field(x)


def split(field: Field) -> tuple[Float[Array, " parameters"], Callable[[Array], Field]]:
    """The trained numbers of a field as one vector, and the function that puts such a vector back."""
    numbers, rest = _trained(field)
    vector, unravel = ravel_pytree(numbers)
    return vector, lambda v: eqx.combine(unravel(v), rest)


def parameter_count(field: Field) -> int:
    """How many numbers of a field are trained."""
    return sum(leaf.size for leaf in jax.tree.leaves(_trained(field)[0]))


def _trained(field: Field) -> tuple[Field, Field]:
    is_frozen = lambda node: isinstance(node, Frozen)
    trained = jax.tree.map(lambda leaf: eqx.is_inexact_array(leaf), field, is_leaf=is_frozen)
    return eqx.partition(field, trained, is_leaf=is_frozen)

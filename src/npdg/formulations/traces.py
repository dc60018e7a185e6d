"""What of a function is compared on the boundary: features whose squared length integrates to a boundary norm."""

from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array

from npdg.calculus import Scalar, tangential_gradient
from npdg.measures.points import Points
from npdg.problem.conditions import Trace

BoundaryNorm = Literal["l2", "h1", "h1-sampled"]


def l2_trace(v: Scalar, point: Points) -> Array:
    """The boundary value: |trace|² integrates to the L²(∂Ω) norm."""
    return v(point.x)[None]


def h1_trace(v: Scalar, point: Points) -> Array:
    """The boundary value and the tangential gradient: |trace|² integrates to the H¹(∂Ω) norm."""
    assert point.normal is not None
    return jnp.concatenate([l2_trace(v, point), tangential_gradient(v)(point.x, point.normal)])


def sampled_h1_trace(v: Scalar, point: Points) -> Array:
    """The boundary value and one random tangential derivative, whose mean square is that of the H¹ trace."""
    assert point.tangent is not None
    return jnp.stack(jax.jvp(v, (point.x,), (point.tangent,)))


TRACES: dict[str, Trace] = {"l2": l2_trace, "h1": h1_trace, "h1-sampled": sampled_h1_trace}

"""Differential operators on one-point functions: each takes a function and returns a function.

A scalar field is `u: (d,) -> ()`, a vector field is `F: (d,) -> (d,)`. Nothing here knows about
batches: `jax.vmap` is applied once, where points are averaged.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

Point = Float[Array, " d"]  # one point, or a vector there
Number = Float[Array, ""]
Scalar = Callable[[Point], Number]
Vector = Callable[[Point], Point]


def grad(u: Scalar) -> Vector:
    """The gradient ∇u."""
    return jax.grad(u)


def directional(u: Callable[[Point], Array], x: Point, direction: Point) -> Float[Array, "..."]:
    """The derivative of `u` at `x` along `direction`, by one forward pass."""
    return jax.jvp(u, (x,), (direction,))[1]


def div(F: Vector) -> Scalar:
    """The divergence ∇·F by d forward derivatives; no Jacobian is kept."""

    def divergence(x: Point) -> Number:
        basis = jnp.eye(x.shape[0], dtype=x.dtype)
        return jnp.sum(jax.vmap(lambda e: jnp.vdot(e, directional(F, x, e)))(basis))

    return divergence


def laplacian(u: Scalar) -> Scalar:
    """The Laplacian Δu by d nested forward derivatives: O(d) forward passes, no Hessian.

    `vmap` leaves the value pass unbatched, so the cost is 2d + 1 passes, without a backward sweep.
    """

    def laplace(x: Point) -> Number:
        basis = jnp.eye(x.shape[0], dtype=x.dtype)
        return jnp.sum(jax.vmap(lambda e: directional(lambda y: directional(u, y, e), x, e))(basis))

    return laplace


def normal_derivative(u: Scalar) -> Callable[[Point, Point], Number]:
    """The derivative ∂u/∂n as a function of the point and the unit normal there."""
    return lambda x, normal: directional(u, x, normal)


def tangential_gradient(u: Scalar) -> Callable[[Point, Point], Point]:
    """The part of ∇u along the boundary, ∇u − (∇u·n) n, as a vector of R^d."""

    def tangential(x: Point, normal: Point) -> Point:
        slope = grad(u)(x)
        return slope - jnp.vdot(slope, normal) * normal

    return tangential

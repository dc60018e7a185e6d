"""How far a field is from the exact solution, in the paper's relative norms."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array, lax

from npdg.calculus import grad
from npdg.fields import Field
from npdg.pde import PDE

BATCH = 4096  # points evaluated at once, so that memory does not grow with their number


@dataclass(frozen=True)
class Errors:
    """‖u − u*‖/‖u*‖ in L²(Ω), and ‖∇u − ∇u*‖/‖∇u*‖."""

    rel_l2: float
    rel_h1: float


def error_meter(pde: PDE, n: int, seed: int = 0) -> Callable[[Field], Errors]:
    """A function that measures a field on n fixed points of the interior."""
    exact = pde.exact
    assert exact is not None
    points = pde.domain.sample_interior(jax.random.key(seed), n).x

    def squares(u: Field, x: Array) -> Array:
        value, true_value = u(x), exact(x)
        slope, true_slope = grad(u)(x), grad(exact)(x)
        return jnp.stack(
            [
                (value - true_value) ** 2,
                true_value**2,
                jnp.sum((slope - true_slope) ** 2),
                jnp.sum(true_slope**2),
            ]
        )

    @jax.jit
    def means(u: Field) -> Array:
        return jnp.mean(lax.map(lambda x: squares(u, x), points, batch_size=min(BATCH, n)), axis=0)

    def measure(u: Field) -> Errors:
        l2, norm, h1, seminorm = (float(m) for m in means(u))
        return Errors(_ratio(l2, norm), _ratio(h1, seminorm))

    return measure


def _ratio(error: float, norm: float) -> float:
    # Relative to a solution that is zero, the error itself is the only sensible figure.
    return (error / norm if norm > 0 else error) ** 0.5

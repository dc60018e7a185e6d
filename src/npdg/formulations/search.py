"""The minimiser of ½|x − y|² + φ(y), looked for by Newton's method from where a map T sends x, and points near x."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array, lax

from npdg.calculus import Scalar, grad
from npdg.linalg.cg import truncated_cg

LONGEST_STEP = 1.0  # The longest step of the refinement.
CAUTIOUS_STEP = 0.4  # The part of the residual that is stepped where the curvature is not positive.
INNER_ITERATIONS = 2  # Iterations of conjugate gradients in a Newton step.
LEAST_CURVATURE = 1e-3  # The least curvature that counts as positive.
PHASE_FACTOR = 997.0  # A factor by which the phases of neighbouring points become unrelated.


@dataclass(frozen=True)
class Search:
    """`rounds` Newton steps, from the best of T(x) and of T at `probes` points about `width` away along each axis.

    Between modes the function has several wells. Newton's method stays in that of its start: without probes T would
    keep any wrong border between the modes, and φ the heights that go with it.
    """

    rounds: int
    probes: int
    width: tuple[float, ...]

    def __call__(self, T: Callable[[Array], Array], phi: Scalar, x: Array) -> Array:
        if self.probes == 0:
            return refined(phi, x, T(x), self.rounds)
        # One step from each start tells the lowest well, in which the others go on.
        offsets = jnp.stack([jnp.zeros_like(x), *(self._aside(x, number) for number in range(self.probes))])
        ends = jax.vmap(lambda offset: refined(phi, x, T(x + offset), 1))(offsets)
        heights = jax.vmap(lambda y: half_square(x - y) + phi(y))(ends)
        return refined(phi, x, ends[jnp.argmin(heights)], self.rounds - 1)

    def _aside(self, x: Array, number: int) -> Array:
        """As good as random, but the same for the same x."""
        width = jnp.asarray(self.width, x.dtype)
        scaled = x / jnp.where(width > 0, width, 1.0)
        return width * 2**0.5 * jnp.sin(PHASE_FACTOR * (jnp.roll(scaled, number + 1) + scaled / 2) + number)


def refined(phi: Scalar, x: Array, y: Array, rounds: int) -> Array:
    """Some truncated Newton steps from y down ½|x − y|² + φ(y), into the well in which y lies."""
    height = lambda z: half_square(x - z) + phi(z)

    def newton(_: int, y: Array) -> Array:
        slope, curve = jax.linearize(grad(phi), y)
        residual = x - y - slope
        step = _step(lambda v: v + curve(v), residual)
        step = step * jnp.minimum(1.0, LONGEST_STEP / jnp.maximum(jnp.linalg.norm(step), 1e-12))
        return jnp.where(height(y + step) < height(y), y + step, y + step / 4)

    return lax.fori_loop(0, rounds, newton, y)


def _step(product: Callable[[Array], Array], residual: Array) -> Array:
    """A truncated Newton step; a part of the residual where already its own curvature is not positive."""
    step = truncated_cg(product, residual, INNER_ITERATIONS, LEAST_CURVATURE)
    return jnp.where(jnp.any(step != 0), step, CAUTIOUS_STEP * residual)


def half_square(v: Array) -> Array:
    """½|v|²."""
    return jnp.vdot(v, v) / 2

"""How far a field is from the exact solution, in the paper's relative norms."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from npdg.calculus import grad
from npdg.compilation import jit, once_for_each
from npdg.fields.base import Field
from npdg.problem.evolution import Evolution
from npdg.problem.pde import PDE

MARCH_POINTS = 10_000  # Points at which a march is compared with an exact solution.
ENERGY_POINTS = 2**14  # Points by which the energy is integrated.
BATCH = 4096  # Points evaluated at once, so that memory does not grow with their number.
BLOCK = 2 * BATCH  # Points of one call: a multiple, so that no second program is made for those left over.


@dataclass(frozen=True)
class Errors:
    """‖u − u*‖/‖u*‖ in L²(Ω), and ‖∇u − ∇u*‖/‖∇u*‖."""

    rel_l2: float
    rel_h1: float


def error_meter(pde: PDE, n: int, seed: int = 0) -> Callable[[Field], Errors]:
    """A function that measures a field on at least n fixed points of the interior."""
    means = _mean_squares(pde)

    def measure(u: Field) -> Errors:
        blocks = [np.asarray(means(u, jax.random.key(seed), k)) for k in range(math.ceil(n / BLOCK))]
        l2, norm, h1, seminorm = (float(mean) for mean in np.mean(blocks, axis=0))
        return Errors(_ratio(l2, norm), _ratio(h1, seminorm))

    return measure


@once_for_each
def _mean_squares(pde: PDE) -> Callable[[Field, Array, int], Array]:
    """A program for the mean squares of errors and of the solution, on the block of some number of points."""
    exact = pde.exact
    assert exact is not None

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

    @jit
    def means(u: Field, key: Array, block: Array | int) -> Array:
        points = pde.domain.sample_interior(jax.random.fold_in(key, block), BLOCK).x
        return jnp.mean(lax.map(lambda x: squares(u, x), points, batch_size=BATCH), axis=0)

    return means


def _ratio(error: float, norm: float) -> float:
    # Relative to a solution that is zero, the error itself is the only sensible figure.
    return (error / norm if norm > 0 else error) ** 0.5


class MarchMeasure:
    """What is measured of a march: the error against the truth at the time of some number, and the energy."""

    def __init__(self, evolution: Evolution):
        self.evolution = evolution
        self.reference = None if evolution.reference is None else evolution.reference()
        domain, reference, density = evolution.domain, self.reference, evolution.energy
        drawn = domain.sample_interior(jax.random.key(1), MARCH_POINTS).x if reference is None else reference.points
        self.points = jnp.asarray(drawn)
        self._values = jit(lambda u: jax.vmap(u)(self.points))
        self._known: dict[int, np.ndarray | None] = {}
        self._energy = None
        if density is not None:
            nodes = jnp.asarray(domain.spread(ENERGY_POINTS))
            self._energy = jit(lambda u: jnp.mean(jax.vmap(lambda x: density(u, x))(nodes)) * domain.volume)

    def rmse(self, number: int, u: Field) -> float | None:
        """The root mean square error of u at the time of some number, if a truth is known."""
        if number not in self._known:
            self._known[number] = self._truth(number)
        known = self._known[number]
        return None if known is None else float(np.sqrt(np.mean((np.asarray(self._values(u)) - known) ** 2)))

    def energy(self, u: Field) -> float | None:
        """The integral of the energy of u, if the evolution has one."""
        return None if self._energy is None else float(self._energy(u))

    def _truth(self, number: int) -> np.ndarray | None:
        if self.reference is not None:
            return self.reference.values[number]
        evolution = self.evolution
        exact = evolution.start if number == 0 else evolution.at(jnp.asarray(evolution.times[number])).exact
        return None if exact is None else np.asarray(jax.vmap(exact)(self.points))

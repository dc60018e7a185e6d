"""A trained map at arrays of points: T, its potential and its inverse, in the coordinates of the problem."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from npdg.errors import InputError
from npdg.formulations.search import Search
from npdg.precision import precision
from npdg.problem.units import Units
from npdg.saddle.saddle import Fields

BLOCK = 2048  # points at a time, so that one program serves any number of them


class TrainedMap:
    """The fields T and φ, which know points only in units of their own."""

    def __init__(self, fields: Fields, units: Units, search: Search | None, precision: str):
        self.fields, self.units, self.search, self.precision = fields, units, search, precision
        self.dim = len(units.source)

    def map(self, x: Any) -> np.ndarray:
        """T at the points `x (n, d)`, or at one point `(d,)`."""
        units = self.units
        return units.target + units.scale * self._evaluate(_maps, x, units.source)

    def potential(self, y: Any) -> np.ndarray:
        """φ at the points `y (n, d)`, or at one point `(d,)`."""
        units = self.units
        values = self._evaluate(_potentials, y, units.target)
        return units.scale**2 * values + np.asarray(y, float) @ (units.source - units.target)

    def inverse(self, y: Any) -> np.ndarray:
        """The inverse map y + ∇φ(y)."""
        units = self.units
        return units.source + units.scale * self._evaluate(_inverses, y, units.target)

    def _evaluate(self, function: Callable[..., Array], x: Any, origin: np.ndarray) -> np.ndarray:
        points = np.asarray(x, dtype=float)
        if points.ndim not in (1, 2) or points.shape[-1] != self.dim:
            raise InputError(f"x: shape {points.shape} is not allowed; give points of shape (n, {self.dim}).")
        rows = (np.atleast_2d(points) - origin) / self.units.scale
        padded = np.pad(rows, ((0, -len(rows) % BLOCK), (0, 0)), mode="edge") if len(rows) else rows
        with precision(self.precision):
            blocks = [
                np.asarray(function(self.fields, jnp.asarray(padded[start : start + BLOCK]), self.search), float)
                for start in range(0, max(len(rows), 1), BLOCK)
            ]
        values = np.concatenate(blocks)[: len(rows)]
        return values[0] if points.ndim == 1 else values


# Compiled once for all maps of the same networks.
@partial(jax.jit, static_argnums=2)
def _maps(fields: Fields, x: Array, search: Search | None) -> Array:
    T, phi = fields["T"], fields["phi"]
    return jax.vmap(T if search is None else lambda p: search(T, phi, p))(x)


@partial(jax.jit, static_argnums=2)
def _potentials(fields: Fields, y: Array, search: Search | None) -> Array:
    return jax.vmap(fields["phi"])(y)


@partial(jax.jit, static_argnums=2)
def _inverses(fields: Fields, y: Array, search: Search | None) -> Array:
    return jax.vmap(lambda p: p + jax.grad(fields["phi"])(p))(y)

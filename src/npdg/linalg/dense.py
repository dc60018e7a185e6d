"""Cholesky factorisation."""

import jax
import jax.numpy as jnp
from jax import Array

from npdg.linalg.result import Operator, Solve, Solver, checked


def dense(matrix: Array) -> Solver:
    """Cholesky factorisation of a given matrix plus shift, for small systems; one factorisation per shift."""

    def solve(operator: Operator, b: Array, x0: Array | None = None, shift: float | Array = 0.0) -> Solve:
        del operator, x0
        shifted = matrix + shift * jnp.eye(b.size, dtype=b.dtype)
        x = jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(shifted, lower=True), b)
        return checked(lambda v: shifted @ v, b, x, jnp.ones((), int), True, False, None)

    return solve

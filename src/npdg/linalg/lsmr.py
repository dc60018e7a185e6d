"""LSMR on the rows of a Jacobian."""

import jax
import jax.numpy as jnp
import lineax
from jax import Array

from npdg.linalg.result import Operator, RowSolver, Solve, checked


def lsmr(rtol: float = 1e-2, maxiter: int = 60) -> RowSolver:
    """LSMR of (JᵀJ + shift) v = Jᵀb + √shift c as least squares; the residual is that of these normal equations."""

    def solve(jacobian: Operator, b: Array, c: Array, shift: float | Array) -> Solve:
        vector = jax.ShapeDtypeStruct(c.shape, c.dtype)
        root = jnp.sqrt(jnp.asarray(shift, c.dtype))
        operator = lineax.FunctionLinearOperator(lambda v: (jacobian(v), root * v), vector)
        solver = lineax.LSMR(rtol=rtol, atol=0.0, max_steps=maxiter, conlim=jnp.inf)
        found = lineax.linear_solve(operator, (b, c), solver, throw=False)
        pull = jax.linear_transpose(jacobian, vector)
        normal = lambda v: pull(jacobian(v))[0] + shift * v
        count = found.stats["num_steps"]
        return checked(normal, pull(b)[0] + root * c, found.value, count, count < maxiter, count >= maxiter, None)

    return solve

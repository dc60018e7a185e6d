"""Directions: the ways from a gradient and a Gram matrix to a natural direction."""

import jax
import jax.numpy as jnp
from jax import Array

from npdg.linalg.dense import dense
from npdg.linalg.gram import Gram, square
from npdg.linalg.result import RowSolver, Solve, Solver, Status
from npdg.rules.base import Direction, Prepared, View


def steepest(view: View) -> Prepared:
    """The gradient itself."""
    zero = jnp.zeros((), int)
    solve = Solve(view.gradient, zero, jnp.zeros_like(view.gradient[0]), zero + Status.CONVERGED)
    return Prepared(
        solve=lambda b, shift: solve._replace(x=b),
        descent=lambda shift, prior: solve,
        gradient=lambda: view.gradient,
        scale=lambda: jnp.ones_like(view.gradient[0]),
    )


def by_products(solver: Solver) -> Direction:
    """A Krylov solver, which needs nothing but products."""

    def prepare(view: View) -> Prepared:
        gram = view.gram()
        solve = lambda b, shift: solver(gram.product, b, shift=shift)
        return Prepared(
            solve,
            descent=lambda shift, prior: _from(prior, solve(view.gradient - gram.product(prior), shift)),
            gradient=lambda: view.gradient,
            scale=lambda: _rayleigh(gram, view.gradient),
        )

    return prepare


def by_rows(solver: RowSolver) -> Direction:
    """A least-squares solver on the Jacobian itself, whose condition is the root of the Gram matrix's.

    A right-hand side that is not Jᵀ of something stands in the rows of the shift, which must not be zero then.
    """

    def prepare(view: View) -> Prepared:
        gram = view.gram()
        rows = jax.eval_shape(gram.along, view.gradient)
        none = jnp.zeros(rows.shape, rows.dtype)

        def descent(shift: Array | float, prior: Array) -> Solve:
            left = -view.sense * gram.values() - gram.along(prior)
            return _from(prior, solver(gram.along, left, jnp.zeros_like(prior), shift))

        return Prepared(
            solve=lambda g, shift: solver(gram.along, none, g / jnp.sqrt(shift), shift),
            descent=descent,
            gradient=lambda: view.gradient,
            scale=lambda: _rayleigh(gram, view.gradient),
        )

    return prepare


def by_factors() -> Direction:
    """Form the matrix once and factorise it for every shift: exact, for small networks.

    The matrix is JᵀJ, or JJᵀ where there are fewer samples than parameters (the identity of Woodbury).
    """

    def prepare(view: View) -> Prepared:
        gram = view.gram(products=False)
        rows = gram.rows()
        few = rows.shape[0] < gram.size
        matrix = square(rows.T if few else rows)
        solver = dense(matrix)
        scale = lambda: jnp.trace(matrix) / gram.size
        left = lambda prior: -view.sense * gram.values() - rows @ prior
        gradient = lambda: -view.sense * (rows.T @ gram.values())
        if not few:
            solve = lambda b, shift: solver(gram.product, b, shift=shift)
            return Prepared(
                solve,
                descent=lambda shift, prior: _from(prior, solve(rows.T @ left(prior), shift)),
                gradient=gradient,
                scale=scale,
            )

        def solve_by_samples(b: Array, shift: Array | float) -> Solve:
            inner = solver(gram.product, rows @ b, shift=shift)
            return inner._replace(x=(b - rows.T @ inner.x) / shift)

        def descent(shift: Array | float, prior: Array) -> Solve:
            inner = solver(gram.product, left(prior), shift=shift)
            return _from(prior, inner._replace(x=rows.T @ inner.x))

        return Prepared(solve_by_samples, descent, gradient, scale)

    return prepare


def _from(prior: Array, rest: Solve) -> Solve:
    return rest._replace(x=prior + rest.x)


def _rayleigh(gram: Gram, v: Array) -> Array:
    return jnp.vdot(v, gram.product(v)) / jnp.vdot(v, v)

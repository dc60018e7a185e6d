"""What a rule sees in a step, and the ways from there to a natural direction."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from npdg.fields import Field
from npdg.gram import Gram, square
from npdg.krylov import RowSolver, Solve, Solver, dense


class View(NamedTuple):
    """What a rule sees: the field, the gradient of L by its parameters, its sense and its Gram matrix.

    `value` is L at another field of this player on the same samples. For a descending player, `supremum` is L at its
    present field and at the duals that have just moved: how far from the solution it is. What is a function costs
    nothing unless it is called.
    """

    field: Field
    gradient: Array
    sense: int
    value: Callable[[Field], Array]
    gram: Callable[[], Gram]
    supremum: Callable[[], Array] | None = None


class Prepared(NamedTuple):
    """A solver made ready for one Gram matrix.

    `solve(g, shift)` solves (G + shift) v = g. For a player whose L is ½|features|², `gradient` is that of L,
    `descent(shift, prior)` finds the v of least |features − J v|² + shift |v − prior|² by whatever way is best, and
    `scale` is the size of a typical eigenvalue. What is not called costs nothing.
    """

    solve: Callable[[Array, Array | float], Solve]
    descent: Callable[[Array | float, Array], Solve]
    gradient: Callable[[], Array]
    scale: Callable[[], Array]


Prepare = Callable[[View], Prepared]


def by_products(solver: Solver) -> Prepare:
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


def by_rows(solver: RowSolver) -> Prepare:
    """A least-squares solver on the Jacobian itself, whose condition is the root of the Gram matrix's.

    A right-hand side that is not Jᵀ of something stands in the rows of the shift, which must not be zero then.
    """

    def prepare(view: View) -> Prepared:
        gram = view.gram()
        rows = jax.eval_shape(gram.flat, view.gradient)
        none = jnp.zeros(rows.shape, rows.dtype)

        def descent(shift: Array | float, prior: Array) -> Solve:
            left = -view.sense * gram.values() - gram.flat(prior)
            return _from(prior, solver(gram.flat, left, jnp.zeros_like(prior), shift))

        return Prepared(
            solve=lambda g, shift: solver(gram.flat, none, g / jnp.sqrt(shift), shift),
            descent=descent,
            gradient=lambda: view.gradient,
            scale=lambda: _rayleigh(gram, view.gradient),
        )

    return prepare


def by_factors() -> Prepare:
    """Form the matrix once and factorise it for every shift: exact, for small networks.

    The matrix is JᵀJ, or JJᵀ where there are fewer samples than parameters (the identity of Woodbury).
    """

    def prepare(view: View) -> Prepared:
        gram = view.gram()
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

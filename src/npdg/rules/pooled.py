"""Rules that pool the samples of all steps: linear least squares, for what a network's tangent space holds.

They are for players whose L is ½|features|² with features linear in the parameters. Only one batch has to fit into the
memory: of the others, what is kept is as large as a Gram matrix. Nothing is solved until there are as many rows as
parameters.

The functions of a tangent space are all but dependent: half of the Gram matrix's eigenvalues are rounding errors. A
triangular factor of the rows holds their square roots, and with them what normal equations cannot tell apart.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.scipy.linalg import solve_triangular

from npdg.fields.base import Field, split
from npdg.linalg.dense import dense
from npdg.linalg.gram import square
from npdg.linalg.result import Solve, Status
from npdg.rules.base import TINY, Move, Rule, View, moved, report

TRIANGULAR = 5000  # parameters up to which a triangular factor is kept, which takes twice the time of a Gram matrix


class Pool(NamedTuple):
    """What is kept of all rows so far: a matrix made of them, the right-hand side, and how many they were."""

    matrix: Array
    right: Array
    rows: Array


Gather = Callable[[Pool, Array, Array], Pool]  # and rows J with their right-hand side b: |J v − b|² is to be least


Answer = Callable[[Pool, Array], Solve]  # as an update of the present parameters


def pooled(size: int) -> Rule:
    """The rule for so many parameters."""
    return triangular() if size <= TRIANGULAR else normal_equations()


def triangular(*, damping: float = 1e-26, forget: bool = False) -> Rule:
    """A triangular factor of all rows, by Householder's reflections; the damping is relative to the scale of the first
    batch's JᵀJ. A rule that forgets is of the rows of one step alone, and its damping that of each column."""

    def gather(pool: Pool, rows: Array, right: Array) -> Pool:
        size = pool.right.size
        pool = Pool(0 * pool.matrix, 0 * pool.right, 0 * pool.rows) if forget else pool
        squares = jnp.sum(rows**2, axis=0)
        length = jnp.sqrt(damping * (squares if forget else jnp.full_like(squares, jnp.mean(squares))))
        above = jnp.where(pool.rows > 0, pool.matrix, jnp.diag(length))
        whole = jnp.concatenate([jnp.column_stack([above, pool.right]), jnp.column_stack([rows, right])])
        factor = jnp.linalg.qr(whole, mode="r")
        return Pool(factor[:size, :size], factor[:size, size], pool.rows + rows.shape[0])

    def answer(pool: Pool, present: Array) -> Solve:
        best = solve_triangular(pool.matrix, pool.right)
        left = lambda v: jnp.linalg.norm(pool.matrix.T @ (pool.right - pool.matrix @ v))
        residual = left(best) / jnp.maximum(left(jnp.zeros_like(best)), TINY)
        return Solve(best - present, jnp.ones((), int), residual, jnp.zeros((), int) + Status.CONVERGED)

    return _rule(gather, answer)


def normal_equations(*, damping: float = 1e-12) -> Rule:
    """The Gram matrix of all rows, which large networks can afford; the damping is relative to its scale."""

    def gather(pool: Pool, rows: Array, right: Array) -> Pool:
        return Pool(pool.matrix + square(rows), pool.right + rows.T @ right, pool.rows + rows.shape[0])

    def answer(pool: Pool, present: Array) -> Solve:
        shift = damping * jnp.trace(pool.matrix) / present.size
        product = lambda v: pool.matrix @ v
        return dense(pool.matrix)(product, pool.right - product(present), shift=shift)

    return _rule(gather, answer)


def _rule(gather: Gather, answer: Answer) -> Rule:
    def init(field: Field) -> Pool:
        vector = split(field)[0]
        nothing = jnp.zeros_like(vector)
        return Pool(jnp.zeros((vector.size, vector.size), vector.dtype), nothing, jnp.zeros((), vector.dtype))

    def step(view: View, pool: Pool) -> tuple[Field, Pool, Move]:
        vector, gram = split(view.field)[0], view.gram(products=False)
        rows = gram.rows()
        pool = gather(pool, rows, rows @ vector - gram.values())  # as seen from parameters that are zero

        def not_yet() -> Solve:
            shapes = jax.eval_shape(answer, pool, vector)
            return Solve(*(jnp.zeros(leaf.shape, leaf.dtype) for leaf in shapes))

        solve = lax.cond(pool.rows >= vector.size, lambda: answer(pool, vector), not_yet)
        update = view.sense * solve.x
        return moved(view, update), pool, report(solve.x, update, solve)

    return Rule(init, step, sees_gradient=False)

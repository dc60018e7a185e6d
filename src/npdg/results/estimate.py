"""An error estimate that needs no exact solution.

The error e of u solves the linearised equation with u's residual on the right and its mismatch on the boundary. It is
sought in a space richer than training used, on fresh points; twice, independently, so that sampling noise, which is
not the same in both, does not count: |∇e|² is estimated by the mean of ∇e₁·∇e₂. What of the mismatch on the boundary
that space cannot explain is an error too, and its tangential gradient, seen on other fresh points, is counted with it.

Small networks: least squares in the strong residual, exactly, in the tangent space of u and another one beside it.
Large ones: the saddle of the gradient metric, φ and u in the tangent space of u enriched by waves, by conjugate
gradients.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax

from npdg.calculus import grad, tangential_gradient
from npdg.compilation import jit, once_for_each
from npdg.fields.base import Field, parameter_count, split
from npdg.fields.mlp import MLP, Sine
from npdg.fields.tangent import Linearised
from npdg.fields.wrappers import Centred
from npdg.formulations.metrics import Structure, structure_of
from npdg.formulations.tangent import tangent
from npdg.linalg.cg import cg
from npdg.measures.points import Points
from npdg.problem.pde import PDE
from npdg.results.error import BATCH
from npdg.rules.directions import by_products
from npdg.rules.natural import natural
from npdg.training.step import Recipe, State, step
from npdg.training.tangent_space import as_float64, correction, next_space

WAVE_UNITS = 32  # Units of the network of waves by which the space is enriched.
DENSE_UP_TO = 3000  # Parameters of u up to which the least squares in the larger space are solved directly.
TAIL = 1e-3  # The part of the values at either end that counts no more than the next to them.
SPACE_POINTS = 1.2  # Interior points per coefficient of that space.
POINTS = 2 * BATCH  # Points on which corrections are compared, inside and on the boundary.


def affordable(u: Field) -> bool:
    """Whether the estimate is by dense least squares, in float64."""
    return parameter_count(_network(u)) <= DENSE_UP_TO


def error_estimate(pde: PDE, u: Field, seed: int = 0) -> float:
    """‖∇(u − u*)‖/‖∇u*‖ as far as it can be seen without u*."""
    keys = jax.random.split(jax.random.key(seed), 5)
    enriched = _enriched(pde, u, keys[0])
    solve, means = _programs(pde)
    first, second = (solve(enriched, key) for key in keys[1:3])
    explained, norm, left, found = (float(m) for m in means(first, second, *keys[3:]))
    # A boundary point shows d − 1 of the d components of a gradient. Errors that fade away from the boundary count
    # for as much less as those that were found do.
    whole = pde.dim / max(pde.dim - 1, 1)
    fading = min(max(explained, 0.0) / found, whole) if found > 0 else whole
    error = max(explained, 0.0) + max(left, 0.0) * fading
    relative = (error / (norm if norm > 0 else 1.0)) ** 0.5
    return max(relative, float(jnp.finfo(first.coefficients[0].dtype).eps))  # rounding errors have no equation


def _enriched(pde: PDE, u: Field, key: Array) -> Linearised:
    """u with room for what its space does not hold; in float64 if that is solved for directly."""
    u = as_float64(u) if affordable(u) else u
    return Linearised.at(u, _richer(pde, u, key))


@once_for_each
def _programs(pde: PDE) -> tuple[Callable[..., Linearised], Callable[..., Array]]:
    """The program of a correction on points of some key, and that of the means of two such corrections."""

    def solved(u: Linearised, key: Array, structure: Structure | None) -> Linearised:
        dense = structure is None
        recipe = correction(pde, u, per_coefficient=SPACE_POINTS) if dense else _krylov(pde, u, structure)
        state = State({"u": u}, {"u": recipe.rules["u"].init(u)}, key, jnp.zeros((), int), {"start": u})
        return step(recipe, state)[0].fields["u"]

    program = jit(solved, static_argnums=2)
    # What the metric has to know is a program of its own, which is run before the other is traced.
    solve = lambda u, key: program(u, key, None if affordable(u.base.field) else structure_of(pde))
    return solve, jit(lambda first, second, inner, outer: _means(pde, first, second, (inner, outer)))


def _means(pde: PDE, first: Linearised, second: Linearised, keys: tuple[Array, Array]) -> Array:
    """Mean squares over fresh points: of the error that two corrections agree on and of the solution's gradient, then
    on the boundary of what they leave and of what they have in common."""
    u = first.base.field
    both = jax.tree.map(lambda *leaves: jnp.stack(leaves), first.coefficients, second.coefficients)
    with_coefficients = lambda c: eqx.tree_at(lambda u: u.coefficients, first, c)

    def corrections(x: Array) -> Array:  # the gradients of both, of which the network is traced once
        return jax.vmap(lambda c: grad(with_coefficients(c).correction)(x))(both)

    def inside(x: Array) -> Array:
        one, two = corrections(x)
        whole = grad(u)(x) + one
        return jnp.stack([jnp.vdot(one, two), jnp.vdot(whole, whole)])

    def outside(y: Points) -> Array:
        normal = y.normal
        assert normal is not None
        if not pde.boundary.essential:  # whose trace is all of a gradient but one component
            return jnp.zeros((2,), y.x.dtype)
        one, two = jax.vmap(lambda slope: slope - jnp.vdot(slope, normal) * normal)(corrections(y.x))
        left = tangential_gradient(lambda z: u(z) - pde.boundary.data(z))(y.x, normal)
        return jnp.stack([jnp.vdot(left + one, left + two), jnp.vdot(one, two)])

    inner, outer = keys
    x, y = pde.domain.sample_interior(inner, POINTS).x, pde.domain.sample_boundary(outer, POINTS)
    return jnp.concatenate([_mean(lax.map(f, p, batch_size=BATCH)) for f, p in ((inside, x), (outside, y))])


def _mean(values: Array) -> Array:
    """The mean by columns, of which no few values may be the most: near corners that no sample has seen, e₁ and e₂ may
    both be large and wrong."""
    low, high = (jnp.quantile(values, at, axis=0, keepdims=True) for at in (TAIL, 1 - TAIL))
    return jnp.mean(jnp.clip(values, low, high), axis=0)


def _network(u: Field) -> Field:
    return u.nets[0].field if isinstance(u, Linearised) else u


def _richer(pde: PDE, u: Field, key: Array) -> tuple[Field, ...]:
    """The network whose tangent space u used, and others for what that space does not hold."""
    waves = jit(lambda key: _waves(pde, key, split(_network(u))[0].dtype))(key)
    if not isinstance(u, Linearised):
        return u, waves
    # What the correction could not see is of second order in its correction: the next tangent space along it.
    return u.nets[0].field, next_space(u), waves


def _waves(pde: PDE, key: Array, dtype: Any) -> Field:
    """A network of ridge waves, whose tangent space holds functions that u's training did not know."""
    net = MLP(pde.dim, WAVE_UNITS, 2, activation=Sine(), last_bias=False, key=key)
    net = eqx.tree_at(lambda n: n.layers[0].weight, net, 2 * net.layers[0].weight)
    return Centred(pde.domain, jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), net))


def _krylov(pde: PDE, enriched: Linearised, structure: Structure) -> Recipe:
    solver = by_products(cg(1e-4, 600))
    boundary = min(max(400, 20 * pde.dim), 1000)
    saddle = tangent(pde, structure=structure)
    return Recipe(
        lower=lambda data: saddle,
        start=lambda key: {"u": enriched},
        rules={"phi": natural(1.0, solver, damping=1e-6), "u": natural(1.0, solver, damping=1e-6)},
        sizes={"interior": 4000, "metric": 1000, "boundary": boundary},
    )

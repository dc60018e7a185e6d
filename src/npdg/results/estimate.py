"""An error estimate that needs no exact solution.

The error e of u solves the linearised equation with u's residual on the right and its mismatch on the boundary. It is
sought in a space richer than training used, on fresh points; twice, independently, so that sampling noise, which is
not the same in both, does not count: |∇e|² is estimated by the mean of ∇e₁·∇e₂. What of the mismatch on the boundary
that space cannot explain is an error too, and its tangential gradient, seen on other fresh points, is counted with it.

Small networks: least squares in the strong residual, exactly, in the tangent space of u and another one beside it.
Large ones: the saddle of the gradient metric, φ and u in the tangent space of u enriched by waves, by conjugate
gradients.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax

from npdg.calculus import grad, tangential_gradient
from npdg.compilation import jit
from npdg.fields.base import Field, parameter_count, split
from npdg.fields.mlp import MLP, Sine
from npdg.fields.tangent import Linearised
from npdg.fields.wrappers import Centred
from npdg.formulations.metrics import structure_of
from npdg.formulations.tangent import tangent
from npdg.linalg.cg import cg
from npdg.measures.points import Points
from npdg.problem.pde import PDE
from npdg.results.error import BATCH
from npdg.rules.directions import by_products
from npdg.rules.natural import natural
from npdg.training.step import Recipe, State, initial, step
from npdg.training.tangent_space import as_float64, correction, next_space

WAVE_UNITS = 32  # Units of the network of waves by which the space is enriched.
DENSE_UP_TO = 3000  # Parameters of u up to which the least squares in the larger space are solved directly.
TAIL = 1e-3  # The part of the values at either end that counts no more than the next to them.
SPACE_POINTS = 2  # Interior points per coefficient of that space.


def affordable(u: Field) -> bool:
    """Whether the estimate is by dense least squares, in float64."""
    return parameter_count(_network(u)) <= DENSE_UP_TO


def error_estimate(pde: PDE, u: Field, seed: int = 0, points: int = 10_000) -> float:
    """‖∇(u − u*)‖/‖∇u*‖ as far as it can be seen without u*."""
    keys = jax.random.split(jax.random.key(seed), 5)
    if dense := affordable(u):
        u = as_float64(u)
    enriched = Linearised.at(u, _richer(pde, u, keys[0]))
    recipe = correction(pde, enriched, per_coefficient=SPACE_POINTS) if dense else _krylov(pde, enriched)
    state = initial(recipe, 0)
    solve = jit(lambda key: step(recipe, State(state.fields, state.rules, key, state.step))[0].fields["u"])
    first, second = solve(keys[1]), solve(keys[2])
    x, y = pde.domain.sample_interior(keys[3], points).x, pde.domain.sample_boundary(keys[4], points)

    @jit
    def means(first: Linearised, second: Linearised) -> Array:
        def inside(x: Array) -> Array:
            one, two, whole = grad(first.correction)(x), grad(second.correction)(x), grad(first)(x)
            return jnp.stack([jnp.vdot(one, two), jnp.vdot(whole, whole)])

        def outside(y: Points) -> Array:
            normal = y.normal
            assert normal is not None
            if not pde.boundary.essential:  # whose trace is all of a gradient but one component
                return jnp.zeros((2,), y.x.dtype)
            along = lambda v: tangential_gradient(v)(y.x, normal)
            left = lambda u: along(lambda z: u(z) - pde.boundary.data(z))
            found = jnp.vdot(along(first.correction), along(second.correction))
            return jnp.stack([jnp.vdot(left(first), left(second)), found])

        parts = ((inside, x), (outside, y))
        return jnp.concatenate([_mean(lax.map(f, p, batch_size=min(BATCH, points))) for f, p in parts])

    explained, norm, left, found = (float(m) for m in means(first, second))
    # A boundary point shows d − 1 of the d components of a gradient. Errors that fade away from the boundary count
    # for as much less as those that were found do.
    whole = pde.dim / max(pde.dim - 1, 1)
    fading = min(max(explained, 0.0) / found, whole) if found > 0 else whole
    error = max(explained, 0.0) + max(left, 0.0) * fading
    relative = (error / (norm if norm > 0 else 1.0)) ** 0.5
    return max(relative, float(jnp.finfo(x.dtype).eps))  # rounding errors have no equation


def _mean(values: Array) -> Array:
    """The mean by columns, of which no few values may be the most: near corners that no sample has seen, e₁ and e₂ may
    both be large and wrong."""
    low, high = (jnp.quantile(values, at, axis=0, keepdims=True) for at in (TAIL, 1 - TAIL))
    return jnp.mean(jnp.clip(values, low, high), axis=0)


def _network(u: Field) -> Field:
    return u.nets[0].field if isinstance(u, Linearised) else u


def _richer(pde: PDE, u: Field, key: Array) -> tuple[Field, ...]:
    """The network whose tangent space u used, and others for what that space does not hold."""
    waves = _waves(pde, key, split(_network(u))[0].dtype)
    if not isinstance(u, Linearised):
        return u, waves
    # What the correction could not see is of second order in its correction: the next tangent space along it.
    return *(net.field for net in u.nets), next_space(u), waves


def _waves(pde: PDE, key: Array, dtype: Any) -> Field:
    """A network of ridge waves, whose tangent space holds functions that u's training did not know."""
    net = MLP(pde.dim, WAVE_UNITS, 2, activation=Sine(), last_bias=False, key=key)
    net = eqx.tree_at(lambda n: n.layers[0].weight, net, 2 * net.layers[0].weight)
    return Centred(pde.domain, jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), net))


def _krylov(pde: PDE, enriched: Linearised) -> Recipe:
    solver = by_products(cg(1e-4, 600))
    boundary = min(max(400, 20 * pde.dim), 1000)
    saddle = tangent(pde, structure=structure_of(pde))
    return Recipe(
        lower=lambda data: saddle,
        start=lambda key: {"u": enriched},
        rules={"phi": natural(1.0, solver, damping=1e-6), "u": natural(1.0, solver, damping=1e-6)},
        sizes={"interior": 4000, "metric": 1000, "boundary": boundary},
    )

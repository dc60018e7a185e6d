"""The dual in the tangent space of u: its fields, and its step against dense algebra."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import npdg
from npdg import grad
from npdg.fields.base import split
from npdg.fields.mlp import MLP
from npdg.fields.tangent import Tangent
from npdg.formulations.tangent import tangent
from npdg.linalg.cg import cg
from npdg.methods.registry import make_method
from npdg.problem.pde import PDE
from npdg.saddle.gram import gram
from npdg.training.loop import advance
from npdg.training.progress import Events, Limits, Progress
from npdg.training.step import Recipe, initial, step

pytestmark = pytest.mark.usefixtures("x64")

KAPPA = lambda x: 1 + x[0] ** 2
EXACT = lambda x: jnp.sin(x[0]) * jnp.exp(x[1])
SMALL = {"width": 6, "n_interior": 50, "n_metric": 40, "n_boundary": 20, "precision": "float64"}
TANGENT = {"dual": "tangent", "solver": "cg", "damping": 1e-3, "tau_u": 0.8, "minres_rtol": 1e-13, "minres_max": 500}


def equation() -> PDE:
    flux = lambda u, x: KAPPA(x) * grad(u)(x)
    source = lambda x: -npdg.div(lambda y: flux(EXACT, y))(x) + EXACT(x) ** 3
    return PDE(npdg.Box(0.0, 1.0, dim=2), flux, source, lambda u, x: u(x) ** 3, npdg.Dirichlet(EXACT), EXACT)


def recipe_of(pde: PDE, **settings: Any) -> Recipe:
    method = make_method("equation", "npdg", **settings)
    return method.recipe(pde, method.candidates(pde)[0])


def test_tangent_field_is_the_cut_off_times_a_combination_of_derivatives():
    box, u = npdg.Box(0.0, 1.0, dim=2), MLP(2, 5, 3, key=jax.random.key(0))
    zero = Tangent.at(box, u)
    vector, build = split(zero)
    theta, u_of = split(u)
    assert vector.size == theta.size
    x, v = jnp.array([0.3, 0.9]), jax.random.normal(jax.random.key(1), vector.shape)
    assert zero(x) == 0
    derivatives = jax.grad(lambda t: u_of(t)(x))(theta)
    np.testing.assert_allclose(build(v)(x), 0.1 * jnp.vdot(derivatives, v), rtol=1e-10)
    assert build(v)(jnp.array([0.3, 1.0])) == 0


def test_step_is_the_two_solves_of_dense_algebra():
    pde = equation()
    recipe = recipe_of(pde, **SMALL, **TANGENT)
    state = initial(recipe, 2)
    samples = recipe.lower({}).sample(jax.random.fold_in(state.key, 0), recipe.sizes)
    x, m, y = (samples[name].x for name in ("interior", "metric", "boundary"))
    normals = samples["boundary"].normal
    assert normals is not None
    theta, u_of = split(state.fields["u"])
    u = state.fields["u"]
    zeta = jax.vmap(pde.domain.cutoff)

    @jax.jit
    def by_hand(theta):
        residual = jax.vmap(
            lambda p: -KAPPA(p) * jnp.trace(jax.hessian(u)(p)) - 2 * p[0] * grad(u)(p)[0] + u(p) ** 3 - pde.source(p)
        )(x)
        derivative = lambda p: jax.grad(lambda t: u_of(t)(p))(theta)
        g_phi = jnp.mean((residual * zeta(x))[:, None] * jax.vmap(derivative)(x), axis=0)
        roots = jnp.sqrt(jax.vmap(KAPPA)(m))[:, None, None]
        a = roots * jax.vmap(jax.jacfwd(lambda p: pde.domain.cutoff(p) * derivative(p)))(m).swapaxes(1, 2)
        b = roots * jax.vmap(jax.jacfwd(derivative))(m).swapaxes(1, 2)
        gram_of = lambda rows: jnp.einsum("nrp,nrq->pq", rows, rows) / rows.shape[0]
        identity = jnp.eye(theta.size)
        v_phi = jnp.linalg.solve(gram_of(a) + 1e-6 * identity, g_phi)

        def trace(function):
            slopes = jax.vmap(jax.grad(function))(y)
            along = slopes - jnp.sum(slopes * normals, axis=1, keepdims=True) * normals
            values = jnp.concatenate([jax.vmap(function)(y)[:, None], along], axis=1)
            return jnp.sqrt(jax.vmap(KAPPA)(y))[:, None] * values  # weighed like the energy inside

        mismatch = lambda t: trace(lambda p: u_of(t)(p) - EXACT(p))
        c = jax.jacfwd(mismatch)(theta)
        phi = zeta(m) * (jax.vmap(derivative)(m) @ v_phi)
        # ⟨κ∇∂u, ∇φ⟩ + ⟨3u² ∂u, φ⟩: the adjoint of the linearised equation at φ.
        right = jnp.einsum("nrp,nrq,q->p", b, a, v_phi) / len(m)
        right += jnp.mean((3 * jax.vmap(u)(m) ** 2 * phi)[:, None] * jax.vmap(derivative)(m), axis=0)
        right += 10 * jnp.einsum("nrp,nr->p", c, mismatch(theta)) / len(y)
        return jnp.linalg.solve(gram_of(b) + 10 * gram_of(c) + 1e-3 * identity, right)

    v = by_hand(theta)
    new, info = jax.jit(lambda s: step(recipe, s))(state)
    assert set(new.fields) == {"u"}
    np.testing.assert_allclose(split(new.fields["u"])[0], theta - 0.8 * v, rtol=1e-6, atol=1e-8)
    assert info.moves["phi"].residual < 1e-10


def test_a_flux_on_the_boundary_is_not_weighed():
    flux = lambda u, x: KAPPA(x) * grad(u)(x)
    pde = PDE(npdg.Box(0.0, 1.0, dim=2), flux, boundary=npdg.Neumann(0.0))
    saddle, u = tangent(pde, lam=2.0), EXACT
    samples = saddle.sample(jax.random.key(0), {"interior": 1, "metric": 1, "boundary": 50})
    y, normals = samples["boundary"].x, samples["boundary"].normal
    assert normals is not None
    outwards = np.sum(np.asarray(jax.vmap(lambda p: flux(u, p))(y)) * np.asarray(normals), axis=1)
    terms = saddle.terms({"u": u, "phi": lambda x: jnp.zeros(())}, samples, "u")
    np.testing.assert_allclose(terms["boundary"], np.mean(outwards**2), rtol=1e-12)


@pytest.mark.slow
def test_supremum_is_at_most_the_energy_of_the_error():
    """Bessel: the maximum over a subspace of H¹₀ is below half the squared energy norm of u − u* ∈ H¹₀."""
    pde = PDE(npdg.Box(0.0, 1.0, dim=2), lambda u, x: grad(u)(x))
    bump = lambda x: 5 * x[0] * (1 - x[0]) * jnp.sin(jnp.pi * x[1])
    saddle = tangent(pde)
    samples = saddle.sample(jax.random.key(0), {"interior": 10_000, "metric": 10_000, "boundary": 10})
    phi, base = saddle.players[0], MLP(2, 12, 3, key=jax.random.key(1))
    fields = {"u": bump, "phi": Tangent.at(pde.domain, base)}
    vector, build = split(fields["phi"])
    value = lambda v: saddle.value({**fields, "phi": build(v)}, samples, "phi") - boundary
    boundary = saddle.terms(fields, samples)["boundary"]
    g = jax.jit(jax.grad(value))(vector)
    solve = jax.jit(lambda g: cg(1e-10, 500)(gram(phi, fields, samples).product, g, shift=1e-9))(g)
    energy = 0.5 * jnp.mean(jnp.sum(jax.vmap(grad(bump))(samples["metric"].x) ** 2, axis=1))
    supremum = jax.jit(value)(solve.x)
    assert 0.5 * energy < supremum < 1.02 * energy


@pytest.mark.slow
def test_tangent_dual_solves_a_nonlinear_equation():
    numbers = {"width": 24, "n_interior": 800, "n_metric": 400, "n_boundary": 80, "precision": "float64", "tau_u": 0.7}
    solver = {"dual": "tangent", "solver": "cg", "minres_max": 60, "damping": 1e-3}
    recipe = recipe_of(equation(), **numbers, **solver)
    progress = advance(Progress(initial(recipe, 0), recipe, None), Limits(steps=60), Events())
    x = jax.random.uniform(jax.random.key(9), (1000, 2))
    error = jax.vmap(progress.state.fields["u"])(x) - jax.vmap(EXACT)(x)
    relative = jnp.linalg.norm(error) / jnp.linalg.norm(jax.vmap(EXACT)(x))
    assert relative < 2e-3, relative

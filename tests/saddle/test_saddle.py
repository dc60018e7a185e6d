"""The functional, its gradients and its Gram matrices, against finite differences and dense algebra."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import npdg
from npdg.calculus import grad
from npdg.fields.base import split
from npdg.fields.mlp import MLP
from npdg.fields.wrappers import CutOff
from npdg.formulations.inf_sup import inf_sup
from npdg.formulations.least_squares import least_squares
from npdg.formulations.traces import TRACES
from npdg.linalg.gram import Gram
from npdg.problem.pde import PDE
from npdg.saddle.gram import gram

pytestmark = pytest.mark.usefixtures("x64")

EXACT = lambda x: jnp.sin(x[0]) * jnp.exp(x[1])


def equation(domain=None) -> PDE:
    """−div((2 + x₁) ∇u) + u³ = f with a known solution."""
    flux = lambda u, x: (2 + x[0]) * grad(u)(x)
    reaction = lambda u, x: u(x) ** 3
    source = lambda x: -npdg.div(lambda y: flux(EXACT, y))(x) + EXACT(x) ** 3
    domain = npdg.Box(0.0, 1.0, dim=2) if domain is None else domain
    return PDE(domain, flux, source, reaction, npdg.Dirichlet(EXACT), EXACT)


def fields_of(pde: PDE, seed: int = 0, width: int = 6):
    keys = jax.random.split(jax.random.key(seed), 3)
    return {
        "u": MLP(pde.dim, width, 3, key=keys[0]),
        "phi": CutOff(pde.domain, MLP(pde.dim, width, 3, key=keys[1])),
        "psi": MLP(pde.dim, width, 3, key=keys[2]),
    }


@pytest.mark.parametrize("pairing", ["weak", "strong"])
@pytest.mark.parametrize("norm", ["l2", "h1"])
@pytest.mark.parametrize("domain", [npdg.Box(0.0, 1.0, dim=2), npdg.Ball(1.0, dim=2)])
def test_gradients_are_those_of_finite_differences(pairing, norm, domain):
    pde = equation(domain)
    saddle, fields = inf_sup(pde, nu=0.7, lam=3.0, pairing=pairing, boundary_norm=norm), fields_of(pde)
    samples = saddle.sample(jax.random.key(1), {"interior": 20, "boundary": 12})
    for player in saddle.players:
        vector, build = split(fields[player.name])
        value = jax.jit(lambda v, p=player, b=build: saddle.value({**fields, p.name: b(v)}, samples, p.name))
        direction = jax.random.normal(jax.random.key(2), vector.shape)
        h = 1e-5
        difference = (value(vector + h * direction) - value(vector - h * direction)) / (2 * h)
        np.testing.assert_allclose(jnp.vdot(jax.jit(jax.grad(value))(vector), direction), difference, rtol=1e-6)


def test_functional_is_the_papers_formula():
    pde, nu, lam = equation(), 0.7, 3.0
    saddle, fields = inf_sup(pde, nu=nu, lam=lam), fields_of(pde)
    samples = saddle.sample(jax.random.key(1), {"interior": 9, "boundary": 7})
    x, y = samples["interior"].x, samples["boundary"].x
    u, phi, psi = fields["u"], fields["phi"], fields["psi"]

    @jax.jit
    def interior(p):
        weak = (2 + p[0]) * jnp.vdot(grad(u)(p), grad(phi)(p)) + (u(p) ** 3 - pde.source(p)) * phi(p)
        return weak - nu / 2 * jnp.vdot(grad(phi)(p), grad(phi)(p))

    @jax.jit
    def boundary(p):
        return (u(p) - EXACT(p)) * psi(p) - nu / 2 * psi(p) ** 2 + (u(p) - EXACT(p)) ** 2

    expected = sum(float(interior(p)) for p in x) / len(x) + lam * sum(float(boundary(p)) for p in y) / len(y)
    np.testing.assert_allclose(jax.jit(lambda f: saddle.value(f, samples, "u"))(fields), expected, rtol=1e-12)


def test_both_pairings_have_the_same_expectation_and_the_strong_one_no_variance_at_the_solution():
    pde = equation()
    fields = fields_of(pde)
    weak, strong = inf_sup(pde), inf_sup(pde, pairing="strong")
    sizes = {"interior": 200_000, "boundary": 2}
    samples = weak.sample(jax.random.key(3), sizes)
    pairing = lambda saddle, fields: jax.jit(lambda s: saddle.terms(fields, s)["pairing"])(samples)
    a, b = pairing(weak, fields), pairing(strong, fields)
    np.testing.assert_allclose(a, b, atol=3e-3 * abs(float(a)) + 2e-3)
    solution = {**fields, "u": EXACT}
    np.testing.assert_allclose(pairing(strong, solution), 0, atol=1e-12)
    assert abs(pairing(weak, solution)) < 5e-3


def seen(operator: Gram, v: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A product with a Gram matrix, and the matrix."""
    return operator.product(v), operator.dense()


@pytest.mark.parametrize("norm", ["l2", "h1"])
def test_gram_product_is_that_of_the_dense_matrix(norm):
    pde = equation()
    saddle, fields = inf_sup(pde, lam=3.0, boundary_norm=norm), fields_of(pde)
    samples = saddle.sample(jax.random.key(1), {"interior": 30, "boundary": 11})
    for player in saddle.players:
        vector, build = split(fields[player.name])
        rows = []
        for block in player.metric:
            points = samples[block.over]
            feature = lambda v, p, f=block.feature, b=build, n=player.name: f({**fields, n: b(v)}, p)
            derivatives = jax.jit(jax.vmap(lambda p, f=feature, v=vector: jax.jacfwd(f)(v, p)))(points)
            rows.append((block.weight / points.x.shape[0]) ** 0.5 * derivatives.reshape(-1, vector.size))
        jacobian = jnp.concatenate(rows)
        exact = jacobian.T @ jacobian
        v = jax.random.normal(jax.random.key(4), vector.shape)
        product, dense = jax.jit(lambda v, p=player: seen(gram(p, fields, samples), v))(v)
        np.testing.assert_allclose(product, exact @ v, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(dense, exact, rtol=1e-9, atol=1e-12)


def test_sampled_trace_has_the_mean_square_of_the_full_one():
    for domain in (npdg.Box(0.0, 1.0, dim=3), npdg.Ball(1.0, dim=4)):
        u = MLP(domain.dim, 8, 3, key=jax.random.key(5))
        points = domain.sample_boundary(jax.random.key(6), 100_000)
        square = lambda norm, u=u: jax.jit(jax.vmap(lambda p: jnp.sum(TRACES[norm](u, p) ** 2)))
        full, sampled = square("h1")(points), square("h1-sampled")(points)
        error = jnp.std(sampled - full) / 100_000**0.5
        assert abs(jnp.mean(sampled) - jnp.mean(full)) < 4 * error
    ends = npdg.Box(0.0, 1.0, dim=1).sample_boundary(jax.random.key(0), 4)
    np.testing.assert_array_equal(ends.tangent, 0)


def test_exact_dual_is_the_least_squares_functional_and_its_gram_that_of_gauss_and_newton():
    pde = equation()
    saddle, fields = least_squares(pde, lam=3.0, boundary_norm="h1"), fields_of(pde)
    samples = saddle.sample(jax.random.key(1), {"interior": 30, "boundary": 11})
    vector, build = split(fields["u"])
    v = jax.random.normal(jax.random.key(2), vector.shape)

    @jax.jit
    def looked_at(v):
        operator = gram(saddle.players[0], fields, samples)
        value, gradient = jax.value_and_grad(lambda t: saddle.value({**fields, "u": build(t)}, samples, "u"))(vector)
        return operator.values(), operator.rows(), *seen(operator, v), value, gradient

    values, rows, product, dense, value, gradient = looked_at(v)
    np.testing.assert_allclose(value, 0.5 * jnp.vdot(values, values), rtol=1e-12)
    np.testing.assert_allclose(rows.T @ values, gradient, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(dense @ v, product, rtol=1e-9, atol=1e-12)
    assert abs(jax.jit(lambda s: saddle.value({"u": EXACT}, s, "u"))(samples)) < 1e-24


@functools.partial(jax.jit, static_argnums=1)
def products(seed, name):
    """Two random vectors and their products with the Gram matrix of a player, at random fields and samples."""
    saddle = inf_sup(pde := equation())
    fields, samples = fields_of(pde, seed, width=3), saddle.sample(jax.random.key(seed), {"interior": 8, "boundary": 5})
    operator = gram(next(player for player in saddle.players if player.name == name), fields, samples)
    v, w = jax.random.normal(jax.random.key(seed + 1), (2, operator.size))
    return v, w, operator.product(v), operator.product(w)


@given(seed=st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_gram_is_symmetric_and_positive_semidefinite(seed):
    with jax.enable_x64(True):
        for player in ("u", "phi", "psi"):
            v, w, gv, gw = products(seed, player)
            np.testing.assert_allclose(jnp.vdot(w, gv), jnp.vdot(v, gw), rtol=1e-8, atol=1e-12)
            assert jnp.vdot(v, gv) >= 0


def test_samples_are_fresh_and_reproducible():
    saddle = inf_sup(equation())
    sizes = {"interior": 4, "boundary": 4}
    first, again, other = (saddle.sample(jax.random.key(k), sizes) for k in (0, 0, 1))
    np.testing.assert_array_equal(first["interior"].x, again["interior"].x)
    assert not np.any(np.asarray(first["interior"].x) == np.asarray(other["interior"].x))

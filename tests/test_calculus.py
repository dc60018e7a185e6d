import jax
import jax.numpy as jnp
import numpy as np
import pytest

from npdg.calculus import div, grad, laplacian, normal_derivative, tangential_gradient
from npdg.fields.mlp import MLP

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("dim", [1, 2, 7])
def test_operators_on_a_function_with_known_derivatives(dim):
    a = jnp.arange(1.0, dim + 1)
    u = lambda x: jnp.sin(jnp.vdot(a, x))
    x = jax.random.normal(jax.random.key(0), (dim,))
    np.testing.assert_allclose(grad(u)(x), jnp.cos(jnp.vdot(a, x)) * a, rtol=1e-12)
    np.testing.assert_allclose(laplacian(u)(x), -jnp.vdot(a, a) * u(x), rtol=1e-12)
    np.testing.assert_allclose(div(grad(u))(x), laplacian(u)(x), rtol=1e-12)
    np.testing.assert_allclose(div(lambda y: y * u(y))(x), dim * u(x) + jnp.vdot(x, grad(u)(x)), rtol=1e-12)


def test_laplacian_of_a_network_is_the_trace_of_its_hessian():
    net = MLP(5, 16, 4, key=jax.random.key(1))
    x = jax.random.normal(jax.random.key(2), (5,))
    trace = jax.jit(lambda x: jnp.trace(jax.hessian(net)(x)))(x)
    np.testing.assert_allclose(jax.jit(laplacian(net))(x), trace, rtol=1e-10)


def test_laplacian_keeps_no_hessian_of_the_network():
    """The largest intermediate of the compiled Laplacian is linear in d, not quadratic."""
    dim, width = 64, 8
    net = MLP(dim, width, 3, key=jax.random.key(0))
    shapes = [v.aval.shape for eqn in jax.make_jaxpr(laplacian(net))(jnp.ones(dim)).eqns for v in eqn.outvars]
    assert max(int(np.prod(s)) for s in shapes if s != (dim, dim)) <= 2 * dim * width


def test_gradient_splits_into_normal_and_tangential_parts():
    u = lambda x: x[0] ** 2 + 3 * x[1] * x[2]
    x, n = jnp.array([1.0, 2.0, -1.0]), jnp.array([0.6, 0.0, 0.8])
    tangential = tangential_gradient(u)(x, n)
    np.testing.assert_allclose(jnp.vdot(tangential, n), 0, atol=1e-14)
    np.testing.assert_allclose(tangential + normal_derivative(u)(x, n) * n, grad(u)(x), rtol=1e-12)

"""Sums of products of functions of one coordinate: their values, their derivatives, and what tells them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.polynomial import chebyshev as numpys

from npdg.calculus import laplacian
from npdg.fields.products import Products, along_fibres, chebyshev, multiplied

POINT = np.array([0.3, -0.7, 0.95])


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("degree", [0, 1, 7])
def test_polynomials_and_their_derivatives_are_numpys(degree):
    for n in range(degree + 1):
        series = np.zeros(n + 1)
        series[n] = 1.0 if n == 0 else 2**0.5
        one = lambda t, n=n: chebyshev(t[None], degree)[0, n]
        np.testing.assert_allclose(jax.vmap(one)(jnp.asarray(POINT)), numpys.chebval(POINT, series), atol=1e-14)
        slopes = jax.vmap(jax.grad(one))(jnp.asarray(POINT))
        np.testing.assert_allclose(slopes, numpys.chebval(POINT, numpys.chebder(series)), atol=1e-12)
        curves = jax.vmap(jax.grad(jax.grad(one)))(jnp.asarray(POINT))
        np.testing.assert_allclose(curves, numpys.chebval(POINT, numpys.chebder(series, 2)), atol=1e-11)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("dim", [1, 2, 5, 8])
def test_the_laplacian_is_that_of_the_same_function_written_out(dim):
    u = Products(dim, 3, 5, key=jax.random.key(dim))
    x = jax.random.uniform(jax.random.key(1), (dim,), minval=-0.9, maxval=0.9)

    def plain(y):
        powers = jnp.stack([numpys_value(y, n) for n in range(6)], axis=1)
        return jnp.sum(jnp.prod(jnp.sum(u.coefficients * powers[None], axis=2), axis=1))

    def numpys_value(y, n):
        return jnp.cos(n * jnp.arccos(y)) * (1.0 if n == 0 else 2**0.5)

    np.testing.assert_allclose(u(x), plain(x), rtol=1e-12)
    np.testing.assert_allclose(laplacian(u)(x), jnp.trace(jax.hessian(plain)(x)), rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("x64")
def test_one_point_tells_a_product_but_for_its_size():
    function = lambda x: jnp.sin(2 * x[0] + 1) * jnp.cos(x[1] - 0.3) * jnp.exp(x[2])
    through = jnp.array([0.2, 0.1, 0.4])
    found = along_fibres(function, through[None], 16, key=jax.random.key(0))
    ratios = [found(y) / function(y) for y in (jnp.asarray(POINT), through, -jnp.asarray(POINT))]
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-10)
    assert abs(ratios[0]) == pytest.approx(1 / abs(float(function(through))))


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_products_by_halves_are_products(count):
    factors = jnp.arange(1.0, 2 * count + 1).reshape(2, count)
    np.testing.assert_allclose(multiplied(factors), np.prod(np.asarray(factors), axis=1))

"""Whether a source separates, and what degree its factors need."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import npdg
from npdg import grad
from npdg.formulations.separation import products, separating_degree

BOX = npdg.Box(0.0, 2.0, dim=4)


def with_source(source) -> npdg.PDE:
    return npdg.PDE(BOX, lambda u, x: grad(u)(x), source)


@pytest.mark.parametrize(
    ("source", "degree"),
    [
        (lambda x: jnp.prod(jnp.sin(2 * x + 1)), 16),
        (lambda x: jnp.prod(jnp.sin(6 * x)) + jnp.prod(jnp.cos(x)), 24),
        (lambda x: jnp.sum(jnp.sin(2 * x)), None),  # a sum of functions of one coordinate each
        (lambda x: jnp.sin(x[0]) + x[1] ** 2, None),  # a sum that a few products hold as well
        (lambda x: jnp.tanh(20 * (jnp.sum(x) - 4)), None),  # a layer across the axes
        (lambda x: jnp.full((), 3.0, x.dtype), None),
        (lambda x: jnp.log(x[0] - 1), None),  # not finite on half of the domain
    ],
)
def test_products_are_told_from_what_is_none(source, degree):
    assert separating_degree(with_source(source)) == degree


@pytest.mark.usefixtures("x64")
def test_a_start_has_the_factors_of_the_source():
    source = lambda x: jnp.prod(jnp.sin(2 * x + 1))
    u = products(with_source(source), 1, 16, jax.random.key(3))
    x = BOX.sample_interior(jax.random.key(0), 5).x
    ratios = jax.vmap(lambda y: u(y) / source(y))(x)
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-6)

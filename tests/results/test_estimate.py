"""The certificate: an error estimate that asks a larger space than training used."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small import equation

import npdg
from npdg.fields.tangent import Linearised
from npdg.precision import precision
from npdg.results import estimate
from npdg.results.error import error_meter
from npdg.results.estimate import error_estimate
from npdg.training.step import initial, step
from npdg.training.tangent_space import as_float64, correction, doubled


@pytest.mark.slow
def test_certificate_is_within_a_factor_two():
    """Of an early field, and of its polished successor, neither of which the estimate compares with the exact one."""
    pde = equation(6.0)
    rough = npdg.solve(pde, steps=8, width=16, n_interior=200, n_boundary=40)
    found = rough.error_estimate()
    assert found is not None
    assert 0.5 < found / rough.error().rel_h1 < 2
    with precision("float64"):
        u = as_float64(rough.u)
        recipe = correction(pde, Linearised.at(u, (u,)))
        polished = jax.jit(lambda state: step(recipe, state)[0])(initial(recipe, 0)).fields["u"]
        error = error_meter(pde, 5000)(polished).rel_h1
        assert error < 0.5 * rough.error().rel_h1
        assert 0.5 < error_estimate(pde, polished) / error < 2
        recipe = correction(pde, doubled(polished))
        twice = jax.jit(lambda state: step(recipe, state)[0])(initial(recipe, 0)).fields["u"]
        less = error_meter(pde, 5000)(twice).rel_h1
        assert less < 0.5 * error
        assert 0.5 < error_estimate(pde, twice) / less < 2


def test_a_few_points_are_never_the_most_of_an_estimate():
    values = jnp.ones((10_000, 2)).at[7, 0].set(1e9)
    np.testing.assert_allclose(estimate._mean(values), [1.0, 1.0], rtol=1e-6)
    spread = jax.random.normal(jax.random.key(0), (10_000, 1)) ** 2
    np.testing.assert_allclose(estimate._mean(spread), jnp.mean(spread, axis=0), rtol=0.02)


@pytest.mark.slow
def test_certificate_of_a_large_network_is_by_conjugate_gradients(monkeypatch):
    monkeypatch.setattr(estimate, "DENSE_UP_TO", 10)
    rough = npdg.solve(equation(), steps=6, width=16, n_interior=200, n_boundary=40)
    found = rough.error_estimate()
    assert found is not None
    assert 0.5 < found / rough.error().rel_h1 < 2

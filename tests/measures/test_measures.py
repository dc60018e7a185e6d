"""Measures that seek out points."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import npdg
from npdg.measures.adaptive import ImportanceSampled

LINE = npdg.Box(0.0, 1.0, dim=1).interior


def test_sought_points_have_the_density():
    points = ImportanceSampled(LINE, lambda point: point.x[0]).sample(jax.random.key(0), 2000)
    x = np.asarray(points.x)[:, 0]
    assert len(np.unique(x)) > 1990  # none is taken twice, but for rounding
    np.testing.assert_allclose(np.mean(x), 2 / 3, atol=0.02)
    np.testing.assert_allclose(np.mean(x**2), 1 / 2, atol=0.02)


def test_among_more_points_rarer_ones_are_found():
    rare = lambda point: 1e-6 + (point.x[0] < 1e-3)
    found = [
        np.sum(np.asarray(ImportanceSampled(LINE, rare, tries=tries).sample(jax.random.key(0), 20).x) < 1e-3)
        for tries in (20, 1000)
    ]
    assert found[0] <= 3  # of 400 points 0.4 are so
    assert found[1] >= 8  # of 20,000 points 20


@pytest.mark.parametrize("n", [0, 500])
def test_where_nothing_is_to_be_sought_all_points_are_alike(n):
    points = ImportanceSampled(LINE, lambda point: jnp.zeros(())).sample(jax.random.key(0), n)
    assert points.x.shape == (n, 1)
    if n:
        np.testing.assert_allclose(np.mean(points.x), 0.5, atol=0.05)


def test_shares_of_one_batch_go_to_several_densities_and_the_rest_as_they_come():
    densities = lambda point: jnp.stack([1.0 * (point.x[0] < 0.1), 1.0 * (point.x[0] > 0.9)])
    sought = ImportanceSampled(LINE, densities, shares=(0.3, 0.2), tries=40)
    x = np.asarray(sought.sample(jax.random.key(0), 1000).x)[:, 0]
    assert x.shape == (1000,)
    np.testing.assert_allclose(np.mean(x[:500]), 0.5, atol=0.05)
    assert np.all(x[500:800] < 0.1)
    assert np.all(x[800:] > 0.9)

"""Measures that seek out points."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import npdg
from npdg import polish
from npdg.fields import Linearised
from npdg.measures import Points, Sought

LINE = npdg.Box(0.0, 1.0, dim=1).interior


def test_sought_points_have_the_density():
    points = Sought(LINE, lambda point: point.x[0]).sample(jax.random.key(0), 2000)
    x = np.asarray(points.x)[:, 0]
    assert len(np.unique(x)) > 1990  # none is taken twice, but for rounding
    np.testing.assert_allclose(np.mean(x), 2 / 3, atol=0.02)
    np.testing.assert_allclose(np.mean(x**2), 1 / 2, atol=0.02)


def test_among_more_points_rarer_ones_are_found():
    rare = lambda point: 1e-6 + (point.x[0] < 1e-3)
    found = [
        np.sum(np.asarray(Sought(LINE, rare, tries).sample(jax.random.key(0), 20).x) < 1e-3) for tries in (20, 1000)
    ]
    assert found[0] <= 3  # of 400 points 0.4 are so
    assert found[1] >= 8  # of 20,000 points 20


@pytest.mark.parametrize("n", [0, 500])
def test_where_nothing_is_to_be_sought_all_points_are_alike(n):
    points = Sought(LINE, lambda point: jnp.zeros(())).sample(jax.random.key(0), n)
    assert points.x.shape == (n, 1)
    if n:
        np.testing.assert_allclose(np.mean(points.x), 0.5, atol=0.05)


class Bump(eqx.Module):
    """A bump in a corner that holds 1/400 of the square and 1/40 of its boundary."""

    height: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.height * jnp.exp(-((jnp.linalg.norm(x) / 0.02) ** 2))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("reason", ["residual", "doubt"])
def test_the_polish_looks_where_the_field_is_wrong_and_where_it_is_in_doubt(reason):
    exact = lambda x: jnp.sin(x[0]) * x[1]
    pde = npdg.PDE(
        npdg.Box(0.0, 1.0, dim=2),
        flux=lambda u, x: npdg.grad(u)(x),
        source=exact,
        boundary=npdg.Dirichlet(exact),
        exact=exact,
    )
    bump = Bump(jnp.ones(()))
    if reason == "residual":
        start, doubts, sought = Linearised.at(lambda x: exact(x) + bump(x), (bump,)), None, polish.SOUGHT
    else:
        start, doubts, sought = Linearised.at(exact, (bump,)), jnp.array([[1.0], [0.1]]), polish.RARE
    saddle = polish._sought(polish.least_squares(pde), start, sought, doubts)
    samples = saddle.sample(jax.random.key(0), {"interior": 4000, "boundary": 4000})

    def inside(points: Points) -> float:
        return float(np.mean(np.max(np.asarray(points.x), axis=1) < 0.05))

    assert samples["interior"].x.shape == samples["boundary"].x.shape == (4000, 2)
    assert inside(samples["interior"]) > 4 / 400
    assert inside(samples["boundary"]) > 3 / 40
    if reason == "residual":
        assert np.mean(np.asarray(samples["interior"].x)) == pytest.approx(0.5, abs=0.12)  # most are everywhere
    uniform = 1 - sought[0] - (polish.DOUBTED if reason == "doubt" else 0)
    assert np.mean(np.asarray(samples["interior"].x)[:, 0] > 0.5) > 0.9 * uniform / 2  # the others are everywhere


@pytest.mark.usefixtures("x64")
def test_doubts_are_distributed_as_the_rows_leave_them():
    """Their covariance is (JᵀJ)⁻¹."""
    rows = np.asarray(jax.random.normal(jax.random.key(0), (30, 3))) * [1.0, 0.1, 10.0]
    factor = jnp.linalg.qr(jnp.asarray(rows), mode="r")
    draws = np.concatenate([polish.doubts(factor, key) for key in jax.random.split(jax.random.key(1), 2000)])
    truth = np.linalg.inv(rows.T @ rows)
    size = np.sqrt(np.diag(truth))
    np.testing.assert_allclose(
        draws.T @ draws / len(draws) / np.outer(size, size), truth / np.outer(size, size), atol=0.1
    )

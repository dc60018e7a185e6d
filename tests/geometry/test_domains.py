import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import npdg

N = 40_000


def standard_errors(values: np.ndarray, expected: np.ndarray) -> float:
    """How many standard errors the mean is away from what it should be, at worst."""
    error = np.abs(values.mean(0) - expected) / (values.std(0) / len(values) ** 0.5 + 1e-12)
    return float(np.max(error))


@given(
    low=st.lists(st.floats(-3, 3), min_size=1, max_size=4),
    size=st.floats(0.1, 5),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=20, deadline=None)
def test_box_points_are_inside_and_on_the_boundary(low, size, seed):
    box = npdg.Box(low, [a + size * (k + 1) for k, a in enumerate(low)])
    inside = box.sample_interior(jax.random.key(seed), 50)
    assert np.all(np.asarray(jax.vmap(box.cutoff)(inside.x)) >= -1e-5)
    edge = box.sample_boundary(jax.random.key(seed), 50)
    np.testing.assert_allclose(jax.vmap(box.cutoff)(edge.x), 0, atol=1e-5)
    assert edge.normal is not None
    np.testing.assert_allclose(jnp.sum(edge.normal**2, 1), 1, rtol=1e-6)
    outside = edge.x + 1e-2 * edge.normal
    assert np.all(np.asarray(jax.vmap(box.cutoff)(outside)) < 0)


def test_box_boundary_is_uniform_with_faces_in_proportion_to_area():
    box = npdg.Box([0.0, 0.0, -1.0], [1.0, 2.0, 3.0])  # face areas 8, 4, 2, twice each
    points = box.sample_boundary(jax.random.key(0), N)
    axis = np.argmax(np.abs(np.asarray(points.normal)), axis=1)
    np.testing.assert_allclose(np.bincount(axis) / N, np.array([8, 4, 2]) / 14, atol=1e-4)
    # Each of the two faces across an axis gets half, so the mean normal vanishes.
    np.testing.assert_allclose(np.asarray(points.normal).mean(0), 0, atol=1e-4)
    top = np.asarray(points.x)[(axis == 2) & (np.asarray(points.normal)[:, 2] > 0)]
    assert standard_errors(top[:, :2], np.array([0.5, 1.0])) < 4
    np.testing.assert_allclose(top[:, :2].var(0), np.array([1, 4]) / 12, rtol=0.1)


@pytest.mark.parametrize("dim", [1, 2, 5, 20])
def test_ball_is_uniform(dim):
    ball = npdg.Ball(3.0, dim=dim)
    x = np.asarray(ball.sample_interior(jax.random.key(1), N).x)
    r = np.linalg.norm(x, axis=1)
    # P(|x| ≤ ρ) = (ρ/R)^d: (|x|/R)^d is uniform on [0, 1].
    uniform = (r / 3) ** dim
    assert standard_errors(uniform[:, None], np.array([0.5])) < 4
    np.testing.assert_allclose(uniform.var(), 1 / 12, rtol=0.05)
    assert standard_errors(x, np.zeros(dim)) < 4.5
    points = ball.sample_boundary(jax.random.key(2), 1000)
    np.testing.assert_allclose(np.linalg.norm(np.asarray(points.x), axis=1), 3, rtol=1e-5)
    np.testing.assert_allclose(points.x, 3 * np.asarray(points.normal), rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(ball.cutoff)(points.x), 0, atol=1e-5)


def test_the_boundary_of_an_interval_is_its_two_ends():
    points = npdg.Box(-1.0, 2.0, dim=1).sample_boundary(jax.random.key(0), 10)
    assert sorted(np.asarray(points.x).ravel().tolist()) == [-1.0] * 5 + [2.0] * 5
    np.testing.assert_array_equal(np.sign(points.x), points.normal)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: npdg.Box(0.0, 1.0, dim=0), "dim: 0"),
        (lambda: npdg.Box(1.0, 0.0, dim=2), "below its upper"),
        (lambda: npdg.Box([0.0, 0.0], [1.0]), "as many of each"),
        (lambda: npdg.Box(0.0, float("nan"), dim=2), "finite"),
        (lambda: npdg.Ball(-1.0, dim=2), "radius"),
        (lambda: npdg.Ball(1.0), "give dim"),
    ],
)
def test_impossible_domains_are_refused(make, message):
    with pytest.raises(npdg.InputError, match=message):
        make()

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse.linalg as sla
from hypothesis import given, settings
from hypothesis import strategies as st

from npdg.linalg.cg import cg, truncated_cg
from npdg.linalg.dense import dense
from npdg.linalg.lsmr import lsmr
from npdg.linalg.minres import minres
from npdg.linalg.result import Status

pytestmark = pytest.mark.usefixtures("x64")


def gram(size: int, rank: int, seed: int, spread: float = 3.0) -> np.ndarray:
    """A positive semi-definite matrix with eigenvalues over `spread` decades."""
    q = np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))[0][:, :rank]
    return (q * np.logspace(0, -spread, rank)) @ q.T


def scipy_minres(a, b, **keywords):
    count = []
    x, _ = sla.minres(a, b, callback=lambda _: count.append(1), **keywords)
    return x, len(count)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("rank", [40, 25])
def test_minres_solves_consistent_systems_regular_singular_and_scaled(scale, rank):
    a = scale * gram(40, rank, 0)
    b = a @ np.random.default_rng(1).normal(size=40)
    solve = minres(1e-10, 400)(lambda v: jnp.asarray(a) @ v, jnp.asarray(b))
    np.testing.assert_allclose(solve.x, np.linalg.pinv(a, rcond=1e-10) @ b, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        solve.residual, np.linalg.norm(b - a @ solve.x) / np.linalg.norm(b), rtol=1e-6, atol=1e-15
    )
    assert solve.status == Status.CONVERGED
    assert solve.residual <= 2e-10


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("rtol", [1e-2, 3e-3, 1e-3])
@pytest.mark.parametrize("rank", [60, 30])
def test_scipys_stopping_rule_is_scipys(scale, rtol, rank):
    """Down to where the Lanczos vectors lose orthogonality and rounding decides which iterate is the last."""
    a = scale * gram(60, rank, 3)
    b = a @ np.random.default_rng(4).normal(size=60)
    expected, count = scipy_minres(a, b, rtol=rtol, maxiter=300)
    solve = minres(rtol, 300, stop="scipy")(lambda v: jnp.asarray(a) @ v, jnp.asarray(b))
    assert int(solve.iterations) == count
    np.testing.assert_allclose(solve.x, expected, rtol=1e-5, atol=1e-7 * np.abs(expected).max())


def test_initial_guess_and_shift_are_scipys_up_to_the_sign_of_the_shift():
    a = gram(30, 30, 5)
    b, x0 = np.random.default_rng(6).normal(size=(2, 30))
    solve = minres(1e-12, 300)(lambda v: jnp.asarray(a) @ v, jnp.asarray(b), jnp.asarray(x0), shift=0.1)
    np.testing.assert_allclose(solve.x, np.linalg.solve(a + 0.1 * np.eye(30), b), rtol=1e-8)
    restarted = minres(1e-6, 300)(lambda v: jnp.asarray(a) @ v, jnp.asarray(b), solve.x, shift=0.1)
    assert int(restarted.iterations) == 0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("dtype", "accuracy"), [(jnp.float64, 1e-6), (jnp.float32, 3e-2)])
def test_inconsistent_system_gives_a_least_squares_solution_and_says_so(seed, dtype, accuracy):
    a = gram(20, 12, seed, spread=2 + seed / 2)
    b = np.random.default_rng(8).normal(size=20)
    solve = minres(1e-5, 500)(lambda v: jnp.asarray(a, dtype) @ v, jnp.asarray(b, dtype))
    best = np.linalg.norm(b - a @ (np.linalg.pinv(a, rcond=1e-10) @ b)) / np.linalg.norm(b)
    np.testing.assert_allclose(solve.residual, best, rtol=accuracy)
    assert solve.status == Status.BREAKDOWN


def test_preconditioner_shortens_the_solve_and_not_the_truth():
    d = np.logspace(0, 6, 50)
    b = np.random.default_rng(9).normal(size=50)
    a = lambda v: jnp.asarray(d) * v + 0.01 * jnp.sum(v) * jnp.ones(50)
    matrix = np.diag(d) + 0.01
    bare = minres(1e-8, 2000)(a, jnp.asarray(b))
    helped = minres(1e-10, 2000, preconditioner=lambda r: r / jnp.asarray(d))(a, jnp.asarray(b))
    np.testing.assert_allclose(helped.x, np.linalg.solve(matrix, b), rtol=1e-5)
    assert int(helped.iterations) < int(bare.iterations) / 3


def test_statuses_are_honest():
    a = jnp.asarray(gram(50, 50, 10, spread=8))
    b = jnp.asarray(np.random.default_rng(11).normal(size=50))
    capped = minres(1e-8, 5)(lambda v: a @ v, b)
    assert (capped.status, int(capped.iterations)) == (Status.CAP, 5)
    broken = minres(1e-8, 50)(lambda v: a @ v * jnp.nan, b)
    assert broken.status == Status.NOT_FINITE
    nothing = minres(1e-8, 50)(lambda v: a @ v, jnp.zeros(50))
    assert nothing.status == Status.CONVERGED
    np.testing.assert_array_equal(nothing.x, 0)
    assert all(status.advice for status in Status)


def test_float32_recurrence_that_lies_is_not_called_converged():
    """With an ill-conditioned float32 matrix the recurrence's own estimate is far below the true residual."""
    a = jnp.asarray(gram(200, 200, 12, spread=12), jnp.float32)
    b = a @ jnp.asarray(np.random.default_rng(13).normal(size=200), jnp.float32)
    b = b + 1e-3 * jnp.linalg.norm(b) * jnp.asarray(np.random.default_rng(14).normal(size=200), jnp.float32)
    solve = minres(1e-5, 2000)(lambda v: a @ v, b)
    assert solve.residual > 1e-4
    assert solve.status != Status.CONVERGED


def test_one_product_per_iteration():
    calls = []
    a = jnp.asarray(gram(30, 30, 15))

    def product(v):
        jax.debug.callback(lambda: calls.append(1))
        return a @ v

    solve = minres(1e-8, 100)(product, a @ jnp.ones(30))
    jax.effects_barrier()
    # One more at the end: the residual is recomputed.
    assert len(calls) == int(solve.iterations) + 1


@pytest.mark.slow
@given(seed=st.integers(0, 10_000), size=st.integers(1, 25), shift=st.floats(1e-3, 10))
@settings(max_examples=25, deadline=None)
def test_all_solvers_agree_with_a_dense_solve(seed, size, shift):
    with jax.enable_x64(True):
        a = gram(size, size, seed, spread=2)
        b = np.random.default_rng(seed + 1).normal(size=size)
        exact = np.linalg.solve(a + shift * np.eye(size), b)
        for solver in (minres(1e-11, 200), cg(1e-11, 200), dense(jnp.asarray(a))):
            solve = solver(lambda v: jnp.asarray(a) @ v, jnp.asarray(b), shift=shift)
            assert solve.status == Status.CONVERGED
            np.testing.assert_allclose(solve.x, exact, rtol=1e-7, atol=1e-9)


@pytest.mark.slow
def test_minres_residuals_never_grow_with_more_iterations():
    a = jnp.asarray(gram(80, 60, 16, spread=5))
    b = jnp.asarray(np.random.default_rng(17).normal(size=80))
    residuals = [float(minres(1e-12, k)(lambda v: a @ v, b).residual) for k in range(1, 30)]
    assert np.all(np.diff(residuals) <= 1e-12)


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_lsmr_solves_damped_least_squares_and_says_how_well(shift):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(60, 20)) * np.logspace(0, -2, 20), rng.normal(size=60)
    normal = a.T @ a + shift * np.eye(20)
    solve = lsmr(1e-12, 200)(lambda v: jnp.asarray(a) @ v, jnp.asarray(b), jnp.zeros(20), shift)
    np.testing.assert_allclose(solve.x, np.linalg.solve(normal, a.T @ b), rtol=1e-7, atol=1e-9)
    rough = lsmr(1e-2, 200)(lambda v: jnp.asarray(a) @ v, jnp.asarray(b), jnp.zeros(20), shift)
    left = np.linalg.norm(a.T @ b - normal @ np.asarray(rough.x)) / np.linalg.norm(a.T @ b)
    np.testing.assert_allclose(rough.residual, left, rtol=1e-6)
    assert rough.iterations < solve.iterations


def test_lsmr_stops_where_scipys_does():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(60, 20)) * np.logspace(0, -2, 20), rng.normal(size=60)
    theirs = sla.lsmr(a, b, damp=0.5**0.5, atol=1e-6, btol=1e-6, conlim=0)
    ours = lsmr(1e-6, 200)(lambda v: jnp.asarray(a) @ v, jnp.asarray(b), jnp.zeros(20), 0.5)
    assert int(ours.iterations) == theirs[2]
    np.testing.assert_allclose(ours.x, theirs[0], rtol=1e-8, atol=1e-8)


def test_lsmr_says_when_it_ran_into_its_cap():
    a = jnp.asarray(gram(40, 40, 0, spread=6.0))
    assert lsmr(1e-12, 5)(lambda v: a @ v, jnp.ones(40), jnp.zeros(40), 0.0).status == Status.CAP


@pytest.mark.parametrize("size", [1, 4, 12])
def test_truncated_cg_with_enough_iterations_is_a_dense_solve(size):
    a = gram(size, size, 20, spread=1)
    b = np.random.default_rng(21).normal(size=size)
    found = truncated_cg(lambda v: jnp.asarray(a) @ v, jnp.asarray(b), size + 2, 1e-3)
    np.testing.assert_allclose(found, np.linalg.solve(a, b), rtol=1e-9, atol=1e-12)


def test_truncated_cg_takes_the_iterations_of_cg_and_no_more():
    a = jnp.asarray(gram(30, 30, 22))
    b = jnp.asarray(np.random.default_rng(23).normal(size=30))
    for count in (1, 2, 5):
        found = truncated_cg(lambda v: a @ v, b, count, 0.0)
        np.testing.assert_allclose(found, cg(0.0, count)(lambda v: a @ v, b).x, rtol=1e-10)


def test_truncated_cg_does_not_move_along_a_direction_of_negative_curvature():
    """Nor along one of less curvature than asked for; what was found before is kept."""
    apply = lambda d: lambda v: jnp.asarray(d) * v
    along = jnp.array([0.0, 0.0, 1.0])
    for curvature in (-2.0, 0.0, 0.05):
        np.testing.assert_array_equal(truncated_cg(apply([1.0, 2.0, curvature]), along, 5, 0.1), 0)
    np.testing.assert_allclose(truncated_cg(apply([1.0, 2.0, 0.2]), along, 5, 0.1), 5 * along, rtol=1e-12)
    # The first direction is b, of positive curvature; the second, which is conjugate to it, has a negative one.
    d, b = np.array([3.0, -0.5]), np.array([1.0, 1.0])
    first = (b @ b) / (b @ (d * b)) * b
    for count in (1, 2, 3, 10):
        np.testing.assert_allclose(truncated_cg(apply(d), jnp.asarray(b), count, 1e-3), first, rtol=1e-12)


def test_truncated_cg_of_nothing_is_nothing():
    found = truncated_cg(lambda v: 2 * v, jnp.zeros(3), 4, 1e-3)
    np.testing.assert_array_equal(found, 0)

"""Optimal transport: measures, the saddle at its solution, the refinement of maps, scores, and a short run."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal
from small_transport import SMALL

import npdg
from npdg.fields.base import split
from npdg.fields.maps import Stretch, start_map, start_potential
from npdg.formulations.monge import monge
from npdg.formulations.search import Search, refined
from npdg.linalg.cg import cg
from npdg.linalg.gram import Gram
from npdg.measures.empirical import Empirical
from npdg.measures.moments import Matched, bures
from npdg.methods.registry import make_method
from npdg.results import scores
from npdg.rules.annealed import annealed
from npdg.rules.base import View
from npdg.rules.directions import by_products
from npdg.rules.levenberg import levenberg
from npdg.training.progress import Progress
from npdg.training.step import initial

RNG = np.random.default_rng(0)


def random_covariance(dim: int) -> np.ndarray:
    root = RNG.normal(size=(dim, dim))
    return root @ root.T + 0.3 * np.eye(dim)


@pytest.mark.usefixtures("x64")
def test_the_trained_quadratic_part_is_orthonormal_however_stretched_the_measures_are():
    axes = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    variances = np.array([1e-2, 0.3, 1.0, 50.0])
    zero = Stretch.zero((axes * variances) @ axes.T)
    vector, build = split(zero)
    assert vector.size == 4 * 4 + 4
    assert zero(jnp.ones(4)) == 0
    # Eight points with this covariance and mean 0.
    points = jnp.asarray(np.concatenate([np.diag((4 * variances) ** 0.5), -np.diag((4 * variances) ** 0.5)]) @ axes.T)
    rows = jax.vmap(jax.jacfwd(lambda v: jax.vmap(jax.grad(build(v)))(points)))(vector[None])[0]
    gram = np.einsum("ndp,ndq->pq", rows, rows) / len(points)
    values = np.linalg.eigvalsh(gram)
    # P_ij and P_ji are one function: half of what is off the diagonal is not seen.
    np.testing.assert_allclose(values, [0] * 6 + [1] * 14, atol=1e-9)
    assert np.all(np.isfinite(Stretch.zero(np.zeros((4, 4))).frame.field[1].astype(jnp.float32)))


class Tilted(eqx.Module):
    """A potential plus a multiple of a wave."""

    base: Any
    share: Any

    def __call__(self, y):
        return self.base(y) + self.share * (jnp.sin(y[0] + 0.5 * y[1]) + 0.1 * y[2] ** 2)


GAUSSIANS = npdg.Gaussian([0.5, -1.0, 0.0], random_covariance(3)), npdg.Gaussian([1.0, 0.0, 2.0], random_covariance(3))
MIXTURE = npdg.GaussianMixture([0.7, 0.3], [[-1.0, 0.0], [2.0, 1.0]], 0.25)


@pytest.mark.parametrize("measure", [*GAUSSIANS, MIXTURE])
def test_samples_have_the_moments_of_their_measure(measure):
    x = np.asarray(measure.sample(jax.random.key(0), 2**14).x)
    np.testing.assert_allclose(x.mean(axis=0), measure.mean, atol=0.02)
    np.testing.assert_allclose(np.cov(x, rowvar=False), measure.covariance, atol=0.05)
    y = np.asarray(Matched(measure).sample(jax.random.key(1), 500).x)
    np.testing.assert_allclose(y.mean(axis=0), measure.mean, atol=1e-4)
    np.testing.assert_allclose(np.cov(y, rowvar=False, bias=True), measure.covariance, atol=1e-3)


def test_an_array_smaller_than_a_batch_keeps_its_moments():
    array = Empirical(np.sort(RNG.normal(size=(50, 2)), axis=0))
    x = np.asarray(Matched(array).sample(jax.random.key(0), 400).x)
    assert x.shape == (50, 2)
    np.testing.assert_allclose(np.cov(x, rowvar=False, bias=True), array.covariance, rtol=1e-3)
    assert abs(np.mean(array.points[:25, 0]) - np.mean(array.points[25:, 0])) < 1  # a sorted array is shuffled


def test_log_densities_are_those_of_scipy():
    x = jnp.array([0.3, -0.2, 1.0])
    gaussian = GAUSSIANS[0]
    normal: Any = multivariate_normal  # whose stubs know scalar covariances only
    expected = normal(gaussian.mean, gaussian.covariance).logpdf(np.asarray(x))
    np.testing.assert_allclose(gaussian.log_density(x), expected, rtol=1e-4)
    parts = [normal(mean, 0.25 * np.eye(2)).pdf([0.3, 0.4]) for mean in MIXTURE.means]
    np.testing.assert_allclose(MIXTURE.log_density(jnp.array([0.3, 0.4])), np.log(MIXTURE.weights @ parts), rtol=1e-4)


def test_the_affine_map_carries_one_gaussian_to_the_other():
    source, target = GAUSSIANS
    matrix, shift = bures(source, target)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
    assert np.linalg.eigvalsh(matrix)[0] > 0
    np.testing.assert_allclose(matrix @ source.covariance @ matrix.T, target.covariance, atol=1e-10)
    np.testing.assert_allclose(matrix @ source.mean + shift, target.mean, atol=1e-12)


def optimal(width: int = 4):
    """T and φ of the Gaussian pair: their fixed parts."""
    matrix, shift = bures(*GAUSSIANS)
    fields = {
        "T": start_map(matrix, shift, width=width, depth=2, key=jax.random.key(0)),
        "phi": start_potential(matrix, shift, width=width, depth=2, key=jax.random.key(1)),
    }
    return fields, matrix, shift


@pytest.mark.parametrize("refine", [0, 2])
def test_the_saddle_is_stationary_at_the_optimum(refine):
    """E₀[δ(T)] = E₁[δ] for any δ, and T = x − ∇φ(T)."""
    fields, matrix, shift = optimal()
    quadratic = fields["phi"].base
    saddle = monge(*GAUSSIANS, search=Search(refine, refine, (0.5,) * 3) if refine else None)
    samples = saddle.sample(
        jax.random.key(0), {"source": 2**14, "target": 2**14, "source metric": 64, "target metric": 64}
    )
    along = lambda s: saddle.value({"T": fields["T"].base, "phi": Tilted(quadratic, s)}, samples, "phi")
    assert abs(float(jax.grad(along)(0.0))) < 0.02
    x = jnp.array([0.3, 0.1, -0.4])
    y = jnp.asarray(matrix, x.dtype) @ x + jnp.asarray(shift, x.dtype)
    np.testing.assert_allclose(y, x - jax.grad(lambda z: quadratic(z))(y), atol=1e-4)


def test_refinement_finds_the_minimiser():
    fields, matrix, shift = optimal()
    x = jnp.array([0.3, 0.1, -0.4])
    true = jnp.asarray(matrix, x.dtype) @ x + jnp.asarray(shift, x.dtype)
    start = true + jnp.array([0.3, -0.2, 0.4])
    found = refined(fields["phi"].base, x, start, 4)
    np.testing.assert_allclose(found, true, atol=2e-3)
    steep = lambda y: -0.45 * jnp.vdot(y, y) + jnp.sum(y**4) / 4  # two wells close to each other
    y = refined(steep, jnp.array([0.2, -0.1]), jnp.zeros(2), 20)
    np.testing.assert_allclose(y + jax.grad(steep)(y), [0.2, -0.1], atol=1e-3)


def test_probes_find_the_lower_of_two_wells():
    """The border between the modes ±1 is at 0; a map that has it at 0.2 sends what lies between to the higher well."""
    wells = lambda y: 2 * jnp.sum((y**2 - 1) ** 2)
    wrong = lambda x: jnp.where(x > 0.2, 1.0, -1.0)
    x = jnp.linspace(-0.5, 0.5, 400)[:, None]
    right = {
        probes: np.mean(np.sign(jax.vmap(partial(Search(5, probes, (0.5,)), wrong, wells))(x)) == np.sign(x))
        for probes in (0, 3)
    }
    assert 0.75 < right[0] < 0.85
    assert right[3] > 0.95


def test_scores():
    x = RNG.normal(size=(4000, 3))
    shift = np.array([1.0, 2.0, 2.0])
    assert scores.sliced_w2(x, x) == 0
    np.testing.assert_allclose(scores.sliced_w2(x, x + shift), 3 / 3**0.5, rtol=0.1)
    assert scores.energy_distance(x, x[::-1]) < 0.08
    assert scores.energy_distance(x, x + shift) > 1
    errors = scores.map_errors(x + shift, x + shift + 0.1, x, 3.0)
    np.testing.assert_allclose([errors["map_l2"], errors["uvp"]], [0.03**0.5, 1.0], rtol=1e-6)
    assert 0.99 < errors["cos"] <= 1


def test_the_optimum_solves_the_monge_ampere_equation():
    source, target = GAUSSIANS
    fields, matrix, shift = optimal()
    x = source.sample(jax.random.key(3), 200).x
    pushed = jnp.asarray(np.asarray(x) @ matrix.T + shift)
    residual = scores.monge_ampere(npdg.Pair(source, target))
    assert residual is not None
    assert residual(fields["phi"].base, x, pushed) < 1e-3
    assert residual(fields["phi"].base, x, pushed + 0.3) > 0.1
    assert scores.monge_ampere(npdg.Pair(Empirical(x), target)) is None


@pytest.mark.slow
def test_a_short_run_from_the_identity():
    """From an array of samples to a measure."""
    source, target = npdg.Gaussian([0.0, 0.0], np.eye(2)), npdg.Gaussian([0.0, 0.0], [[2.0, 0.5], [0.5, 0.5]])
    array = np.asarray(Matched(source).sample(jax.random.key(7), 5000).x)
    solution = npdg.transport(
        array, target, steps=40, affine=False, width=24, n_interior=2048, n_metric=512, minres_max=15
    )
    matrix, shift = bures(source, target)
    score = solution.score(lambda x: x @ matrix.T + shift, n=4000)
    assert score["uvp"] is not None
    assert score["uvp"] < 1.0
    assert score["monge_ampere"] is None
    assert abs(solution.distance() - np.sqrt(np.trace(np.eye(2) + target.covariance - 2 * matrix))) < 0.05
    y = np.array([[0.3, 0.2]])
    np.testing.assert_allclose(solution.map(solution.inverse(y)), y, atol=1e-2)
    assert solution.potential(y).shape == (1,)


def test_a_map_is_called_on_points():
    pair = npdg.Transport(*GAUSSIANS)
    method = make_method("transport", "npdg", **SMALL)
    [settings] = method.candidates(pair)
    recipe = method.recipe(pair, settings)
    progress = Progress(initial(recipe, 0), recipe, settings, stop=npdg.StopReason.STEPS)
    solution = method.result(pair, progress, 0)
    assert isinstance(solution, npdg.TransportMap)
    assert npdg.TransportSolution is npdg.TransportMap  # its name in earlier versions
    assert npdg.Pair is npdg.Transport
    x = np.asarray(pair.source.sample(jax.random.key(0), 7).x)
    np.testing.assert_array_equal(solution(x), solution.map(x))
    np.testing.assert_array_equal(solution(x[0]), solution.map(x[0]))
    assert (solution(x).shape, solution(x[0]).shape) == ((7, 3), (3,))
    with pytest.raises(npdg.InputError, match=r"x: shape \(2,\) is not allowed; give points of shape \(n, 3\)"):
        solution([1.0, 2.0])


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (np.zeros((5,)), np.zeros((5, 2)), "source: shape"),
        (np.ones((1, 2)), np.zeros((5, 2)), "at least 2"),
        (np.full((5, 2), np.nan), np.zeros((5, 2)), "source: it holds NaN"),
        (RNG.normal(size=(5, 2)), RNG.normal(size=(5, 3)), "target: dimension 3"),
        (np.array([["a", "b"], ["c", "d"]]), np.zeros((5, 2)), "real numbers"),
    ],
)
def test_bad_arrays(source, target, message):
    with pytest.raises(npdg.InputError, match=message):
        npdg.transport(source, target, steps=1)


def test_bad_settings():
    with pytest.raises(npdg.InputError, match="width"):
        npdg.transport(*GAUSSIANS, steps=1, widht=3)
    with pytest.raises(npdg.InputError, match="positive definite"):
        npdg.Gaussian([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(npdg.InputError, match="weights"):
        npdg.GaussianMixture([0.5, 0.6], [[0.0], [1.0]], 1.0)


def quadratic_view(vector, gradient, *, sense: int = 1, metric: float = 1.0) -> View:
    """A player whose field is a vector, with L = ∓½|v|² and a multiple of the unit metric."""
    field = Holder(jnp.asarray(vector))
    return View(
        field,
        jnp.asarray(gradient),
        sense,
        value=lambda f: -sense * jnp.sum(f.vector**2) / 2,
        gram=lambda **_: Gram(len(vector), lambda v: [metric * v], lambda parts: parts[0], *[lambda: jnp.zeros(0)] * 2),
    )


class Holder(eqx.Module):
    vector: jax.Array

    def __call__(self, x):
        return self.vector @ x


def test_a_step_that_went_wrong_is_taken_back():
    """The natural gradient is a hundred times as long after a step, then not a number: the parameters before it return,
    and steps are shorter."""
    rule = annealed(by_products(cg(1e-3, 5)), tau=0.5, settling=10.0, reach=100.0, damping=1e-3)
    start = jnp.array([1.0, -2.0])
    state = rule.init(Holder(start))
    field, state, _ = rule.step(quadratic_view(start, -start), state)
    good = field.vector
    np.testing.assert_allclose(good, 0.875 * start, rtol=0.01)  # a quarter of the step, as long as nothing is known
    for bad in (-100 * good, jnp.full(2, jnp.nan)):
        back, after, move = rule.step(quadratic_view(good, bad), state)
        np.testing.assert_array_equal(back.vector, start)
        assert float(after.taken) > float(state.taken)
        assert all(np.isfinite(float(number)) for number in move)
    again, _, _ = rule.step(quadratic_view(start, -100 * start), after)  # believed once after a step back
    assert not jnp.array_equal(again.vector, start)


@pytest.mark.parametrize(("signs", "share"), [((1, 1, 1, 1), 1.0), ((1, -1, 1, -1), 0.25)])
def test_steps_are_long_where_fresh_samples_agree_and_short_where_they_do_not(signs, share):
    """Gradients of a slope that stays are believed whole; those that change their sign are noise."""
    rule = annealed(by_products(cg(1e-3, 5)), tau=0.5, settling=1e9, reach=100.0, damping=1e-9)
    vector = jnp.array([1.0, -2.0])
    state = rule.init(Holder(vector))
    steps = []
    for sign in signs:
        field, state, _ = rule.step(quadratic_view(vector, sign * jnp.array([0.3, 0.4])), state)
        steps.append(float(jnp.linalg.norm(field.vector - vector)))
        vector = field.vector
    np.testing.assert_allclose(steps[0], 0.25 * 0.5 * 0.5, rtol=1e-3)
    np.testing.assert_allclose(steps[-1], share * 0.5 * 0.5, rtol=1e-3)


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_a_map_never_steps_to_a_higher_loss(scale):
    """A metric that is too small by `scale` makes steps too long; they are cut or not taken, and damping grows."""
    rule = levenberg(1.0, by_products(cg(1e-6, 10)), damping=1e-2)
    vector, state = jnp.array([1.0, -2.0]), rule.init(Holder(jnp.zeros(2)))
    for _ in range(6):
        view = quadratic_view(vector, vector, sense=-1, metric=1 / scale)
        field, new, _ = rule.step(view, state)
        assert float(jnp.sum(field.vector**2)) <= float(jnp.sum(vector**2))
        assert (float(new) > float(state)) == bool(jnp.array_equal(field.vector, vector))
        vector, state = field.vector, new
    assert float(jnp.sum(vector**2)) < 5.0

"""The linear start: features of the right scale, the residual that tells them, and what becomes of them in a run."""

from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import npdg
from npdg.driver import make_plan
from npdg.fields.base import parameter_count
from npdg.fields.features import KINDS, Features, feature_sum, random_features
from npdg.formulations.least_squares import hardy_weight
from npdg.training.progress import Budget, Checkpoints, Events, Progress
from npdg.training.records import Record
from npdg.training.stages.base import Context, run_stages, take_beside
from npdg.training.stages.features import Search, is_linear
from npdg.training.step import State
from npdg.training.stopping import StopReason


def manufactured(exact, dim=1, reaction=None) -> npdg.PDE:
    """−Δu + reaction(u) = f with a given solution on the unit cube."""
    laplace = lambda x: jnp.trace(jax.hessian(exact)(x))
    source = lambda x: -laplace(x) + (0.0 if reaction is None else reaction(exact, x))
    return npdg.PDE(
        npdg.Box(0.0, 1.0, dim=dim),
        lambda u, x: npdg.grad(u)(x),
        source=source,
        reaction=reaction,
        boundary=npdg.Dirichlet(exact),
        exact=exact,
    )


def exact_of(pde):
    """The exact solution, which these equations have."""
    assert pde.exact is not None
    return pde.exact


TWO_SCALES = manufactured(lambda x: jnp.sin(2 * x[0]) + 0.1 * jnp.sin(40 * x[0]))


def searched(pde, seconds=60.0) -> Search:
    plan = make_plan(pde, "npdg", Budget(seconds), 0)
    search = Search(Context(pde, plan.method, plan.candidates, plan.budget, 0))
    search.run(seconds)
    return search


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_of_any_kind_is_the_layer_of_that_kind(kind, x64):
    layer = random_features(kind, 3, 7, 2.0, 0)
    any_kind = Features(layer.weight, layer.bias, layer.number, None)
    x = jnp.array([0.1, -0.2, 0.3])
    np.testing.assert_allclose(any_kind(x), layer(x), rtol=1e-14)
    u = feature_sum(npdg.Box(0.0, 1.0, dim=3), layer)
    assert parameter_count(u) == 8  # the features themselves are not trained
    assert u(x) == 0


def test_linear_equations_are_told_from_others(x64):
    assert is_linear(TWO_SCALES)
    assert is_linear(manufactured(lambda x: x[0] ** 2, reaction=lambda u, x: -3 * x[0] * u(x)))
    assert not is_linear(manufactured(lambda x: x[0] ** 2, reaction=lambda u, x: u(x) ** 3))


def test_the_weight_vanishes_on_the_boundary_where_u_is_given_and_is_none_elsewhere():
    weight = hardy_weight(TWO_SCALES)
    assert weight is not None
    assert float(weight(jnp.array([0.0]))) == 0
    assert float(weight(jnp.array([0.5]))) == pytest.approx(1)
    flux = npdg.PDE(
        npdg.Box(0.0, 1.0, dim=1), lambda u, x: npdg.grad(u)(x), boundary=npdg.Neumann(lambda x: jnp.zeros(()))
    )
    assert hardy_weight(flux) is None


@pytest.mark.slow
def test_the_search_finds_the_scale_and_stops_at_rounding(x64):
    search = searched(TWO_SCALES)
    assert search.best is not None
    assert search.at_rounding
    assert search.best.units == 300
    assert search.best.choice.kind == "waves"
    assert search.best.choice.scale >= 20  # the fast wave's frequency in [−1, 1]
    x = jnp.linspace(0, 1, 50)[:, None]
    gap = jax.vmap(search.best.u)(x) - jax.vmap(exact_of(TWO_SCALES))(x)
    assert float(jnp.max(jnp.abs(gap))) < 1e-10


@pytest.mark.slow
def test_an_equation_that_is_not_linear_takes_several_sweeps(x64):
    search = searched(manufactured(lambda x: jnp.sin(3 * x[0]), reaction=lambda u, x: u(x) ** 3), seconds=5.0)
    assert search.best is not None
    assert search.best.merit < 1e-20 * search.scale


@pytest.mark.slow
def test_a_run_that_features_solve_ends_early_is_saved_and_read_back(tmp_path):
    solution = npdg.solve(TWO_SCALES, seconds=20)
    assert solution.stop_reason in (StopReason.ROUNDING, StopReason.SEARCHED)  # by how busy the machine is
    assert solution.error().rel_l2 < 1e-10
    estimate = solution.error_estimate()
    assert estimate is not None
    assert 0.3 < estimate / solution.error().rel_h1 < 3
    solution.save(tmp_path / "run")
    x = np.linspace(0, 1, 7)[:, None]
    np.testing.assert_array_equal(npdg.load(tmp_path / "run", pde=TWO_SCALES)(x), solution(x))


def _progress(step: int, words: str, **how) -> Progress:
    state = State({"u": jnp.zeros(2)}, {}, jax.random.key(0), jnp.asarray(step))
    record = Record(step, 1.0, {}, {}, {}, {})
    recipe: Any = None
    return Progress(state, recipe, SimpleNamespace(in_words=lambda: words), [record], **how)


@pytest.mark.parametrize("stop", [StopReason.DIVERGED, StopReason.SECONDS])
def test_what_is_taken_in_place_of_a_network_is_the_newest_state_of_the_run(stop):
    kept, chosen = [], []
    events = Events(on_chosen=chosen.append, checkpoints=Checkpoints(trained=kept.append))
    problem: Any = None
    context = Context(problem, problem, [], Budget(9.0), 0, events)
    beside = _progress(1, "features")
    stage: Any = lambda context, progress: _progress(7, "network", seconds=8.0, stop=stop, beside=beside)
    stage.reserve = lambda *arguments: 0.0
    last: Any = lambda context, progress: take_beside(context, progress)
    last.reserve = lambda *arguments: 0.0
    ended = run_stages([stage, last], context)
    assert ended.settings.in_words() == "features"
    assert chosen == [beside.settings]
    assert int(kept[0].state.step) == 8
    assert [record.step for record in ended.history] == [7, 8]
    assert ended.stop is StopReason.SECONDS
    assert ended.beside is None


@pytest.mark.slow
def test_a_source_that_is_not_finite_is_named_as_without_features():
    pde = npdg.PDE(npdg.Box(0.0, 1.0, dim=2), lambda u, x: npdg.grad(u)(x), source=lambda x: jnp.log(x[0] - 0.5))
    with pytest.warns(RuntimeWarning, match="the source"):
        solution = npdg.solve(pde, seconds=2)
    assert solution.stop_reason is StopReason.DIVERGED

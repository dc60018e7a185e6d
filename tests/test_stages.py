"""The stages of a run: the trial of networks, the linear polish; and the certificate, which asks a larger space."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import npdg
from npdg import certificate, evaluation, grad, methods, polish, stages, trial
from npdg.certificate import error_estimate
from npdg.directions import View, by_factors, by_products, by_rows
from npdg.fields import MLP, Linearised, Sine, Squares, Tanh, parameter_count, split
from npdg.gram import square
from npdg.hooks import Hooks
from npdg.krylov import cg, lsmr
from npdg.loop import Outcome, Recipe, Record, State, initial, step
from npdg.pools import normal_equations, triangular
from npdg.presets import candidates
from npdg.rules import Move, Rule, trusted
from npdg.stages import precision


def equation(frequency: float = 2.0) -> npdg.PDE:
    exact = lambda x: jnp.sin(frequency * x[0]) * jnp.exp(x[1])
    return npdg.PDE(
        npdg.Box(0.0, 1.0, dim=2),
        flux=lambda u, x: grad(u)(x),
        source=lambda x: (frequency**2 - 1) * exact(x),
        boundary=npdg.Dirichlet(exact),
        exact=exact,
    )


def net(key: int = 0, **keywords: Any) -> MLP:
    return MLP(2, 12, 2, activation=Sine(), squares=True, key=jax.random.key(key), **keywords)


def test_squares_are_half_of_the_first_layer():
    z = jnp.arange(1.0, 8.0)
    np.testing.assert_allclose(Squares(Tanh())(z), [0.5, 2.0, 4.5, *np.tanh([4.0, 5.0, 6.0, 7.0])], rtol=1e-6)


@pytest.mark.usefixtures("x64")
def test_a_linearised_field_is_its_base_plus_directional_derivatives():
    base, other = net(0), net(1)
    field = Linearised.at(base, (base, other))
    x = jnp.array([0.3, -0.2])
    assert field(x) == base(x)
    vector, build = split(field)
    assert vector.size == split(base)[0].size + split(other)[0].size  # the base itself is not trained
    c = jax.random.normal(jax.random.key(2), vector.shape)
    first = split(base)[0].size
    slopes = [jax.grad(lambda v, n=n: split(n)[1](v)(x))(split(n)[0]) for n in (base, other)]
    np.testing.assert_allclose(build(c)(x), base(x) + slopes[0] @ c[:first] + slopes[1] @ c[first:], rtol=1e-12)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("columns", [30, 400])
def test_the_square_by_blocks_is_the_square(columns):
    rows = jax.random.normal(jax.random.key(0), (50, columns))
    np.testing.assert_allclose(square(rows), rows.T @ rows, rtol=1e-12, atol=1e-12)


def seen(recipe: Recipe, state: State, look: Callable[[View], Any]) -> Any:
    """What `look` makes of the view of u's rule in a step, compiled."""

    def one(state: State) -> Any:
        found: list[Any] = []

        def watch(view: View, state: Any) -> Any:
            found.append(look(view))
            return view.field, state, Move(*[jnp.zeros(())] * 6)

        spy = Rule(recipe.rules["u"].init, watch)
        step(replace(recipe, rules={"u": spy}), state)
        return found[0]

    return jax.jit(one)(state)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    "interior", [pytest.param(300, marks=pytest.mark.slow), 12]
)  # more rows than parameters, and fewer
def test_every_way_to_the_descent_direction_is_the_same(interior):
    shift = 0.3
    recipe = polish.correction(equation(), Linearised.at(net(), (net(),)))
    recipe = replace(recipe, sizes={"interior": interior, "boundary": 5})

    def look(view: View) -> Any:
        gram = view.gram()
        everyone = (by_factors()(view), by_rows(lsmr(1e-12, 500))(view), by_products(cg(1e-12, 500))(view))
        prior = jnp.cos(jnp.arange(gram.size))  # what the shift holds to
        ways = [way.descent(shift, jnp.zeros(gram.size)).x for way in everyone]
        ways += [way.solve(view.gradient, shift).x for way in everyone]
        held = [way.descent(shift, prior).x for way in everyone]
        return gram.rows(), gram.values(), prior, ways, held, [way.gradient() for way in everyone]

    rows, values, prior, ways, held, gradients = seen(recipe, initial(recipe, 0), look)
    matrix = rows.T @ rows + shift * np.eye(rows.shape[1])
    truth, from_prior = (np.linalg.solve(matrix, rows.T @ values + shift * p) for p in (0 * prior, prior))
    for way in ways:
        np.testing.assert_allclose(way, truth, rtol=1e-6, atol=1e-9)
    for way in held:
        np.testing.assert_allclose(way, from_prior, rtol=1e-6, atol=1e-9)
    for gradient in gradients:
        np.testing.assert_allclose(gradient, rows.T @ values, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("rule", "rcond"), [(normal_equations, 1e-7), (triangular, 1e-13)])
def test_pooled_steps_lead_to_the_minimiser_over_all_their_batches(rule, rcond):
    pde, u = equation(), net()
    size = parameter_count(u)
    recipe = replace(
        polish.correction(pde, Linearised.at(u, (u,))),
        sizes={"interior": size // 2, "boundary": 5},
        rules={"u": rule()},
    )
    one = jax.jit(lambda state: step(recipe, state)[0])
    start = initial(recipe, 0)
    first = one(start)
    assert first.rules["u"].rows < size
    np.testing.assert_array_equal(first.fields["u"].coefficients[0], 0.0)  # fewer rows than parameters: it waits
    third = one(one(first))

    def look(view: View) -> Any:
        return view.gram().rows(), view.gram().values()

    batches = [seen(recipe, eqx.tree_at(lambda s: s.step, start, jnp.asarray(k)), look) for k in range(3)]
    rows, values = (np.concatenate([batch[k] for batch in batches]) for k in range(2))
    best = lambda c: np.linalg.norm(values + rows @ c)
    found = np.asarray(third.fields["u"].coefficients[0])
    truth = np.linalg.lstsq(rows, -values, rcond=rcond)[0]
    assert best(found) <= 1.05 * best(truth)  # up to the damping
    assert best(found) < 0.5 * best(0 * found)


@pytest.mark.usefixtures("x64")
def test_a_triangular_factor_finds_what_normal_equations_cannot_tell_apart():
    """A solution that lies in the tangent space, but along functions that are all but dependent there."""
    u = net()
    vector, build = split(u)
    hidden = jnp.cos(1.0 + 3.0 * jnp.arange(vector.size))
    exact = lambda x: jax.jvp(lambda v: build(v)(x), (vector,), (hidden,))[1]
    pde = replace(
        equation(),
        source=lambda x: -jnp.trace(jax.hessian(exact)(x)),
        boundary=npdg.Dirichlet(exact),
        exact=exact,
    )
    errors = {}
    for rule in (normal_equations, triangular):
        recipe = replace(polish.correction(pde, Linearised.at(u, (u,))), rules={"u": rule()})
        found = jax.jit(lambda state, recipe=recipe: step(recipe, state)[0])(initial(recipe, 0)).fields["u"]
        errors[rule] = evaluation.error_meter(pde, 1000)(found).rel_l2
    assert errors[triangular] < 1e-12
    assert errors[normal_equations] > 30 * errors[triangular]


@pytest.mark.usefixtures("x64")
def test_a_second_tangent_space_has_what_is_of_second_order_in_the_correction():
    """A solution that is the same network at other parameters, which its tangent space does not hold."""
    u = net()
    vector, build = split(u)
    direction = jnp.cos(1.0 + 3.0 * jnp.arange(vector.size))
    exact = build(vector + 0.3 * direction / jnp.linalg.norm(direction))
    pde = replace(
        equation(),
        source=lambda x: -jnp.trace(jax.hessian(exact)(x)),
        boundary=npdg.Dirichlet(exact),
        exact=exact,
    )
    meter = evaluation.error_meter(pde, 1000)

    def solved(start: Linearised) -> Linearised:
        recipe = polish.correction(pde, start)
        return jax.jit(lambda state: step(recipe, state)[0])(initial(recipe, 0)).fields["u"]

    first = solved(Linearised.at(u, (u,)))
    start = polish.doubled(first)
    x = jnp.array([0.3, 0.8])
    assert start(x) == first(x)  # it begins where the first ended
    assert len(start.nets) == 2
    assert meter(solved(start)).rel_h1 < 0.05 * meter(first).rel_h1
    third = polish.next_space(start)
    ends = [split(frozen.field)[0] for frozen in start.nets]
    np.testing.assert_allclose(split(third)[0], (ends[0] + ends[1]) / 2)


@pytest.mark.usefixtures("x64")
def test_a_trusted_step_holds_to_its_last_update():
    """Momentum: what a step's samples say nothing about is a part of the last update, and nothing else."""
    pde, u = equation(), net()
    recipe = replace(polish.correction(pde, Linearised.at(u, (u,))), sizes={"interior": 8, "boundary": 2})
    rows, _ = seen(recipe, initial(recipe, 0), lambda view: (view.gram().rows(), view.gram().values()))
    unseen = np.eye(rows.shape[1]) - np.linalg.pinv(rows) @ rows
    recipe = replace(recipe, rules={"u": trusted(by_factors(), momentum=0.5)})
    start = initial(recipe, 0)
    last = jnp.cos(jnp.arange(rows.shape[1]) * 1.0)
    start = eqx.tree_at(lambda s: s.rules["u"].update, start, last)
    after = jax.jit(lambda state: step(recipe, state)[0])(start)
    update = np.asarray(after.rules["u"].update)
    assert np.linalg.norm(update) > 0
    np.testing.assert_allclose(unseen @ update, 0.5 * unseen @ np.asarray(last), atol=1e-8)


@pytest.mark.slow
def test_a_training_that_took_too_long_is_polished_all_the_same(monkeypatch):
    go_on = stages.go_on

    def slow(*arguments, **keywords):
        outcome = go_on(*arguments, **keywords)
        outcome.seconds += 100.0  # as if the machine had slept
        return outcome

    monkeypatch.setattr(stages, "go_on", slow)
    assert npdg.solve(equation(), seconds=1.0, seed=0, width=8, n_interior=100, n_boundary=20).polished


@pytest.mark.parametrize("twice", [False, True])
def test_an_interruption_in_the_polish_is_not_called_the_end_of_the_seconds(twice):
    settings = candidates("mine", 2, "npdg", "default", {"width": 8, "n_interior": 100, "n_boundary": 20})[0]
    with precision("float64"):
        trained = Outcome(initial(methods.recipe(equation(), "npdg", settings), 0), "seconds", seconds=5.0)
    hooks = Hooks(lambda record: None, should_stop=lambda: "interrupted")
    outcome = stages._polish(equation(), trained, 6.0, twice, 0, hooks)
    assert outcome.stop_reason == "interrupted"
    assert outcome.state is trained.state


@pytest.mark.slow
def test_polish_gains_and_is_saved_and_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(npdg.Solution, "error_estimate", lambda self: None)  # not what this is about
    monkeypatch.setattr(polish, "SHARE", 0.5)  # on a busy machine a fifth of so few seconds is less than one batch
    solution = npdg.solve(equation(), seconds=4.0, seed=0, width=16, n_interior=200, n_boundary=40)
    assert solution.polished
    assert isinstance(solution.u, Linearised)
    assert len(solution.u.nets) == 2
    assert solution.precision == "float64"
    trained = next(r for r in solution.history if r.errors).errors["rel_h1"]
    assert solution.error().rel_h1 < 1e-2 * trained
    x = np.array([[0.1, 0.9], [0.5, 0.5]])
    again = npdg.load(solution.save(tmp_path / "run"), equation())
    np.testing.assert_array_equal(again(x), solution(x))
    assert all(not s.polish for s in candidates("mine", 2, "npdg", "default", {"precision": "float32"}))


@pytest.mark.slow
def test_the_better_network_is_taken_and_the_first_convincing_one_at_once():
    options = candidates("mine", 2, "npdg", "default", {"n_interior": 200, "n_boundary": 40})
    assert len({(s.activation, s.depth) for s in options}) == len(options) == 3
    poor = options[0].model_copy(update={"width": 1})
    good = options[0].model_copy(update={"width": 16})
    best, tried = trial.choose_start(equation(), "npdg", [poor, good], 0, 3.0, precision)
    assert best.merit == min(t.merit for t in tried)
    assert best.settings == good
    best, tried = trial.choose_start(equation(), "npdg", [good, poor], 0, 3.0, precision)
    assert tried == [best]
    assert best.ratio <= trial.CONVINCING


def test_who_chooses_the_network_gets_no_trial():
    assert len(candidates("mine", 5, "npdg", "default", {"depth": 3})) == 1
    assert len(candidates("poisson", 10, "npdg", "paper", {})) == 1
    assert len(candidates("mine", 5, "pd-adam", "default", {})) == 1


@pytest.mark.slow
def test_certificate_is_within_a_factor_two():
    """Of an early field, and of its polished successor, neither of which the estimate compares with the exact one."""
    pde = equation(6.0)
    rough = npdg.solve(pde, steps=8, width=16, n_interior=200, n_boundary=40)
    estimate = rough.error_estimate()
    assert estimate is not None
    assert 0.5 < estimate / rough.error().rel_h1 < 2
    with precision("float64"):
        u = polish.as_float64(rough.u)
        recipe = polish.correction(pde, Linearised.at(u, (u,)))
        polished = jax.jit(lambda state: step(recipe, state)[0])(initial(recipe, 0)).fields["u"]
        error = evaluation.error_meter(pde, 5000)(polished).rel_h1
        assert error < 0.5 * rough.error().rel_h1
        assert 0.5 < error_estimate(pde, polished) / error < 2
        recipe = polish.correction(pde, polish.doubled(polished))
        twice = jax.jit(lambda state: step(recipe, state)[0])(initial(recipe, 0)).fields["u"]
        less = evaluation.error_meter(pde, 5000)(twice).rel_h1
        assert less < 0.5 * error
        assert 0.5 < error_estimate(pde, twice) / less < 2


def test_a_few_points_are_never_the_most_of_an_estimate():
    values = jnp.ones((10_000, 2)).at[7, 0].set(1e9)
    np.testing.assert_allclose(certificate._mean(values), [1.0, 1.0], rtol=1e-6)
    spread = jax.random.normal(jax.random.key(0), (10_000, 1)) ** 2
    np.testing.assert_allclose(certificate._mean(spread), jnp.mean(spread, axis=0), rtol=0.02)


@pytest.mark.slow
def test_certificate_of_a_large_network_is_by_conjugate_gradients(monkeypatch):
    monkeypatch.setattr(certificate, "DENSE", 10)
    rough = npdg.solve(equation(), steps=6, width=16, n_interior=200, n_boundary=40)
    estimate = rough.error_estimate()
    assert estimate is not None
    assert 0.5 < estimate / rough.error().rel_h1 < 2


def run_of(merits: list[float]) -> Outcome:
    history = [Record(k + 1, k + 1.0, {"residual": merit}, {}, {}, {}) for k, merit in enumerate(merits)]
    return Outcome(State({}, {}, jnp.zeros(()), jnp.zeros(())), "seconds", seconds=float(len(merits)), history=history)


def test_a_plateau_is_noticed_and_progress_is_not_called_one():
    assert "plateau" in stages._plateau(run_of([1.0] * 10 + [0.1, 0.11] * 10))
    assert stages._plateau(run_of([0.8**k for k in range(30)])) == ""
    assert stages._plateau(run_of([1.0, 1.0, 1.0])) == ""  # too few steps to tell


def test_a_budget_below_one_step_is_said():
    assert "one step took 1.0 s" in stages._short(run_of([1.0]), 0.1)
    assert stages._short(run_of([1.0, 1.0]), 0.1) == ""


def test_a_network_too_large_for_the_memory_is_refused():
    with pytest.raises(npdg.InputError, match="solver=cg"):
        npdg.solve(equation(), steps=1, width=65536)


def test_a_second_tangent_space_is_for_runs_that_have_the_time_for_its_rows():
    middle, large = MLP(10, 32, 3, key=jax.random.key(0)), MLP(20, 128, 2, key=jax.random.key(0))
    enough = polish.ENOUGH * (2 * parameter_count(middle)) ** 3 / (polish.SPEED / 2)
    assert not polish.twice(0.9 * enough / polish.SHARE, middle)
    assert polish.twice(1.1 * enough / polish.SHARE, middle)
    assert polish.seconds_of(1.1 * enough / polish.SHARE, middle) == pytest.approx(1.1 * enough)
    one = parameter_count(middle) ** 3 / (polish.SPEED / 2)
    assert polish.seconds_of(20 * one, middle) == pytest.approx(polish.ENOUGH * one)
    assert not polish.twice(1e6, large)


def test_a_batch_of_the_polish_has_no_more_rows_than_its_seconds_are_enough_for():
    u = MLP(20, 128, 2, key=jax.random.key(0))
    size = parameter_count(u)
    one = size**3 / (polish.SPEED / 2)
    sizes = polish.correction(equation(), Linearised.at(u, (u,)), per_parameter=polish.points(3 * one, u)).sizes
    assert sizes["interior"] + 2 * sizes["boundary"] == pytest.approx(3 * size, rel=1e-3)  # a trace is two rows
    assert polish.points(0.1 * one, u) == polish.FEWEST / 2  # what is begun has its fewest rows
    assert polish.points(1e6, u) == polish.POINTS


def test_a_run_that_has_few_seconds_left_is_polished_with_few_rows(monkeypatch):
    asked = []

    def watched(pde, before, start, seed, hooks, how, **until):
        asked.append((how["per_parameter"], until))
        return before

    monkeypatch.setattr(stages, "_corrected", watched)
    u = MLP(10, 64, 2, key=jax.random.key(0))
    trained = replace(run_of([1.0] * 8), state=State({"u": u}, {}, jnp.zeros(()), jnp.zeros(())))
    one = parameter_count(u) ** 3 / (polish.SPEED / 2)
    stages._polish(equation(), trained, 8.0 + 5 * one, False, 0, Hooks(on_record=lambda record: None))
    ((points, until),) = asked
    assert points == pytest.approx(5 / 2)
    assert until == {"seconds": 8.0 + 5 * one}


def test_a_second_space_is_not_begun_when_the_first_batch_took_all_the_seconds(monkeypatch):
    asked = []

    def slow(pde, before, start, seed, hooks, how, **until):
        asked.append(until)
        return replace(before, seconds=before.seconds + 1.0)

    monkeypatch.setattr(stages, "_corrected", slow)
    trained = replace(run_of([1.0] * 8), state=State({"u": net()}, {}, jnp.zeros(()), jnp.zeros(())))
    hooks = Hooks(on_record=lambda record: None)
    assert stages._polish(equation(), trained, 8.5, True, 0, hooks).detail == ""  # nothing is said to be left out
    assert asked == [{"steps": 1}]
    stages._polish(equation(), trained, 9.5, True, 0, hooks)
    assert asked[1:] == [{"steps": 1}, {"seconds": 9.5}]


def test_the_polish_gets_a_share_or_what_its_rows_take_and_nothing_if_that_is_too_much():
    small, large = net(), MLP(50, 128, 2, key=jax.random.key(0))
    assert polish.seconds_of(10.0, small) == 2.0
    assert polish.seconds_of(1000.0, small) == 40.0
    row_each = parameter_count(large) ** 3 / polish.SPEED
    assert polish.seconds_of(1000.0, large) == pytest.approx(polish.ENOUGH * row_each)
    assert polish.seconds_of(8 * row_each, large) == pytest.approx(4 * row_each)  # half of the seconds
    assert polish.seconds_of(3.9 * row_each, large) == 0.0
    assert polish.seconds_of(1e6, MLP(100, 256, 2, key=jax.random.key(0))) == 0.0

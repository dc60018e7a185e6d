"""Update rules: directions against dense algebra, pools of all batches, momentum, and the guard of u."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small import equation, net

import npdg
from npdg.fields.base import parameter_count, split
from npdg.fields.mlp import MLP
from npdg.fields.tangent import Linearised
from npdg.linalg.cg import cg
from npdg.linalg.gram import Gram
from npdg.linalg.lsmr import lsmr
from npdg.results.error import error_meter
from npdg.rules.base import Move, Rule, View
from npdg.rules.directions import by_factors, by_products, by_rows
from npdg.rules.guarded import SMALLEST_STEP, guarded
from npdg.rules.levenberg import trusted
from npdg.rules.pooled import normal_equations, triangular
from npdg.training.step import Recipe, State, initial, step
from npdg.training.tangent_space import correction


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
    recipe = correction(equation(), Linearised.at(net(), (net(),)))
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
@pytest.mark.parametrize(
    ("rule", "rcond"), [pytest.param(normal_equations, 1e-7, marks=pytest.mark.slow), (triangular, 1e-13)]
)
def test_pooled_steps_lead_to_the_minimiser_over_all_their_batches(rule, rcond):
    pde, u = equation(), net()
    size = parameter_count(u)
    recipe = replace(
        correction(pde, Linearised.at(u, (u,))),
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


@pytest.mark.slow
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
        recipe = replace(correction(pde, Linearised.at(u, (u,))), rules={"u": rule()})
        found = jax.jit(lambda state, recipe=recipe: step(recipe, state)[0])(initial(recipe, 0)).fields["u"]
        errors[rule] = error_meter(pde, 1000)(found).rel_l2
    assert errors[triangular] < 1e-12
    assert errors[normal_equations] > 30 * errors[triangular]


@pytest.mark.usefixtures("x64")
def test_a_trusted_step_holds_to_its_last_update():
    """Momentum: what a step's samples say nothing about is a part of the last update, and nothing else."""
    pde, u = equation(), net()
    recipe = replace(correction(pde, Linearised.at(u, (u,))), sizes={"interior": 8, "boundary": 2})
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


def gram_like(size: int) -> Gram:
    """The identity as a Gram matrix."""
    return Gram(size, lambda v: [v], lambda rows: rows[0], lambda: jnp.eye(size), lambda: jnp.zeros(size))


class Watched:
    """A guarded player whose gradient is all ones and whose metric is the identity."""

    def __init__(self, tau: float = 1.0) -> None:
        self.rule = guarded(by_products(cg(1e-10, 50)), tau=tau, damping=1e-3)
        self.field = MLP(1, 2, 2, key=jax.random.key(0))
        self.vector, self.build = split(self.field)

    def view(self, at: jax.Array, supremum: Any) -> View:
        """What the rule sees where the supremum over the duals is so large."""
        ones, size = jnp.ones_like(self.vector), self.vector.size
        value = lambda field: jnp.zeros(())
        return View(self.build(at), ones, -1, value, lambda **_: gram_like(size), lambda: jnp.asarray(supremum))


@pytest.mark.usefixtures("x64")
def test_guard_takes_a_bad_step_back_and_damps_more():
    player = Watched()
    rule, vector = player.rule, player.vector
    state = rule.init(player.field)
    moved, state, _ = rule.step(player.view(vector, 1.0), state)
    first = split(moved)[0]
    np.testing.assert_allclose(first, vector - 1 / 1.001, rtol=1e-9)
    assert state.damping == pytest.approx(0.7e-3)
    for bad in (5.0, jnp.nan, jnp.inf):
        back, after, move = rule.step(player.view(first, bad), state)
        np.testing.assert_array_equal(split(back)[0], vector)
        assert after.damping == pytest.approx(7e-3)
        assert after.tau == pytest.approx(0.5)
        assert after.supremum == 1.0
        assert not move.stuck


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("bad", [5.0, jnp.nan])
def test_a_guarded_player_that_can_only_retreat_says_that_it_is_stuck(bad):
    player = Watched()
    step = jax.jit(lambda at, supremum, state: player.rule.step(player.view(at, supremum), state))
    moved, state, move = step(player.vector, 1.0, player.rule.init(player.field))
    assert not move.stuck
    for number in range(1, 30):
        moved, state, move = step(split(moved)[0], bad, state)
        np.testing.assert_array_equal(split(moved)[0], player.vector)
        assert all(np.isfinite(leaf) for leaf in move)  # so that it is not taken for a fault
        assert state.tau == pytest.approx(0.5**number)
        assert bool(move.stuck) == (0.5**number < SMALLEST_STEP)
    assert move.stuck
    assert state.damping == pytest.approx(0.1)
    # As soon as the supremum is what it was, the player moves again.
    moved, state, move = step(split(moved)[0], 1.0, state)
    assert not move.stuck
    assert np.all(split(moved)[0] < player.vector)

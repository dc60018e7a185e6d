"""The public interface: solve, look, save, load."""

import json
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import npdg
from npdg import grad
from npdg.driver import make_plan

SMALL: dict[str, Any] = {"width": 24, "n_interior": 300, "n_boundary": 60}
FLAT: dict[str, Any] = {**SMALL, "psi_width": 16, "tau_u": 1e30, "tau_phi": 1e30, "tau_psi": 1e30}


def equation(dim: int = 2) -> npdg.PDE:
    exact = lambda x: jnp.sum(x**2)
    return npdg.PDE(
        npdg.Ball(1.0, dim=dim),
        flux=lambda u, x: (1 + x[0] ** 2) * grad(u)(x),
        source=lambda x: -(2 * dim * (1 + x[0] ** 2) + 4 * x[0] ** 2),
        boundary=npdg.Dirichlet(exact),
        exact=exact,
    )


@pytest.fixture(scope="module")
def solution() -> npdg.Solution:
    return npdg.solve(equation(), steps=25, seed=1, **SMALL)


def test_a_variable_coefficient_on_a_disc_is_solved(solution):
    assert solution.stop_reason == "steps"
    assert solution.steps == 25
    assert not solution.polished  # so many steps and nothing else
    assert solution.error().rel_l2 < 1e-3
    assert solution.error().rel_h1 < 1e-2


def test_a_one_dimensional_equation_is_solved():
    exact = lambda x: jnp.sin(3 * x[0])
    pde = npdg.PDE(
        npdg.Box(0.0, 1.0, dim=1),
        flux=lambda u, x: grad(u)(x),
        reaction=lambda u, x: u(x),
        source=lambda x: 10 * exact(x),
        boundary=npdg.Dirichlet(exact),
        exact=exact,
    )
    solution = npdg.solve(pde, steps=60, **SMALL)
    assert solution.error().rel_l2 < 1e-5
    solution.plot()


def test_values_and_gradients_are_arrays_in_the_runs_precision(solution):
    x = np.array([[0.1, 0.2], [0.3, -0.4], [0.0, 0.0]])
    assert solution(x).shape == (3,)
    assert solution(x).dtype == np.float64
    assert solution.gradient(x).shape == (3, 2)
    np.testing.assert_allclose(solution(x[0]), solution(x)[0], rtol=1e-12)
    difference = (solution(x + [1e-6, 0]) - solution(x - [1e-6, 0])) / 2e-6
    np.testing.assert_allclose(solution.gradient(x)[:, 0], difference, rtol=1e-5, atol=1e-8)
    with pytest.raises(npdg.InputError, match=r"x: shape \(3,\)"):
        solution(np.zeros(3))


def test_64_bit_mode_is_left_as_it_was(solution):
    assert not jax.config.read("jax_enable_x64")
    assert jnp.ones(()).dtype == jnp.float32


def test_float32_is_float32():
    short = npdg.solve(equation(), steps=1, precision="float32", **SMALL)
    assert {leaf.dtype for leaf in jax.tree.leaves(short.u)} == {np.dtype("float32")}


def test_save_and_load_are_a_round_trip(solution, tmp_path):
    path = solution.save(tmp_path / "disc")
    with pytest.raises(npdg.InputError, match="your own equation"):
        npdg.load(path)
    again = npdg.load(path, pde=equation())
    x = np.random.default_rng(0).uniform(-0.5, 0.5, (7, 2))
    np.testing.assert_array_equal(again(x), solution(x))
    assert again.settings == solution.settings
    assert again.history[-1] == solution.history[-1]._replace(seconds=again.history[-1].seconds)
    with pytest.raises(npdg.InputError, match="never overwritten"):
        solution.save(path)
    with pytest.raises(npdg.InputError, match="holds no saved solution"):
        npdg.load(tmp_path)


def test_every_reason_to_stop_has_advice_and_it_is_saved(solution, tmp_path):
    for reason in npdg.StopReason:
        assert reason.advice
        assert "\n" not in reason.advice
        assert replace(solution, stop_reason=reason).advice[0] == reason.advice
    saved = json.loads((solution.save(tmp_path / "saved") / "result.json").read_text())
    assert (saved["stop_reason"], saved["advice"]) == ("steps", [npdg.StopReason.STEPS.advice])


def test_a_method_as_a_value_is_the_same_as_by_its_name(solution):
    other = npdg.solve(equation(), method=npdg.NPDG(**SMALL), steps=25, seed=1)
    x = np.random.default_rng(0).uniform(-0.5, 0.5, (7, 2))
    np.testing.assert_array_equal(other(x), solution(x))
    assert other.settings == solution.settings
    assert (other.method, other.preset) == (solution.method, solution.preset)


@pytest.mark.parametrize("more", [{"width": 24}, {"network.width": 24}, {"preset": "paper"}, {"network": jnp.sum}])
def test_a_method_as_a_value_takes_no_settings_beside_it(more):
    with pytest.raises(
        npdg.InputError, match="given as a value; give its preset, network and settings to it"
    ) as caught:
        npdg.solve(equation(), npdg.NPDG(width=24), steps=1, **more)
    assert "\n" not in str(caught.value)
    with pytest.raises(npdg.InputError, match="did you mean 'width'"):
        npdg.NPDG(widht=24)


def test_nested_names_are_the_same_as_flat_ones(solution):
    nested = {"network.width": 24, "samples.interior": 300, "samples.boundary": 60}
    plan = make_plan(equation(), "npdg", npdg.Budget(steps=25), 1, **nested)
    assert plan.settings == solution.settings
    assert plan.settings["width"] == plan.settings.network.width == 24
    mistakes: tuple[tuple[dict[str, Any], str], ...] = (
        ({"network.widht": 24}, "did you mean 'network.width'"),
        ({"netwrk.width": 24}, "did you mean 'network.width'"),
        ({"solver.width": 24}, "setting: 'solver.width' is unknown"),
        ({"network.width": 0}, "width: 0 is not allowed"),
    )
    for wrong, says in mistakes:
        with pytest.raises(npdg.InputError, match=says) as caught:
            npdg.solve(equation(), steps=1, **wrong)
        assert "\n" not in str(caught.value)


class Ridges(eqx.Module):
    """A network of the user's own: Σ b tanh(a·x + c)."""

    a: jax.Array
    b: jax.Array
    c: jax.Array

    def __init__(self, key: jax.Array, units: int = 12):
        keys = jax.random.split(key, 3)
        self.a, self.c = jax.random.normal(keys[0], (units, 2)), jax.random.normal(keys[2], (units,))
        self.b = jax.random.normal(keys[1], (units,)) / units

    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.vdot(self.b, jnp.tanh(self.a @ x + self.c))


def test_a_network_of_ones_own_is_trained_saved_and_read_back(tmp_path):
    mine = Ridges(jax.random.key(0))
    solution = npdg.solve(equation(), network=mine, steps=30, n_interior=100, n_boundary=30)
    assert isinstance(solution.u, Ridges)
    assert solution.history[0].errors["rel_l2"] > 0.3
    assert solution.error().rel_l2 < 1e-2
    assert mine.a.dtype == jnp.float32  # what the user gave is not changed
    path = solution.save(tmp_path / "own")
    again = npdg.load(path, pde=equation(), network=Ridges(jax.random.key(5)))  # any of the same shape
    x = np.random.default_rng(0).uniform(-0.5, 0.5, (7, 2))
    np.testing.assert_array_equal(again(x), solution(x))
    for other in (None, Ridges(jax.random.key(0), 13)):
        with pytest.raises(npdg.InputError, match=r"does not fit its config\.toml"):
            npdg.load(path, pde=equation(), network=other)


@pytest.mark.slow
def test_a_network_may_have_parts_that_are_no_arrays(tmp_path):
    """Such as the activation of equinox's own networks."""
    mine = eqx.nn.MLP(2, "scalar", 8, 1, activation=jnp.tanh, key=jax.random.key(1))
    solution = npdg.solve(equation(), npdg.NPDG(network=mine, n_interior=100, n_boundary=30), steps=3)
    assert solution.history[-1].errors["rel_l2"] < solution.history[0].errors["rel_l2"]
    again = npdg.load(solution.save(tmp_path / "own"), pde=equation(), network=mine)
    np.testing.assert_array_equal(again(np.full((1, 2), 0.2)), solution(np.full((1, 2), 0.2)))


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (eqx.nn.MLP(2, 3, 8, 1, key=jax.random.key(0)), r"network: returned shape \(3,\)"),
        (eqx.nn.MLP(2, 1, 8, 1, key=jax.random.key(0)), r"network: returned shape \(1,\)"),
        (eqx.nn.MLP(5, "scalar", 8, 1, key=jax.random.key(0)), "network: calling it at one point"),
        (3, "network: calling it at one point"),
        (jnp.sum, "network: it has no numbers to train"),
    ],
    ids=["three numbers", "a vector of one", "another dimension", "no function", "nothing to train"],
)
def test_a_network_that_cannot_be_u_is_refused_in_one_sentence(network, message):
    with pytest.raises(npdg.InputError, match=message) as caught:
        npdg.solve(equation(), network=network, steps=1)
    assert "\n" not in str(caught.value)


def test_an_equation_of_ones_own_is_not_taken_for_one_of_the_catalogue_by_its_name(solution, tmp_path):
    mine = equation().named("poisson")
    path = replace(solution, problem=mine).save(tmp_path / "mine")
    with pytest.raises(npdg.InputError, match="'poisson' is your own equation"):
        npdg.load(path)
    x = np.full((1, 2), 0.2)
    np.testing.assert_array_equal(npdg.load(path, pde=mine)(x), solution(x))
    with pytest.raises(npdg.InputError, match="not allowed for poisson, which is not in the paper"):
        npdg.solve(mine, preset="paper", steps=1)


def test_pictures_are_drawn(solution, tmp_path):
    figure = solution.plot(tmp_path / "slice.png")
    top = max(mesh.get_clim()[1] for axes in figure.axes[:2] for mesh in axes.collections)
    assert top < 1.05  # u* = |x|² on the unit disc: what u is outside of it must not set the colours
    solution.plot_history(tmp_path / "history.png")
    assert (tmp_path / "slice.png").stat().st_size > 5000
    assert (tmp_path / "history.png").stat().st_size > 5000


def test_callbacks_see_every_record():
    seen = []
    callback = lambda step, record: seen.append((step, record))
    solution = npdg.solve(equation(), steps=5, callbacks=[callback], **SMALL)
    assert seen[-1] == (5, solution.history[-1])
    assert set(seen[-1][1].errors) == {"rel_l2", "rel_h1"}
    assert set(seen[-1][1].terms) == {"residual", "boundary"}


def test_divergence_is_a_warning_and_a_stop_reason():
    with pytest.warns(RuntimeWarning, match="diverged"):
        solution = npdg.solve(equation(), "npdg-flat", steps=50, **FLAT)
    assert solution.stop_reason == "diverged"
    assert np.all(np.isfinite(solution(np.zeros((1, 2)))))


def test_equations_without_an_exact_solution_run_and_cannot_be_compared(tmp_path):
    pde = npdg.PDE(npdg.Box(0.0, 1.0, dim=2), flux=lambda u, x: grad(u)(x), source=lambda x: jnp.asarray(1))
    solution = npdg.solve(pde, steps=3, **SMALL)
    with pytest.raises(npdg.InputError, match="exact"):
        solution.error()
    solution.plot(tmp_path / "slice.png")
    solution.plot_history(tmp_path / "history.png")
    assert len(npdg.load(solution.save(tmp_path / "saved"), pde=pde).history) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "nppdg"}, "did you mean 'npdg'"),
        ({"preset": "papers"}, "did you mean 'paper'"),
        ({"preset": "paper"}, "not in the paper"),
        ({"seconds": 0}, "seconds"),
        ({"seconds": float("nan")}, "seconds"),
        ({"steps": 0}, "steps"),
        ({"steps": 2.5}, "steps"),
        ({"seed": -1}, "seed"),
        ({"widht": 3}, "did you mean 'width'"),
        ({"width": 0}, "width: 0 is not allowed"),
        ({"tau_u": float("inf")}, "tau_u"),
        ({"activation": "prelu"}, "second derivatives"),
        ({"damping": 0}, "damping"),
        ({"method": "pd-adam", "dual": "exact"}, "dual"),
        ({"precision": "float16"}, "float32 or float64"),
    ],
)
def test_bad_arguments_are_one_sentence(arguments, message):
    with pytest.raises(npdg.InputError, match=message) as caught:
        npdg.solve(equation(), **arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"flux": lambda u, x: u(x)}, r"flux: returned shape \(\)"),
        ({"source": lambda x: x}, r"source: returned shape \(2,\)"),
        ({"source": lambda x: x[5].foo}, "source: calling it at one point"),
        ({"reaction": lambda u, x: grad(u)(x)}, "reaction: returned shape"),
        ({"boundary": npdg.Dirichlet(lambda x: x)}, "boundary: returned shape"),
        ({"boundary": 0.0}, "boundary: 0.0 is not allowed"),
        ({"exact": lambda x: x}, "exact: returned shape"),
        ({"exact": lambda x: 1j * x[0]}, "exact: returned complex64"),
        ({"domain": "cube"}, "is not a domain"),
    ],
)
def test_equations_of_the_wrong_shape_are_refused_when_written(change, message):
    good = {"domain": npdg.Box(0.0, 1.0, dim=2), "flux": lambda u, x: grad(u)(x)}
    with pytest.raises(npdg.InputError, match=message):
        npdg.PDE(**{**good, **change})

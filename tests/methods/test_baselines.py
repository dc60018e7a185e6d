"""The methods the paper compares with: their functionals against formulas, their optimizers against references."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from equations import EXACT, equation, fields_of
from scipy.optimize import minimize

import npdg
from npdg import grad
from npdg.catalogue import CARDS
from npdg.fields.base import split
from npdg.formulations.inf_sup import inf_sup
from npdg.formulations.metrics import metric as metric_of
from npdg.formulations.ritz import energy_nodes, potential, ritz
from npdg.formulations.weak_adversarial import weak_adversarial
from npdg.methods.registry import make_method
from npdg.rules.optax import adam, lbfgs
from npdg.saddle.gram import gram
from npdg.saddle.saddle import Integral, Player, Saddle
from npdg.training.loop import advance
from npdg.training.progress import Events, Limits, Progress
from npdg.training.step import Recipe, initial, step

SIZES = {"interior": 9, "boundary": 7}


@pytest.mark.usefixtures("x64")
def test_wan_is_the_ratio_of_table_2():
    pde, lam = equation(), 3.0
    saddle, fields = weak_adversarial(pde, lam=lam), fields_of(pde)
    samples = saddle.sample(jax.random.key(1), SIZES)
    x, y = samples["interior"].x, samples["boundary"].x
    u, phi = fields["u"], fields["phi"]
    weak = jax.jit(lambda p: jnp.vdot(pde.flux(u, p), grad(phi)(p)) + (u(p) ** 3 - pde.source(p)) * phi(p))
    pairing = np.mean([float(weak(p)) for p in x])
    norm = np.mean([float(value) ** 2 for value in map(jax.jit(lambda p: phi(p)), x)])
    boundary = np.mean([float(value) ** 2 for value in map(jax.jit(lambda p: u(p) - EXACT(p)), y)])
    expected = np.log(pairing**2) - np.log(norm) + lam * boundary
    np.testing.assert_allclose(jax.jit(lambda s: saddle.value(fields, s, "u"))(samples), expected, rtol=1e-12)
    # A longer test function is not a better one.
    longer = {**fields, "phi": lambda p: 7 * phi(p)}
    np.testing.assert_allclose(jax.jit(lambda s: saddle.value(longer, s, "phi"))(samples), expected, rtol=1e-12)


@pytest.mark.usefixtures("x64")
def test_energy_is_found_from_the_equation_alone():
    """−div((2 + x₁)∇u) + u³ = f is the derivative of ½(2 + x₁)|∇u|² + u⁴/4 − fu."""
    pde = equation()
    energy, x = potential(pde, energy_nodes(pde)), jnp.array([0.3, 0.6])
    u = lambda y: jnp.sin(y[0] + 2 * y[1])
    slope = grad(u)(x)
    expected = (2 + x[0]) * jnp.vdot(slope, slope) / 2 + u(x) ** 4 / 4 - pde.source(x) * u(x)
    np.testing.assert_allclose(energy(u, x), expected, rtol=1e-12)


@pytest.mark.usefixtures("x64")
def test_the_gradient_of_the_energy_is_the_weak_form():
    pde = equation()
    saddle, fields = ritz(pde, energy_nodes(pde), lam=3.0), fields_of(pde)
    samples = saddle.sample(jax.random.key(1), SIZES)
    vector, build = split(fields["u"])
    slope = jax.jit(jax.grad(lambda v: saddle.value({"u": build(v)}, samples, "u")))(vector)
    direction = jax.random.normal(jax.random.key(2), vector.shape)
    moved = lambda p: jax.jvp(lambda v: build(v)(p), (vector,), (direction,))[1]
    u = fields["u"]
    weak = jax.jit(lambda p: jnp.vdot(pde.flux(u, p), grad(moved)(p)) + pde.lower_order(u, p) * moved(p))
    penalty = jax.jit(lambda p: 6.0 * (u(p) - EXACT(p)) * moved(p))
    expected = np.mean([weak(p) for p in samples["interior"].x]) + np.mean([penalty(p) for p in samples["boundary"].x])
    np.testing.assert_allclose(jnp.vdot(slope, direction), expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("flux", "reaction"),
    [
        (lambda u, x: grad(u)(x), lambda u, x: jnp.vdot(grad(u)(x), grad(u)(x)) / 2),
        (lambda u, x: grad(u)(x), lambda u, x: grad(u)(x)[0]),
        (lambda u, x: jnp.array([[1.0, 0.5], [-0.5, 1.0]]) @ grad(u)(x), None),
    ],
    ids=["gradient squared", "convection", "flux that is not symmetric"],
)
def test_equations_without_an_energy_are_refused(flux, reaction):
    pde = npdg.PDE(npdg.Box(0.0, 1.0, dim=2), flux=flux, reaction=reaction)
    with pytest.raises(npdg.InputError, match="not the derivative of an energy"):
        energy_nodes(pde)
    with pytest.raises(npdg.InputError, match="not the derivative of an energy"):
        npdg.solve(pde, "deep-ritz", steps=1)


@pytest.mark.usefixtures("x64")
def test_one_node_is_enough_for_a_linear_equation():
    pde = CARDS["varcoeff"].build(4)
    x, u = jnp.array([0.1, -0.4, 0.5, 0.9]), lambda y: jnp.cos(jnp.sum(y))
    np.testing.assert_allclose(potential(pde, 1)(u, x), potential(pde, 8)(u, x), rtol=1e-12)


class Quadratic(eqx.Module):
    """A field whose only purpose is to carry parameters."""

    v: Any


def descent(function, start, rule, **keywords) -> Recipe:
    """u's parameters descend a function, whatever the samples."""
    saddle = Saddle(
        measures={"interior": npdg.Box(0.0, 1.0, dim=1).interior},
        players=(Player("u", -1, ()),),
        integrals=(Integral("value", "interior", lambda f, p: function(f["u"].v) + 0 * p.x[0]),),
    )
    return Recipe(lambda data: saddle, lambda key: {"u": Quadratic(start)}, {"u": rule}, {"interior": 1}, **keywords)


ROSENBROCK = lambda v: 100 * (v[1] - v[0] ** 2) ** 2 + (1 - v[0]) ** 2


@pytest.mark.usefixtures("x64")
def test_lbfgs_solves_rosenbrock_in_about_scipys_number_of_steps_and_then_says_it_is_stuck():
    start = jnp.array([-1.2, 1.0])
    theirs = minimize(ROSENBROCK, start, jac=jax.grad(ROSENBROCK), method="L-BFGS-B")
    problem = descent(ROSENBROCK, start, lbfgs(), resample=False)
    found = advance(Progress(initial(problem, 0), problem, None), Limits(steps=500), Events())
    np.testing.assert_allclose(found.state.fields["u"].v, [1, 1], atol=1e-8)
    assert found.stop == "stalled"
    assert "no lower value" in found.detail
    assert found.history[-1].step < 2 * theirs.nit


@pytest.mark.usefixtures("x64")
def test_adam_with_decay_is_optaxs():
    start, decay = jnp.array([-1.2, 1.0]), 0.1
    problem = descent(ROSENBROCK, start, adam(1e-2, decay))
    state = initial(problem, 0)
    for _ in range(5):
        state, _ = step(problem, state)
    optimizer = optax.adam(lambda k: 1e-2 / (1 + decay * k))
    v, memory = start, optimizer.init(start)
    for _ in range(5):
        update, memory = optimizer.update(jax.grad(ROSENBROCK)(v), memory)
        v = optax.apply_updates(v, update)
    np.testing.assert_allclose(state.fields["u"].v, jnp.asarray(v), rtol=1e-12)


@pytest.mark.slow
def test_lbfgs_sees_the_same_samples_in_every_step_and_lowers_its_loss_in_each():
    pde = equation()
    solution = npdg.solve(
        pde, "pinn-lbfgs", steps=12, width=8, depth=3, n_interior=60, n_boundary=30, precision="float64"
    )
    losses = [sum(record.terms.values()) for record in solution.history]
    assert all(later < earlier for earlier, later in zip(losses, losses[1:], strict=False))


@pytest.mark.parametrize("method", ["pinn", "natural-pinn", "deep-ritz", "wan"])
def test_baselines_learn(method):
    pde = npdg.PDE(
        npdg.Box(0.0, 1.0, dim=1),
        flux=lambda u, x: grad(u)(x),
        source=lambda x: jnp.pi**2 * jnp.sin(jnp.pi * x[0]),
        exact=lambda x: jnp.sin(jnp.pi * x[0]),
    )
    steps = 60 if method == "natural-pinn" else 1500
    solution = npdg.solve(pde, method, steps=steps, width=16, depth=2, n_interior=100, n_boundary=20, lam=100.0)
    assert solution.error(2000).rel_l2 < {"natural-pinn": 1e-3, "wan": 0.3}.get(method, 0.1)


def test_unit_steps_of_lbfgs_may_diverge_and_say_so():
    with pytest.warns(RuntimeWarning, match="diverged"):
        solution = npdg.solve(
            equation(),
            "pinn-lbfgs",
            steps=400,
            width=8,
            depth=3,
            n_interior=60,
            n_boundary=30,
            line_search=False,
            tau_u=30.0,
        )
    assert solution.stop_reason == "diverged"
    assert np.all(np.isfinite(solution(np.zeros((1, 2)))))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("metric", ["identity", "operator"])
def test_gram_matrices_of_the_ablations(metric):
    """M_d = Id: rows ∂φ; M_p = Id or L: rows ∂u or ∂(residual)."""
    pde = equation()
    saddle, fields = inf_sup(pde, metric=metric, pairing="strong"), fields_of(pde)
    samples = saddle.sample(jax.random.key(1), SIZES)
    measured, points = metric_of(metric), samples["interior"].x
    for player, part in zip(saddle.players[::2], (measured.dual, measured.primal), strict=True):
        vector, build = split(fields[player.name])
        values = lambda v, p=part, b=build: jax.vmap(lambda x: p(pde, fields["u"], b(v), x)[0])(points)
        jacobian = jax.jit(jax.jacobian(values))(vector)
        expected = jacobian.T @ jacobian / len(points)
        if player.name == "u":
            trace = jax.jit(jax.jacobian(lambda v, b=build: jax.vmap(b(v))(samples["boundary"].x)))(vector)
            expected += 10.0 * trace.T @ trace / len(samples["boundary"].x)
        dense = jax.jit(lambda p=player: gram(p, fields, samples).dense())()
        np.testing.assert_allclose(dense, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("problem", [name for name, card in CARDS.items() if card.kind == "equation"])
@pytest.mark.parametrize("method", ["pinn", "pinn-lbfgs", "natural-pinn", "wan", "pd-adam", "npdg-flat"])
def test_every_method_takes_every_equation(problem, method):
    pde = CARDS[problem].build(4)
    made = make_method("equation", method)
    assert made.recipe(pde, made.candidates(pde)[0]).rules["u"] is not None

"""Marching in time: implicit Euler, Neumann conditions, metrics of the two regimes, and what a march promises."""

import json
import subprocess
import sys
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from heat import heat  # benchmarks/heat.py

import npdg
from npdg.calculus import grad, laplacian
from npdg.catalogue import find
from npdg.cli.app import _guarded, app
from npdg.formulations.inf_sup import inf_sup, natural_condition
from npdg.formulations.metrics import metric
from npdg.measures.points import Points
from npdg.methods.march import March
from npdg.training import loop

EPSILON = 0.1


@pytest.fixture(scope="module")
def short():
    """A march of a few steps, whose compilations are counted."""
    compiled = []
    original = loop._compile

    def counted(*arguments):
        compiled.append(arguments)
        return original(*arguments)

    loop._compile = counted
    sizes = []
    try:
        evolution = find("allen-cahn-1d").build(1, until=0.4, time_steps=8)
        trajectory = npdg.march(
            evolution,
            times=[0.0, 0.2, 0.4],
            steps=30,
            width=24,
            n_interior=400,
            callbacks=[lambda number, step: sizes.append(sum(array.nbytes for array in jax.live_arrays()))],
        )
    finally:
        loop._compile = original
    return trajectory, len(compiled), sizes


def test_a_march_is_compiled_once_beside_its_fit(short):
    assert short[1] == 2


def test_memory_is_flat(short):
    """After the first step, only the kept solutions add anything."""
    trajectory, _, sizes = short
    kept = 3 * sum(leaf.nbytes for leaf in jax.tree.leaves(trajectory.fields[0]))
    assert sizes[-1] - sizes[2] <= 2 * kept


def test_accuracy_and_reports(short):
    trajectory = short[0]
    assert trajectory.stop_reason == "done"
    assert max(trajectory.rmse.values()) < 2e-3
    assert [step.number for step in trajectory.steps] == list(range(9))
    assert {step.stop_reason for step in trajectory.steps} <= {"tolerance", "stalled", "steps"}
    for step in trajectory.steps:
        assert (step.residual <= trajectory.settings.march.tolerance) == (step.stop_reason == "tolerance")


def test_energy_falls(short):
    energies = list(short[0].energy.values())
    assert len(energies) == 9
    assert all(later <= earlier + 1e-4 for earlier, later in zip(energies[:-1], energies[1:], strict=True))


def test_calls_between_and_at_times(short):
    trajectory = short[0]
    x = np.linspace(0, 2, 5)[:, None]
    middle = trajectory(0.1, x)
    np.testing.assert_allclose(middle, (trajectory(0.0, x) + trajectory(0.2, x)) / 2, rtol=1e-9)
    assert trajectory(0.4, x[0]).shape == ()
    with pytest.raises(npdg.InputError, match=r"t: 0\.5 is not allowed"):
        trajectory(0.5, x)
    with pytest.raises(npdg.InputError, match="shape"):
        trajectory(0.1, np.zeros((3, 2)))


def test_saved_and_loaded(short, tmp_path):
    trajectory = short[0]
    path = trajectory.save(tmp_path / "march")
    again = npdg.load(path)
    x = np.linspace(0, 2, 7)[:, None]
    np.testing.assert_array_equal(again(0.2, x), trajectory(0.2, x))
    assert again.rmse == trajectory.rmse
    assert again.evolution.steps == 8
    trajectory.plot(tmp_path / "march.png")
    assert (tmp_path / "march.png").stat().st_size > 5000


@pytest.mark.slow
def test_heat_is_first_order_in_time():
    """The error at the end is that of implicit Euler: |(1 + 1/n)^−n − 1/e| of the exact shape, which halves with h.

    benchmarks/heat.py has the same in two and five dimensions.
    """
    errors = []
    for steps in (2, 4):
        trajectory = npdg.march(heat(1, steps), steps=20, width=20, n_interior=300, tolerance=1e-3)
        assert trajectory.steps[0].rmse is not None
        assert trajectory.steps[0].rmse < 2e-3
        errors.append(trajectory.rmse[trajectory.times[-1]])
    expected = [abs((1 + 1 / n) ** -n - np.exp(-1)) * 2**-0.5 for n in (2, 4)]
    np.testing.assert_allclose(errors, expected, rtol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [2, 4])
def test_heat_by_deep_ritz_has_the_error_of_implicit_euler(steps):
    """The energy of every step is minimised; what is left is the error of the step, which halves with h."""
    many = {"steps": 200, "patience": 200, "tau_u": 5e-3, "rate_decay": 0.02}
    trajectory = npdg.march(heat(1, steps), "deep-ritz", width=10, n_interior=2000, tolerance=1e-3, **many)
    assert (trajectory.stop_reason, trajectory.method) == ("done", "deep-ritz")
    assert all(np.isfinite(step.residual) for step in trajectory.steps)
    expected = abs((1 + 1 / steps) ** -steps - np.exp(-1)) * 2**-0.5
    np.testing.assert_allclose(trajectory.rmse[trajectory.times[-1]], expected, rtol=0.15)


@pytest.mark.slow
def test_a_march_by_deep_ritz_from_the_command_line(tmp_path, capsys):
    sizes = ["width=6", "n_interior=30", "time_steps=2", "until=0.02"]
    words = ["--method", "deep-ritz", "--steps", "4", *(part for size in sizes for part in ("--set", size))]
    command = ["solve", "allen-cahn-1d", *words, "--out", str(tmp_path / "run"), "--json"]
    assert _guarded(lambda: app(command, standalone_mode=False)) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["method"], result["stop_reason"], result["time_steps"]) == ("deep-ritz", "done", 2)
    assert result["advice"] == [npdg.StopReason.DONE.advice]
    assert npdg.load(tmp_path / "run").method == "deep-ritz"


@pytest.mark.slow
def test_a_march_with_a_network_of_ones_own_is_a_round_trip(tmp_path):
    mine = eqx.nn.MLP(1, "scalar", 8, 1, activation=jnp.tanh, key=jax.random.key(1))
    trajectory = npdg.march(heat(1, 2), network=mine, steps=8, n_interior=100)
    assert trajectory.stop_reason == "done"
    again = npdg.load(trajectory.save(tmp_path / "march"), pde=heat(1, 2), network=mine)
    x = np.linspace(0, 1, 7)[:, None]
    np.testing.assert_array_equal(again(0.5, x), trajectory(0.5, x))


@pytest.mark.slow
def test_a_march_that_runs_out_of_seconds_says_so_and_goes_on_with_more(tmp_path, capsys):
    words = ["--set", "width=6", "--set", "n_interior=30", "--set", "time_steps=5", "--set", "until=0.05"]
    out = str(tmp_path / "run")
    command = lambda *all_words: _guarded(lambda: app(list(all_words), standalone_mode=False))
    assert command("solve", "allen-cahn-1d", *words, "--seconds", "0.001", "--out", out, "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert result["stop_reason"] == "seconds"
    assert result["time_steps"] < 5
    assert "the seconds were used up at t = 0" in result["detail"]
    assert command("resume", out) == 2
    assert "larger total --seconds" in capsys.readouterr().err
    assert command("resume", out, "--seconds", "60", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["stop_reason"], result["time_steps"], result["detail"]) == ("done", 5, "")


@pytest.mark.slow
def test_a_fault_in_a_time_step_is_rolled_back_and_the_rest_is_as_careful(monkeypatch):
    """Faults come at the second time with the damping of the start, whether the march came there at once or resumed."""
    real, dampings = March.recipe, []

    def recipe(self, problem, settings):
        made = real(self, problem, settings)
        dampings.append(settings.solver.damping)

        def lower(data):
            late = (data["time"] > 0.015) & (settings.solver.damping < 0.05)
            faulty = lambda fields, point: jnp.where(late, jnp.nan, 0.0)
            saddle = made.lower(data)
            return replace(saddle, given={**saddle.given, "the weather": ("interior", faulty)})

        return replace(made, lower=lower)

    monkeypatch.setattr(March, "recipe", recipe)
    evolution = find("allen-cahn-1d").build(1, until=0.03, time_steps=3, epsilon=0.1)
    small, notes = {"steps": 4, "width": 6, "n_interior": 30, "damping": 1e-3}, []
    trajectory = npdg.march(evolution, rollbacks=3, on_note=notes.append, **small)
    assert trajectory.stop_reason == "done"
    assert [step.rollbacks for step in trajectory.steps] == [0, 0, 2, 2]
    assert trajectory.detail == "time step 2: " + "; ".join(note.removeprefix("time step 2: ") for note in notes)
    assert notes[-1] == "time step 2: the weather was not finite in step 1: rolled back to step 0 with damping=0.1"
    assert dampings[-1] == pytest.approx(0.1)
    with pytest.warns(RuntimeWarning, match="the weather was not finite"):
        again = npdg.march(evolution, rollbacks=1, **small)
    assert (again.stop_reason, len(again.steps)) == ("diverged", 3)
    with pytest.raises(npdg.InputError, match="from 0 to 3"):
        npdg.march(evolution, rollbacks=4, **small)


def test_a_step_is_the_equation_of_implicit_euler():
    evolution = find("allen-cahn-1d").build(1)
    u, before = lambda x: jnp.sin(3 * x[0]), lambda x: jnp.cos(2 * x[0])
    step = evolution.implicit_step(before, jnp.zeros(()))
    x, h = jnp.array([0.7]), 0.1
    by_hand = u(x) - before(x) - EPSILON * h * laplacian(u)(x) + h / EPSILON * (u(x) ** 3 - u(x))
    np.testing.assert_allclose(step.residual(u, x), by_hand, rtol=1e-5)


def test_metrics_of_the_two_regimes():
    evolution = find("allen-cahn-1d").build(1)
    u, v = lambda x: jnp.sin(3 * x[0]), lambda x: jnp.cos(2 * x[0])
    step = evolution.implicit_step(u, jnp.zeros(()))
    x, h = jnp.array([0.7]), 0.1
    smooth = metric("reaction-diffusion").primal(step, u, v, x)
    expected = [jnp.sqrt(1 + 2 * h / EPSILON) * v(x), jnp.sqrt(EPSILON * h) * grad(v)(x)[0]]
    np.testing.assert_allclose(smooth, expected, rtol=1e-5)
    sharp = metric("reaction").primal(step, u, v, x)
    np.testing.assert_allclose(sharp, [(1 + h / EPSILON * (3 * u(x) ** 2 - 1)) * v(x)], rtol=1e-5)
    np.testing.assert_allclose(metric("reaction").dual(step, u, v, x), [v(x)])


EXACT = lambda x: jnp.exp(x[0]) * jnp.cos(x[1])
DOMAINS = {"box": npdg.Box([0.0, -1.0], [2.0, 0.5]), "ball": npdg.Ball(1.5, dim=2)}


def flux_through(domain: npdg.Domain, kappa: float = 1.0, mass: float = 1.0) -> npdg.PDE:
    """−κΔu + mu = mu* with the flux of the harmonic u* = e^x cos y given, which depends on the outward normal."""

    def g(x):
        if isinstance(domain, npdg.Ball):
            return kappa * jnp.vdot(grad(EXACT)(x), x) / domain.radius
        lower, upper = (jnp.asarray(corner, x.dtype) for corner in domain.bounds())
        normal = jnp.where(jnp.abs(x - upper) < 1e-5, 1.0, jnp.where(jnp.abs(x - lower) < 1e-5, -1.0, 0.0))
        return kappa * jnp.vdot(grad(EXACT)(x), normal)

    return npdg.PDE(
        domain,
        flux=lambda u, x: kappa * grad(u)(x),
        reaction=lambda u, x: mass * u(x),
        source=lambda x: mass * EXACT(x),
        boundary=npdg.Neumann(g),
        exact=EXACT,
        name="flux",
    )


@pytest.mark.slow
def test_neumann_by_gauss_newton():
    shape = {"activation": "tanh", "squares": False, "width": 24, "n_interior": 400}
    solution = npdg.solve(flux_through(DOMAINS["ball"]), steps=40, **shape)
    assert solution.error(n=2000).rel_h1 < 1e-2


@pytest.mark.parametrize("name", DOMAINS)
def test_natural_condition_holds_at_the_solution_and_only_there(name):
    """E[∇u·∇φ + (u − f)φ] = |∂Ω|/|Ω| E_∂[gφ] for any φ; a wrong flux is seen."""
    pde = flux_through(DOMAINS[name])
    saddle = natural_condition(pde)
    samples = saddle.sample(jax.random.key(0), {"interior": 200_000, "boundary": 200_000})
    phi = lambda x: jnp.sin(2 * x[0] + x[1])
    with_exact = saddle.terms({"u": EXACT, "phi": phi}, samples)
    assert abs(float(with_exact["pairing"] + with_exact["boundary flux"])) < 0.04
    wrong = saddle.terms({"u": lambda x: EXACT(x) + phi(x), "phi": phi}, samples)
    assert abs(float(wrong["pairing"] + wrong["boundary flux"])) > 1


@pytest.mark.slow
@pytest.mark.parametrize("choice", [{"neumann": "natural"}, {"residual_weight": 1.0}], ids=str)
def test_neumann_with_dual_networks(choice):
    """An equation like a time step, by ψ, as the natural condition, and with the residual loss added for u."""
    kappa = 0.05
    pde = flux_through(DOMAINS["box"], kappa, 3.0)
    solution = npdg.solve(
        pde,
        steps=80,
        dual="network",
        metric="reaction-diffusion",
        pairing="weak",
        boundary_norm="l2",
        lam=kappa**-2,
        omega=1.0,
        tau_u=0.1,
        tau_phi=0.2,
        tau_psi=0.2,
        damping=1e-6,
        width=32,
        psi_width=16,
        n_interior=500,
        n_boundary=100,
        precision="float64",
        solver="minres",
        **choice,
    )
    assert solution.error(n=2000).rel_l2 < 0.05


def test_a_free_dual_asks_for_the_weak_form():
    with pytest.raises(npdg.InputError, match="pairing=weak"):
        npdg.solve(flux_through(DOMAINS["box"]), steps=1, dual="network", neumann="natural", pairing="strong")


def test_the_residual_loss_is_for_u_alone():
    pde = flux_through(DOMAINS["box"])
    plain, more = inf_sup(pde), inf_sup(pde, residual_weight=2.0)
    added = [integral for integral in more.integrals if integral.name not in {i.name for i in plain.integrals}]
    assert [integral.name for integral in added] == ["residual loss"]
    assert added[0].seen_by == ("u",)
    point = Points(jnp.array([0.3, 0.2]))
    fields = {"u": lambda x: EXACT(x) + x[0] ** 2}
    np.testing.assert_allclose(added[0].integrand(fields, point), (0.3**2 - 2) ** 2, rtol=1e-4)


def test_mixture_draws_by_weight_and_refuses_others():
    inner, outer = npdg.Box(0.8, 1.2, dim=1).interior, npdg.Box(0.0, 2.0, dim=1).interior
    x = npdg.Mixture((inner, outer), (0.25, 0.75)).sample(jax.random.key(0), 1001).x
    assert x.shape == (1001, 1)
    assert np.all((x[:250] >= 0.8) & (x[:250] <= 1.2))
    assert float(jnp.min(x)) < 0.1
    for weights in ((0.5, 0.6), (1.5, -0.5), (1.0,)):
        with pytest.raises(npdg.InputError):
            npdg.Mixture((inner, outer), weights)


def test_the_weak_form_refuses_other_measures():
    pde = find("allen-cahn-1d").build(1, epsilon=0.01)
    with pytest.raises(npdg.InputError, match="sampling"):
        npdg.march(pde, dual="network", pairing="weak")


def test_bad_marches_are_refused():
    equation = find("allen-cahn-1d").build(1).equation
    start = lambda x: x[0]
    for wrong in ({"until": 0.0}, {"until": float("nan")}, {"steps": 0}, {"steps": 2.5}, {"start": lambda x: x}):
        with pytest.raises(npdg.InputError):
            npdg.Evolution(**{"equation": equation, "start": start, "until": 1.0, "steps": 2, **wrong})
    evolution = npdg.Evolution(equation, start, 1.0, 2)
    with pytest.raises(npdg.InputError, match="not a time of this march"):
        npdg.march(evolution, times=[0.3])
    with pytest.raises(npdg.InputError, match="Evolution"):
        npdg.march(equation)


@pytest.mark.parametrize(
    "assignment", ["epsilon=0", "epsilon=-1", "epsilon=x", "until=0", "time_steps=0", "time_steps=2.5", "epsilo=1"]
)
def test_bad_options_on_the_command_line(assignment, tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "npdg.cli", "solve", "allen-cahn-1d", "--set", assignment],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert run.returncode == 2
    assert len(run.stderr.splitlines()) == 1
    assert assignment.partition("=")[0] in run.stderr
    assert not list(tmp_path.iterdir())

"""The step against one written by hand, and the loop's promises: budgets, chunks, divergence, one compilation."""

import dataclasses
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from clocks import Steady, ticking

import npdg
from npdg.catalogue import find
from npdg.fields.base import split
from npdg.methods.registry import make_method
from npdg.rules.directions import by_factors
from npdg.rules.levenberg import trusted
from npdg.saddle.saddle import Integral
from npdg.training.clock import Clock
from npdg.training.loop import advance
from npdg.training.progress import Events, Limits, Progress
from npdg.training.step import Recipe, initial, step

TINY: dict[str, Any] = {"width": 5, "psi_width": 4, "depth": 2, "n_interior": 40, "n_boundary": 24}
NETWORKS: dict[str, Any] = {"dual": "network", "solver": "minres", "damping": 0.0, "precision": "float32"}


def recipe_of(pde: npdg.PDE, method: str = "npdg", **settings: Any) -> Recipe:
    chosen = make_method("equation", method, **settings)
    return chosen.recipe(pde, chosen.candidates(pde)[0])


def tiny(dim: int = 2, method: str = "npdg", **overrides: Any) -> Recipe:
    return recipe_of(find("poisson").build(dim), method, **{**TINY, **NETWORKS, **overrides})


def begun(recipe: Recipe, seed: int = 0) -> Progress:
    return Progress(initial(recipe, seed), recipe, None)


# By the first clock a step takes longer than a chunk should, so that every chunk is one step; by the second a chunk
# takes no time, so that it is as long as may be.
CHUNKS = [10.0, 1e-6]


def run(recipe: Recipe, seed: int = 0, clock: Clock = Clock(), **limits: Any) -> Progress:  # noqa: B008 (no state)
    return advance(begun(recipe, seed), Limits(**limits), Events(), clock=clock)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("pairing", "norm"),
    [("weak", "l2"), *(pytest.param(pairing, "h1", marks=pytest.mark.slow) for pairing in ("weak", "strong"))],
)
def test_step_is_the_papers_algorithm_written_by_hand(pairing, norm):
    """Algorithm 2 in dense algebra, from Jacobians of the bare networks, to 1e-10."""
    tau_u, tau_phi, tau_psi, omega, nu, lam, damping = 0.05, 0.095, 0.08, 1.5, 0.9, 7.0, 1e-2
    numbers = {"tau_u": tau_u, "tau_phi": tau_phi, "tau_psi": tau_psi, "omega": omega, "nu": nu, "lam": lam}
    solver = {
        "minres_rtol": 1e-13,
        "minres_max": 2000,
        "damping": damping,
        "pairing": pairing,
        "boundary_norm": norm,
    }
    recipe = tiny(**numbers, **solver)
    state = initial(recipe, 3)
    samples = recipe.lower({}).sample(jax.random.fold_in(state.key, 0), recipe.sizes)
    x, y, normals = samples["interior"].x, samples["boundary"].x, samples["boundary"].normal
    assert normals is not None
    (theta, u_of), (eta, phi_of), (xi, psi_of) = (split(state.fields[k]) for k in ("u", "phi", "psi"))
    f = lambda p: (jnp.pi / 2) ** 2 * jnp.sum(jnp.sin(jnp.pi / 2 * p))
    g = lambda p: jnp.sum(jnp.sin(jnp.pi / 2 * p))

    def slopes(field_of, points):
        return lambda v: jax.vmap(jax.grad(field_of(v)))(points)

    def trace(function):
        values = jax.vmap(function)(y)[:, None]
        gradient = jax.vmap(jax.grad(function))(y)
        along = jnp.sum(gradient * normals, axis=1, keepdims=True) * normals
        return values if norm == "l2" else jnp.concatenate([values, gradient - along], axis=1)

    def mean_dot(a, b):
        return jnp.sum(a * b) / a.shape[0]

    def solve(matrix, right):
        return np.linalg.solve(np.asarray(matrix) + damping * np.eye(len(right)), right)

    def gram(features, v):
        jacobian = jax.jit(jax.jacrev(features))(v)
        return jnp.einsum("nrp,nrq->pq", jacobian, jacobian) / jacobian.shape[0]

    def residual_or_weak(v_phi):
        phi, u = phi_of(v_phi), u_of(theta)
        if pairing == "weak":
            return mean_dot(slopes(u_of, x)(theta), slopes(phi_of, x)(v_phi)) - jnp.mean(
                jax.vmap(lambda p: f(p) * phi(p))(x)
            )
        laplace = jax.vmap(lambda p: jnp.trace(jax.hessian(u)(p)))(x)
        return jnp.mean((-laplace - jax.vmap(f)(x)) * jax.vmap(phi)(x))

    loss_phi = lambda v: residual_or_weak(v) - nu / 2 * mean_dot(slopes(phi_of, x)(v), slopes(phi_of, x)(v))
    loss_psi = lambda v: (
        lam
        * (
            mean_dot(trace(u_of(theta)) - trace(g), trace(psi_of(v)))
            - nu / 2 * mean_dot(trace(psi_of(v)), trace(psi_of(v)))
        )
    )
    eta_new = eta + tau_phi * solve(gram(slopes(phi_of, x), eta), jax.jit(jax.grad(loss_phi))(eta))
    xi_new = xi + tau_psi * solve(lam * gram(lambda v: trace(psi_of(v)), xi), jax.jit(jax.grad(loss_psi))(xi))
    phi_ahead = lambda p: (1 + omega) * phi_of(eta_new)(p) - omega * phi_of(eta)(p)
    psi_ahead = lambda p: (1 + omega) * psi_of(xi_new)(p) - omega * psi_of(xi)(p)

    def loss_u(v):
        u, mismatch = u_of(v), trace(u_of(v)) - trace(g)
        weak = mean_dot(slopes(u_of, x)(v), jax.vmap(jax.grad(phi_ahead))(x))
        del u
        return weak + lam * mean_dot(mismatch, trace(psi_ahead)) + lam * mean_dot(mismatch, mismatch)

    metric = gram(slopes(u_of, x), theta) + lam * gram(lambda v: trace(u_of(v)), theta)
    theta_new = theta - tau_u * solve(metric, jax.jit(jax.grad(loss_u))(theta))

    new, info = jax.jit(lambda s: step(recipe, s))(state)
    for name, expected in (("phi", eta_new), ("psi", xi_new), ("u", theta_new)):
        np.testing.assert_allclose(split(new.fields[name])[0], expected, rtol=1e-10, atol=1e-10)
        assert info.moves[name].residual < 1e-12
    assert int(new.step) == 1


@pytest.mark.parametrize("seconds", [pytest.param(CHUNKS[0], marks=pytest.mark.slow), CHUNKS[1]])
def test_result_does_not_depend_on_how_the_steps_are_chunked(seconds):
    recipe = tiny()
    progress = run(recipe, clock=ticking(seconds), steps=7)
    assert progress.stop == "steps"
    assert [record.step for record in progress.history] == list(range(1, 8))
    reference = initial(recipe, 0)
    compiled = jax.jit(lambda s: step(recipe, s)[0])
    for _ in range(7):
        reference = compiled(reference)
    for a, b in zip(jax.tree.leaves(progress.state.fields), jax.tree.leaves(reference.fields), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("seconds", "limits", "chunks"),
    [(10.0, {}, [1] * 9), (1e-6, {}, [1, 8]), (0.25, {}, [1, 4, 4]), (0.25, {"chunk_steps": 3}, [3, 3, 3])],
)
def test_a_chunk_is_a_second_or_as_many_steps_as_are_asked_for(seconds, limits, chunks):
    """On a machine where a step takes so many seconds."""
    recipe = tiny()
    program = run(recipe, steps=1).program
    assert program is not None
    now, seen = [0.0], [0]

    def run_for(state: Any, count: int) -> Any:
        now[0] += seconds * count
        return program.run(state, count)

    def evaluate(state: Any) -> dict[str, float]:
        seen.append(int(state.step))
        return {}

    start = dataclasses.replace(begun(recipe), program=program._replace(run=run_for))
    clock = Steady(lambda: now[0])
    progress = advance(start, Limits(steps=9, **limits), Events(), evaluate=evaluate, clock=clock)
    assert np.diff(seen).tolist() == chunks
    assert progress.seconds == pytest.approx(9 * seconds)


def test_two_runs_with_the_same_seed_are_equal_bit_for_bit_whatever_the_chunks():
    recipe = tiny()
    states = [run(recipe, 1, ticking(seconds), steps=9).state for seconds in CHUNKS]
    for a, b in zip(jax.tree.leaves(states[0].fields), jax.tree.leaves(states[1].fields), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_run_continued_from_its_state_is_the_uninterrupted_run():
    recipe = tiny()
    whole = run(recipe, 2, steps=10)
    half = run(recipe, 2, steps=4)
    # As it is, with what has been compiled; and from nothing but its state.
    continued = advance(half, Limits(steps=10), Events())
    anew = advance(Progress(half.state, recipe, None), Limits(steps=10), Events())
    for other in (continued, anew):
        for a, b in zip(jax.tree.leaves(whole.state.fields), jax.tree.leaves(other.state.fields), strict=True):
            np.testing.assert_array_equal(a, b)
    assert [record.step for record in continued.history] == list(range(1, 11))
    assert continued.compile_seconds == half.compile_seconds
    assert continued.seconds > half.seconds


def test_seconds_that_are_used_up_end_a_run_and_a_step_past_them_is_not_begun():
    recipe = tiny()
    progress = run(recipe, clock=ticking(1.0), seconds=3.4)  # compiling takes a second too, and is not counted
    assert progress.stop == "seconds"
    assert int(progress.state.step) == 3
    assert progress.seconds == pytest.approx(3.0)
    assert progress.compile_seconds == pytest.approx(1.0)
    further = run(recipe, clock=ticking(1.0), seconds=3.6)  # more than half of a step is left
    assert int(further.state.step) == 4


def test_divergence_stops_at_the_step_names_the_culprit_and_keeps_the_last_finite_state():
    recipe = tiny(method="npdg-flat", tau_u=1e12, tau_phi=1e12, tau_psi=1e12)
    outcome = run(recipe, steps=50)
    assert outcome.stop == "diverged"
    assert int(outcome.state.step) < 50
    assert f"in step {int(outcome.state.step) + 1}" in outcome.detail
    assert re.match(
        r"(the|a) (term|gradient|Gram solve|Gram product|update) .*(u|phi|psi|pairing|energy|penalty)", outcome.detail
    )
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(outcome.state.fields))
    assert len(outcome.history) == int(outcome.state.step)


@pytest.mark.parametrize("dual", ["network", "tangent", "exact"])
def test_nan_in_the_source_is_found_and_named(dual):
    pde = dataclasses.replace(find("poisson").build(2), source=lambda x: jnp.log(x[0] - 2))
    numbers = {**TINY, **NETWORKS, "dual": dual, "damping": 1e-3, "solver": "dense" if dual == "exact" else "cg"}
    recipe = recipe_of(pde, **numbers)
    before = initial(recipe, 0)
    outcome = run(recipe, steps=100)
    assert outcome.stop == "diverged"
    assert outcome.detail.startswith("the source was not finite in step 1;")
    np.testing.assert_array_equal(split(outcome.state.fields["u"])[0], split(before.fields["u"])[0])


@pytest.mark.parametrize(("answer", "reason"), [("interrupted", "interrupted"), (True, "stopped"), ("tea", "stopped")])
def test_a_request_to_stop_is_heard_between_chunks(answer, reason):
    recipe = tiny()
    asked = iter([None, None, answer])
    events = Events(should_stop=lambda: next(asked))
    outcome = advance(begun(recipe), Limits(steps=10_000), events, clock=ticking(10.0))
    assert outcome.stop == reason
    assert int(outcome.state.step) == 2


def test_evaluation_is_not_training_time():
    now = [0.0]

    def clock() -> float:
        now[0] += 0.01
        return now[0]

    def evaluate(state: Any) -> dict[str, float]:
        now[0] += 100.0
        return {"a": 1.0}

    recipe = tiny()
    outcome = advance(begun(recipe), Limits(steps=3, chunk_steps=1), Events(), evaluate=evaluate, clock=Steady(clock))
    assert outcome.seconds == pytest.approx(0.03)
    assert [record.errors for record in outcome.history] == [{"a": 1.0}] * 3


def test_records_name_their_stage_the_residual_and_how_the_solves_ended():
    recipe = recipe_of(find("poisson").build(2), **TINY)
    progress = advance(begun(recipe), Limits(steps=2), Events(), stage="training")
    for record in progress.history:
        assert record.stage == "training"
        # Of least squares, whose term is half of the mean square.
        assert record.rms_residual == pytest.approx((2 * record.terms["residual"]) ** 0.5)
        assert record.statuses == {"u": 0}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "solver"),
    [("npdg", "minres"), ("npdg", "cg"), ("npdg", "dense"), ("npdg-flat", "minres"), ("pd-adam", "minres")],
)
def test_every_method_lowers_the_boundary_mismatch(method, solver):
    """At steps that suit each, so that a rule with the wrong sign or scale cannot pass."""
    rate = {"npdg": 0.1, "npdg-flat": 1e-2, "pd-adam": 3e-2}[method]
    rates: dict[str, Any] = {"tau_u": rate, "tau_phi": rate, "tau_psi": rate, "omega": 1.0}
    recipe = tiny(method=method, solver=solver, damping=1e-2, n_interior=200, n_boundary=100, **rates)
    outcome = run(recipe, steps=60)
    penalties = [record.terms["boundary penalty"] for record in outcome.history]
    assert np.mean(penalties[-5:]) < 0.5 * penalties[0]


@pytest.fixture
def exact() -> Recipe:
    return recipe_of(find("poisson").build(2), **{**TINY, "n_interior": 60})


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("seed", "moves"), [(5, False), (6, True)])
def test_exact_dual_step_is_the_best_of_the_damped_gauss_newton_steps(exact, seed, moves):
    """Or none, where the best of them is worse than standing still."""
    state = initial(exact, seed)
    samples = exact.lower({}).sample(jax.random.fold_in(state.key, 0), exact.sizes)
    theta, build = split(state.fields["u"])

    def features(v):
        u, exact_solution = build(v), lambda p: jnp.sum(jnp.sin(jnp.pi / 2 * p))
        x, y, n = samples["interior"].x, samples["boundary"].x, samples["boundary"].normal
        assert n is not None
        residual = jax.vmap(lambda p: -jnp.trace(jax.hessian(u)(p)) - (jnp.pi / 2) ** 2 * exact_solution(p))(x)
        slopes = jax.vmap(lambda p: jax.grad(u)(p) - jax.grad(exact_solution)(p))(y)
        values = jax.vmap(lambda p: u(p) - exact_solution(p))(y)
        tangential = slopes - jnp.sum(slopes * n, axis=1, keepdims=True) * n
        mismatch = jnp.concatenate([values[:, None], tangential], axis=1).ravel()
        return jnp.concatenate([residual / len(x) ** 0.5, mismatch * (10.0 / len(y)) ** 0.5])

    jacobian, values = np.asarray(jax.jit(jax.jacrev(features))(theta)), np.asarray(features(theta))
    matrix = jacobian.T @ jacobian
    loss = jax.jit(lambda v: 0.5 * jnp.sum(features(v) ** 2))
    candidates = []
    for factor in (0.1, 0.3, 1.0, 3.0, 30.0):
        shift = 1e-3 * factor * np.trace(matrix) / theta.size
        v = theta - np.linalg.solve(matrix + shift * np.eye(theta.size), jacobian.T @ values)
        candidates.append((float(loss(v)), v, 1e-3 * factor))
    value, expected, damping = min(candidates, key=lambda c: c[0])
    new, info = jax.jit(lambda s: step(exact, s))(state)
    assert (value < float(loss(theta))) == moves
    if not moves:
        expected, damping = theta, 3e-2
    np.testing.assert_allclose(split(new.fields["u"])[0], expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(new.rules["u"].damping, damping, rtol=1e-12)
    np.testing.assert_allclose(new.rules["u"].update, theta - expected, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(sum(info.terms.values()), loss(theta), rtol=1e-10)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_exact_dual_never_raises_the_functional_on_its_own_samples(exact):
    state, advance = initial(exact, 1), jax.jit(lambda s: step(exact, s)[0])
    stood_still = 0
    for _ in range(40):
        samples = exact.lower({}).sample(jax.random.fold_in(state.key, state.step), exact.sizes)
        new = advance(state)
        before, after = (exact.lower({}).value(s.fields, samples, "u") for s in (state, new))
        assert after <= before
        stood_still += int(after == before)
        state = new
    assert stood_still < 20


@pytest.mark.usefixtures("x64")
def test_exact_dual_goes_back_and_damps_more_when_every_candidate_is_worse(exact):
    """A functional that standing still minimises: nothing is accepted, the damping grows."""
    rules = {"u": trusted(by_factors(), damping=1e-3)}
    always_worse = lambda fields, point: jnp.where(jnp.all(split(fields["u"])[0] == theta), 0.0, 1.0)
    state = initial(exact, 0)
    theta = split(state.fields["u"])[0]
    saddle = dataclasses.replace(exact.lower({}), integrals=(Integral("cliff", "interior", always_worse),))
    recipe = dataclasses.replace(exact, lower=lambda data: saddle, rules=rules)
    new, _ = jax.jit(lambda s: step(recipe, s))(state)
    np.testing.assert_array_equal(split(new.fields["u"])[0], theta)
    assert new.rules["u"].damping == pytest.approx(3e-2)


def stuck() -> npdg.PDE:
    """An equation whose residual is not a number wherever u may be, though all that it is given is."""
    pde = find("poisson").build(2)
    return dataclasses.replace(pde, reaction=lambda u, x: jnp.log(-1.0 - u(x) ** 2), exact=None)


TANGENT: dict[str, Any] = {**TINY, "dual": "tangent", "solver": "cg", "damping": 1e-3, "tau_u": 1.0}


def test_a_guarded_player_that_can_only_retreat_ends_the_run_as_stalled_with_finite_fields():
    recipe = recipe_of(stuck(), **TANGENT)
    before = initial(recipe, 0)
    progress = run(recipe, steps=100)
    assert progress.stop == "stalled"
    assert int(progress.state.step) == 17  # 2⁻¹⁷ is the first below the smallest step
    assert "u finds no lower value from step 17 on" in progress.detail
    assert "gradient" not in progress.detail  # of which nothing is known
    assert [record.step for record in progress.history] == list(range(1, 18))
    for a, b in zip(jax.tree.leaves(progress.state.fields), jax.tree.leaves(before.fields), strict=True):
        assert np.all(np.isfinite(a))
        np.testing.assert_array_equal(a, b)


def test_a_stalled_run_says_so_and_what_to_do(recwarn):
    solution = npdg.solve(stuck(), steps=100, **TANGENT)
    assert solution.stop_reason == "stalled"
    assert "another method" in solution.advice[0]
    assert not [warning for warning in recwarn if "diverged" in str(warning.message)]
    assert np.all(np.isfinite(solution(np.full((3, 2), 0.5))))

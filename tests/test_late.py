"""The late phase: exact duals on small batches, from where the tangent dual stands."""

import math
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import npdg
from npdg import late, polish, stages
from npdg.fields import MLP, Linearised, parameter_count, split
from npdg.hooks import KEEP_NOTHING, Hooks, Keep
from npdg.loop import Outcome, Record, State
from npdg.polish import LARGEST, SPEED
from npdg.presets import candidates
from npdg.runs.store import MetricsFile, history
from npdg.settings import Settings, late_settings, marching_preset
from npdg.stopping import last_phase, on_plateau

SMALL: dict[str, Any] = {
    "dual": "tangent",
    "solver": "cg",
    "width": 8,
    "n_interior": 200,
    "n_boundary": 40,
    "late": True,
    "polish": False,
    "precision": "float32",
}


def equation() -> npdg.PDE:
    exact = lambda x: jnp.sin(2 * x[0]) * jnp.exp(x[1])
    return npdg.PDE(
        npdg.Box(0.0, 1.0, dim=2),
        flux=lambda u, x: npdg.grad(u)(x),
        source=lambda x: 3 * exact(x),
        boundary=npdg.Dirichlet(exact),
        exact=exact,
    )


def small() -> Settings:
    return candidates("mine", 2, "npdg", "default", SMALL)[0]


def train(hooks: Hooks, seconds: float | None = 2.0, steps: int | None = None) -> stages.Trained:
    return stages.train(equation(), "npdg", [small()], seconds=seconds, steps=steps, seed=0, hooks=hooks)


def test_the_late_phase_gets_its_share_unless_that_is_too_few_steps():
    net = MLP(20, 128, 2, key=jax.random.key(0))
    enough = late.FEWEST * late.COST * parameter_count(net) ** 3 / SPEED / late.SHARE
    assert late.seconds_of(1.01 * enough, 0.0, net) == pytest.approx(1.01 * enough * late.SHARE)
    assert late.seconds_of(0.99 * enough, 0.0, net) == 0.0
    assert late.seconds_of(2 * enough, 1.2 * enough, net) == pytest.approx(0.8 * enough)  # what is left
    assert late.seconds_of(2 * enough, 1.3 * enough, net) == 0.0
    large = MLP(100, 256, 2, key=jax.random.key(0))
    assert parameter_count(large) > LARGEST
    assert late.seconds_of(1e9, 0.0, large) == 0.0


def test_its_batches_tell_enough_of_the_parameters():
    for parameters, traces in ((100, 2), (2817, 2), (6657, 1)):
        chosen = late_settings(small(), parameters, traces)
        assert chosen.n_interior + traces * chosen.n_boundary >= 0.4 * parameters
        assert (chosen.dual, chosen.precision) == ("exact", "float64")


def test_who_chooses_what_the_late_phase_would_change_gets_none_unless_asked_for():
    default = lambda overrides: candidates("mine", 20, "npdg", "default", overrides)
    assert all(settings.late for settings in default({}))
    assert not any(settings.late for settings in default({"dual": "tangent"}))
    assert not any(settings.late for settings in default({"n_interior": 100}))
    assert all(settings.late for settings in default({"n_interior": 100, "late": True}))
    assert all(settings.late for settings in default({"precision": "float64"}))
    assert not any(settings.late for settings in default({"precision": "float32"}))
    assert not any(settings.late for settings in candidates("mine", 5, "npdg", "default", {}))
    assert not marching_preset("npdg", 20)["late"]


@pytest.mark.slow
def test_the_late_phase_goes_on_from_the_tangent_dual_and_is_kept_in_its_shape():
    kept: list[Outcome] = []
    notes: list[str] = []
    keep = Keep(between=lambda outcome: kept.append(replace(outcome)), trained=kept.append)
    trained = train(Hooks(lambda record: None, on_note=notes.append, keep=keep))
    assert len(notes) == 1
    assert notes[0].startswith("exact duals in small batches are tried")
    assert trained.tried[0].ratio < 1
    records = trained.outcome.history
    assert [record.step for record in records] == list(range(1, len(records) + 1))
    first = next(k for k, record in enumerate(records) if "residual" in record.terms)
    assert all("pairing" in record.terms for record in records[:first])
    assert all("residual" in record.terms for record in records[first:])
    error = lambda record: record.errors["rel_h1"]
    before = [error(record) for record in records[:first] if record.errors]
    assert error(records[-1]) < 0.1 * before[-1]
    # What is written can be read back as the state of a training with the tangent dual.
    shapes = [jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), outcome.state) for outcome in kept]
    assert all(shape == shapes[0] for shape in shapes)
    last = kept[-1].state.fields["u"]
    # What its rule would go back to is not what was there before the late phase.
    np.testing.assert_array_equal(kept[-1].state.rules["u"].vector, split(last)[0])
    for rounded, leaf in zip(jax.tree.leaves(last), jax.tree.leaves(trained.outcome.state.fields["u"]), strict=True):
        assert leaf.dtype == np.float64
        np.testing.assert_allclose(rounded, leaf, rtol=1e-6, atol=1e-30)


@pytest.mark.slow
def test_a_late_phase_that_is_no_better_is_left(monkeypatch):
    attempt = late.attempt

    def poor(*arguments: Any, **keywords: Any) -> Any:
        start = attempt(*arguments, **keywords)
        return replace(start, ratio=1.5)

    monkeypatch.setattr(late, "attempt", poor)
    notes: list[str] = []
    trained = train(Hooks(lambda record: None, on_note=notes.append))
    assert len(notes) == 2
    assert notes[1].startswith("they were no better")
    assert all("pairing" in record.terms for record in trained.outcome.history)
    assert jax.tree.leaves(trained.outcome.state.fields["u"])[0].dtype == np.float32
    assert trained.outcome.seconds == pytest.approx(2.0, abs=0.5)


@pytest.mark.slow
def test_a_run_resumed_in_its_late_phase_stays_as_good(tmp_path, monkeypatch):
    monkeypatch.setattr(npdg.Solution, "error_estimate", lambda self: None)  # not what this is about
    kept: list[Outcome] = []
    train(Hooks(lambda record: None, keep=replace(KEEP_NOTHING, trained=kept.append)))
    stopped = kept[-1]
    restored = lambda template: replace(
        stopped, state=State(stopped.state.fields, stopped.state.rules, template.key, stopped.state.step)
    )
    assert late.begun(stopped.history)
    again = train(Hooks(lambda record: None, keep=Keep(restore=restored)), seconds=3.0).outcome
    assert "pairing" not in again.history[-1].terms  # the tangent dual would lead back to where it stands
    error = lambda outcome: outcome.history[-1].errors["rel_h1"]
    assert error(again) < 2 * error(stopped)
    more = stopped.history[-1].step + 20
    by_steps = train(Hooks(lambda record: None, keep=Keep(restore=restored)), None, more).outcome
    assert "pairing" not in by_steps.history[-1].terms
    assert (by_steps.stop_reason, by_steps.history[-1].step) == ("steps", more)
    assert error(by_steps) < 2 * error(stopped)
    solution = npdg.solve(equation(), seconds=2.0, seed=0, **SMALL)
    assert (solution.precision, solution.polished) == ("float64", False)
    x = np.array([[0.1, 0.9], [0.5, 0.5]])
    loaded = npdg.load(solution.save(tmp_path / "run"), equation())
    np.testing.assert_array_equal(loaded(x), solution(x))
    assert math.isfinite(solution.error().rel_l2)


def test_a_plateau_is_sought_in_the_last_phase_alone():
    def record(step: int, name: str, value: float) -> Record:
        return Record(step, float(step), {name: value}, {}, {}, {})

    tangent = [record(k, "pairing", 1e-6) for k in range(1, 61)]
    falling = [record(60 + k, "residual", 10.0**-k) for k in range(1, 31)]
    assert on_plateau(tangent)
    assert last_phase(tangent + falling) == falling
    assert not on_plateau(tangent + falling)
    standing = [record(60 + k, "residual", 1.0) for k in range(1, 61)]
    assert on_plateau(tangent + standing)


def test_metrics_of_a_later_stage_are_not_lost(tmp_path):
    metrics = MetricsFile(tmp_path)
    for step, terms in enumerate(({"pairing": 1.0, "boundary": 2.0}, {"residual": 3.0, "boundary": 4.0}), 1):
        metrics(step, Record(step, float(step), terms, {"u": step}, {"u": 0.5}, {"rel_l2": 0.1}))
    assert [record.terms for record in history(tmp_path)] == [
        {"pairing": 1.0, "boundary": 2.0},
        {"boundary": 4.0, "residual": 3.0},
    ]


@pytest.mark.usefixtures("x64")
def test_a_correction_has_more_rows_than_parameters_whatever_the_boundary():
    large = MLP(2, 2000, 2, key=jax.random.key(0))  # as many points as the memory holds are fewer than its parameters
    zero = lambda x: 0.0 * x[0]
    for boundary, traces in ((npdg.Dirichlet(zero), 2), (npdg.Neumann(zero), 1)):
        sizes = polish.correction(replace(equation(), boundary=boundary), Linearised.at(large, (large,))).sizes
        assert sizes["interior"] + traces * sizes["boundary"] > parameter_count(large)

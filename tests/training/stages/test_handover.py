"""The hand-over: exact duals on small batches, from where the tangent dual stands."""

import math
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from clocks import SPEED, Steady

import npdg
from npdg.fields.base import parameter_count, split
from npdg.fields.mlp import MLP
from npdg.methods.presets.default import marching_preset
from npdg.methods.registry import make_method
from npdg.methods.settings import Settings
from npdg.runs.reading import METRICS
from npdg.runs.save import MetricsFile
from npdg.runs.tables import read_metrics
from npdg.training.progress import Budget, Checkpoints, Events, Progress
from npdg.training.records import Record
from npdg.training.stages import handover
from npdg.training.stages.base import Context, handed_over, run_stages
from npdg.training.stages.handover import (
    FEWEST_STEPS,
    HANDOVER_SHARE,
    STEP_COST,
    HandOver,
    handover_seconds,
)
from npdg.training.stages.trial import Trial, tried
from npdg.training.step import State
from npdg.training.stopping import StopReason, last_stage, on_plateau
from npdg.training.tangent_space import LARGEST_DENSE

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
    return make_method("equation", "npdg", **SMALL).candidates(equation())[0]


def context(events: Events, seconds: float | None = 2.0, steps: int | None = None) -> Context:
    method = make_method("equation", "npdg", **SMALL)
    return Context(equation(), method, [small()], Budget(seconds, steps), 0, events, Steady())


def train(events: Events, seconds: float | None = 2.0, steps: int | None = None) -> Progress:
    told = context(events, seconds, steps)
    return run_stages(make_method("equation", "npdg", **SMALL).stages(equation(), small()), told)


@pytest.fixture
def trials(monkeypatch) -> list[Trial]:
    """The trials of a hand-over that a test makes."""
    made: list[Trial] = []

    def watched(*arguments: Any) -> Trial:
        made.append(tried(*arguments))
        return made[-1]

    monkeypatch.setattr(handover, "tried", watched)
    return made


def test_the_late_phase_gets_its_share_unless_that_is_too_few_steps():
    net = MLP(20, 128, 2, key=jax.random.key(0))
    enough = FEWEST_STEPS * STEP_COST * parameter_count(net) ** 3 / SPEED / HANDOVER_SHARE
    assert handover_seconds(1.01 * enough, 0.0, net, SPEED) == pytest.approx(1.01 * enough * HANDOVER_SHARE)
    assert handover_seconds(0.99 * enough, 0.0, net, SPEED) == 0.0
    assert handover_seconds(0.99 * enough, 0.0, net, 2 * SPEED) > 0  # on a faster machine
    assert handover_seconds(2 * enough, 1.2 * enough, net, SPEED) == pytest.approx(0.8 * enough)  # what is left
    assert handover_seconds(2 * enough, 1.3 * enough, net, SPEED) == 0.0
    large = MLP(100, 256, 2, key=jax.random.key(0))
    assert parameter_count(large) > LARGEST_DENSE
    assert handover_seconds(1e9, 0.0, large, SPEED) == 0.0


def test_its_batches_tell_enough_of_the_parameters():
    for parameters, rows in ((100, 2), (2817, 2), (6657, 1)):
        chosen = small().handed_over(parameters, rows)
        assert chosen.samples.interior + rows * chosen.samples.boundary >= 0.4 * parameters
        assert (chosen.functional.dual, chosen.precision) == ("exact", "float64")


def test_who_chooses_what_the_late_phase_would_change_gets_none_unless_asked_for():
    def handovers(dim: int = 20, **changes: Any) -> list[bool]:
        pde = npdg.PDE(npdg.Box(0.0, 1.0, dim=dim), flux=lambda u, x: npdg.grad(u)(x))
        return [s.stages.handover for s in make_method("equation", "npdg", **changes).candidates(pde)]

    assert all(handovers())
    assert not any(handovers(dual="tangent"))
    assert not any(handovers(n_interior=100))
    assert all(handovers(n_interior=100, late=True))
    assert all(handovers(precision="float64"))
    assert not any(handovers(precision="float32"))
    assert not any(handovers(5))
    assert not marching_preset(20)["late"]


@pytest.mark.slow
def test_the_late_phase_goes_on_from_the_tangent_dual_and_is_kept_in_its_shape(trials):
    kept: list[Progress] = []
    notes: list[str] = []
    checkpoints = Checkpoints(between=kept.append, trained=kept.append)
    trained = train(Events(on_note=notes.append, checkpoints=checkpoints))
    assert len(notes) == 1
    assert notes[0].startswith("exact duals in small batches are tried")
    assert trials[0].ratio < 1
    assert trained.tried == (str(trials[0]),)
    records = trained.history
    assert [record.step for record in records] == list(range(1, len(records) + 1))
    first = next(k for k, record in enumerate(records) if "residual" in record.terms)
    assert all("pairing" in record.terms and record.stage == "training" for record in records[:first])
    assert all("residual" in record.terms and record.stage == "handover" for record in records[first:])
    error = lambda record: record.errors["rel_h1"]
    before = [error(record) for record in records[:first] if record.errors]
    assert error(records[-1]) < 0.1 * before[-1]
    # What is written can be read back as the state of a training with the tangent dual.
    shapes = [jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), progress.state) for progress in kept]
    assert all(shape == shapes[0] for shape in shapes)
    last = kept[-1].state.fields["u"]
    # What its rule would go back to is not what was there before the late phase.
    np.testing.assert_array_equal(kept[-1].state.rules["u"].vector, split(last)[0])
    for rounded, leaf in zip(jax.tree.leaves(last), jax.tree.leaves(trained.state.fields["u"]), strict=True):
        assert leaf.dtype == np.float64
        np.testing.assert_allclose(rounded, leaf, rtol=1e-6, atol=1e-30)


@pytest.mark.slow
def test_a_late_phase_that_is_no_better_is_left(monkeypatch):
    monkeypatch.setattr(handover, "tried", lambda *arguments: replace(tried(*arguments), ratio=1.5))
    notes: list[str] = []
    trained = train(Events(on_note=notes.append))
    assert len(notes) == 2
    assert notes[1].startswith("they were no better")
    assert all("pairing" in record.terms for record in trained.history)
    assert jax.tree.leaves(trained.state.fields["u"])[0].dtype == np.float32
    assert trained.seconds == pytest.approx(2.0, abs=0.5)


@pytest.mark.slow
def test_a_run_resumed_in_its_late_phase_stays_as_good(tmp_path, monkeypatch):
    monkeypatch.setattr(npdg.Solution, "error_estimate", lambda self: None)  # not what this is about
    kept: list[Progress] = []
    train(Events(checkpoints=Checkpoints(trained=kept.append)))
    stopped = replace(kept[-1], settings=small())

    def restored(fresh: Progress) -> Progress:
        state = State(stopped.state.fields, stopped.state.rules, fresh.state.key, stopped.state.step)
        return replace(fresh, state=state, history=stopped.history, seconds=stopped.seconds)

    assert handed_over(stopped)
    resumed = Events(checkpoints=Checkpoints(restore=restored))
    again = train(resumed, seconds=3.0)
    assert "pairing" not in again.history[-1].terms  # the tangent dual would lead back to where it stands
    error = lambda progress: progress.history[-1].errors["rel_h1"]
    assert error(again) < 2 * error(stopped)
    more = stopped.history[-1].step + 20
    by_steps = train(resumed, None, more)
    assert "pairing" not in by_steps.history[-1].terms
    assert (by_steps.stop, by_steps.history[-1].step) == ("steps", more)
    assert error(by_steps) < 2 * error(stopped)
    solution = npdg.solve(equation(), seconds=2.0, seed=0, **SMALL)
    assert (solution.precision, solution.polished) == ("float64", False)
    x = np.array([[0.1, 0.9], [0.5, 0.5]])
    loaded = npdg.load(solution.save(tmp_path / "run"), equation())
    np.testing.assert_array_equal(loaded(x), solution(x))
    assert math.isfinite(solution.error().rel_l2)


def test_a_plateau_is_sought_in_the_last_phase_alone():
    def record(step: int, stage: str, value: float) -> Record:
        return Record(step, float(step), {}, {}, {}, {}, rms_residual=value, stage=stage)

    tangent = [record(k, "training", 1e-3) for k in range(1, 61)]
    falling = [record(60 + k, "handover", 10.0 ** (-k / 2)) for k in range(1, 31)]
    assert on_plateau(tangent)
    assert last_stage(tangent + falling) == falling
    assert not on_plateau(tangent + falling)
    standing = [record(60 + k, "handover", 1.0) for k in range(1, 61)]
    assert on_plateau(tangent + standing)


def test_metrics_of_a_later_stage_are_not_lost(tmp_path):
    metrics = MetricsFile(tmp_path)
    written = [
        Record(1, 1.0, {"pairing": 1.0, "boundary": 2.0}, {"u": 1}, {"u": 0.5}, {"rel_l2": 0.1}, 1.0, "training"),
        Record(2, 2.0, {"residual": 3.0, "boundary": 4.0}, {"u": 2}, {"u": 0.5}, {"rel_l2": 0.1}, None, "handover"),
    ]
    for record in written:
        metrics(record.number, record)
    read = [Record.from_row(row) for row in read_metrics(tmp_path / METRICS)[1]]
    assert [record.terms for record in read] == [
        {"pairing": 1.0, "boundary": 2.0},
        {"boundary": 4.0, "residual": 3.0},
    ]
    assert read == written


def test_a_hand_over_that_there_is_no_time_for_is_left_out():
    """A run of steps, a method whose settings have none, and one whose seconds are used up."""
    start = context(Events(), 2.0).fresh(small())
    stage, timed = HandOver(), replace(context(Events()), seconds=2.0)
    assert stage.reserve(timed, start, 2.0) == pytest.approx(1.5)
    assert stage.reserve(context(Events(), None, 5), start, 2.0) == 0.0
    assert stage.reserve(timed, replace(start, settings=small().changed(late=False)), 2.0) == 0.0
    assert stage.reserve(timed, replace(start, seconds=2.0), 2.0) == 0.0
    ended = replace(start, seconds=2.0, stop=StopReason.SECONDS)
    assert stage(timed, ended) is ended

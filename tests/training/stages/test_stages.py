"""The stages of a run: the fold over them, the trial of networks, the look back, and the linear correction."""

from dataclasses import dataclass, field, replace
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from clocks import SPEED, Steady, ticking
from small import equation, net

import npdg
from npdg.catalogue import find
from npdg.fields.base import Field, parameter_count
from npdg.fields.mlp import MLP
from npdg.fields.tangent import Linearised
from npdg.methods.registry import make_method
from npdg.methods.settings import Settings
from npdg.precision import precision
from npdg.training.progress import Budget, Events, Limits, Progress
from npdg.training.records import Record
from npdg.training.rollback import go_on
from npdg.training.stages import correction, descent, selection
from npdg.training.stages.base import Context, run_stages
from npdg.training.stages.correction import (
    CORRECTION_SHARE,
    ENOUGH_ROWS,
    FEWEST_ROWS,
    Correct,
    Plan,
    correction_seconds,
    in_two_spaces,
    points_in,
)
from npdg.training.stages.selection import Select
from npdg.training.stages.trial import Trial, tried
from npdg.training.step import State, initial
from npdg.training.stopping import StopReason
from npdg.training.tangent_space import BATCH_POINTS
from npdg.training.tangent_space import correction as correction_recipe

SMALL: dict[str, Any] = {"width": 8, "n_interior": 100, "n_boundary": 20}


def in_dimension(dim: int) -> npdg.PDE:
    return npdg.PDE(npdg.Box(0.0, 1.0, dim=dim), flux=lambda u, x: npdg.grad(u)(x))


def options(pde: npdg.PDE, method: str = "npdg", preset: str = "default", **settings: Any) -> list[Settings]:
    return list(make_method("equation", method, preset=preset, **settings).candidates(pde))


def context(budget: Budget, candidates: list[Settings] | None = None, **keywords: Any) -> Context:
    keywords.setdefault("clock", Steady())
    return Context(equation(), make_method("equation", "npdg"), candidates or [], budget, 0, **keywords)


def run_of(merits: list[float], u: Field | None = None, **keywords: Any) -> Progress:
    """A training of a second a step, with these mean squares of the residual."""
    records = [
        Record(k + 1, k + 1.0, {}, {}, {}, {}, rms_residual=merit**0.5, stage="training")
        for k, merit in enumerate(merits)
    ]
    state = State({} if u is None else {"u": u}, {}, jnp.zeros(()), jnp.zeros((), int))
    settings = options(equation(), **SMALL)[0]
    kept = {"history": records, "seconds": float(len(merits)), "stop": StopReason.SECONDS, **keywords}
    return Progress(state, cast(Any, None), settings, **kept)


@dataclass(frozen=True)
class Fake:
    """A stage that uses all its seconds, wants some share and some number of seconds, and notes what it is told."""

    name: str
    told: list[tuple[str, float | None]]
    share: float = 0.0
    seconds: float = 0.0
    stop: StopReason | None = StopReason.SECONDS
    asked: list[float] = field(default_factory=list)

    def __call__(self, context: Context, progress: Progress | None) -> Progress:
        self.told.append((self.name, context.seconds))
        before = run_of([]) if progress is None else progress
        return replace(before, seconds=context.seconds or 0.0, stop=self.stop)

    def reserve(self, context: Context, progress: Progress, seconds: float) -> float:
        self.asked.append(seconds)
        return self.share * seconds + self.seconds


def test_what_a_stage_reserves_shortens_those_before_it():
    told: list[tuple[str, float | None]] = []
    first, second = Fake("first", told, stop=None), Fake("second", told)
    third, last = Fake("third", told, share=0.5), Fake("last", told, seconds=10.0)
    progress = run_stages((first, second, third, last), context(Budget(seconds=100.0)))
    # The last wants ten seconds of a hundred, the third half of the ninety that are left for it and those before it.
    # The first stage, before which nothing is known, is told the whole budget.
    assert told == [("first", 100.0), ("second", 45.0), ("third", 90.0), ("last", 100.0)]
    assert third.asked == [90.0]
    assert last.asked == [100.0, 100.0]
    assert second.asked == []
    assert progress.seconds == 100.0
    assert progress.stop == "seconds"


def test_without_its_later_stages_a_stage_has_all_seconds():
    told: list[tuple[str, float | None]] = []
    run_stages((Fake("first", told, stop=None), Fake("second", told, share=0.5)), context(Budget(seconds=100.0)))
    assert told == [("first", 100.0), ("second", 100.0)]


@pytest.mark.parametrize("budget", [Budget(steps=5), Budget(steps=5, seconds=100.0)])
def test_a_run_of_given_steps_reserves_nothing(budget):
    told: list[tuple[str, float | None]] = []
    stages = (Fake("first", told, stop=None), Fake("second", told), Fake("third", told, share=0.5, seconds=10.0))
    run_stages(stages, context(budget))
    assert [seconds for _, seconds in told] == [budget.seconds] * 3
    assert stages[2].asked == []


@pytest.mark.parametrize("stop", list(StopReason))
def test_a_stage_that_ends_the_run_is_the_last(stop):
    told: list[tuple[str, float | None]] = []
    stages = (Fake("first", told, stop=None), Fake("second", told, stop=stop), Fake("third", told))
    progress = run_stages(stages, context(Budget(seconds=100.0)))
    goes_on = stop in ("seconds", "stalled")
    assert [name for name, _ in told] == (["first", "second", "third"] if goes_on else ["first", "second"])
    assert progress.stop == ("seconds" if goes_on else stop)


def test_a_run_that_nothing_has_ended_is_done():
    assert run_stages((Fake("only", [], stop=None),), context(Budget(seconds=1.0))).stop == "done"


def test_a_training_reads_the_clock_that_it_is_given():
    settings = options(equation(), **SMALL)[0]
    told = replace(context(Budget(seconds=100.0), [settings], clock=ticking(1.0)), seconds=3.0)
    progress = descent.Descend()(told, Select()(told, None))
    assert progress.stop == "seconds"
    assert [record.seconds for record in progress.history] == pytest.approx([1.0, 2.0, 3.0])
    assert {record.stage for record in progress.history} == {"training"}


@pytest.mark.slow
def test_a_training_that_took_too_long_is_polished_all_the_same(monkeypatch):
    def slow(*arguments: Any, **keywords: Any) -> Progress:
        progress = go_on(*arguments, **keywords)
        return replace(progress, seconds=progress.seconds + 100.0)  # as if the machine had slept

    monkeypatch.setattr(descent, "go_on", slow)
    assert npdg.solve(equation(), seconds=1.0, seed=0, **SMALL).polished


@pytest.mark.parametrize("twice", [False, True])
def test_an_interruption_in_the_polish_is_not_called_the_end_of_the_seconds(twice):
    settings = options(equation(), **SMALL)[0]
    method = make_method("equation", "npdg", **SMALL)
    with precision("float64"):
        recipe = method.recipe(equation(), settings)
        trained = Progress(initial(recipe, 0), recipe, settings, seconds=5.0, stop=StopReason.SECONDS)
    u = trained.state.fields["u"]
    # On a slow machine a row a parameter takes a tenth of a second, and there is no time for a second space.
    clock = Steady(rate=SPEED if twice else 2 * parameter_count(u) ** 3 / 0.1)
    assert in_two_spaces(6.0, u, clock.speed()) == twice
    events = Events(should_stop=lambda: "interrupted")
    progress = Correct()(context(Budget(seconds=6.0), [settings], events=events, clock=clock), trained)
    assert progress.stop == "interrupted"
    assert progress.state is trained.state
    assert "was interrupted and was left out" in progress.detail


@pytest.mark.slow
def test_polish_gains_and_is_saved_and_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(npdg.Solution, "error_estimate", lambda self: None)  # not what this is about
    # On a busy machine a fifth of so few seconds is less than one batch.
    monkeypatch.setattr(correction, "CORRECTION_SHARE", 0.5)
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
    assert all(not s.stages.correction for s in options(equation(), precision="float32"))


@pytest.mark.slow
def test_the_better_network_is_taken_and_the_first_convincing_one_at_once(monkeypatch):
    candidates = options(equation(), n_interior=200, n_boundary=40)
    assert len({(s.network.activation, s.network.depth) for s in candidates}) == len(candidates) == 3
    poor, good = (candidates[0].changed(width=width) for width in (1, 16))
    trials: list[Trial] = []

    def watched(*arguments: Any) -> Trial:
        trials.append(tried(*arguments))
        return trials[-1]

    monkeypatch.setattr(selection, "tried", watched)

    def select(*settings: Settings) -> Progress:
        trials.clear()
        chosen: list[Settings] = []
        events = Events(on_chosen=chosen.append)
        progress = Select()(context(Budget(seconds=3.0), list(settings), events=events), None)
        assert chosen == [progress.settings]
        assert progress.tried == tuple(str(trial) for trial in trials)
        return progress

    best = select(poor, good)
    assert best.settings == good
    winner = next(trial for trial in trials if trial.progress.state is best.state)
    assert winner.merit == min(trial.merit for trial in trials)
    assert best.seconds == max(trial.progress.seconds for trial in trials)  # a trial is part of the run
    best = select(good, poor)
    assert len(trials) == 1
    assert best.state is trials[0].progress.state
    assert trials[0].ratio <= selection.CONVINCING


def test_who_chooses_the_network_gets_no_trial():
    assert len(options(in_dimension(5))) > 1
    assert len(options(in_dimension(5), depth=3)) == 1
    assert len(options(find("poisson").build(10), preset="paper")) == 1
    assert len(options(in_dimension(5), "pd-adam")) == 1


def test_a_plateau_is_noticed_and_progress_is_not_called_one():
    assert "plateau" in descent.plateau_remark(run_of([1.0] * 10 + [0.1, 0.11] * 10))
    assert descent.plateau_remark(run_of([0.8**k for k in range(30)])) == ""
    assert descent.plateau_remark(run_of([1.0, 1.0, 1.0])) == ""  # too few steps to tell


def test_a_budget_below_one_step_is_said():
    assert "one step took 1.0 s" in descent.short_budget_remark(run_of([1.0]), 0.1)
    assert descent.short_budget_remark(run_of([1.0, 1.0]), 0.1) == ""


def test_a_review_speaks_of_runs_that_used_up_their_seconds_alone():
    standing = run_of([1.0] * 30)
    seconds = context(Budget(seconds=30.0))
    assert "plateau" in descent.Review(plateau=True)(seconds, standing).detail
    assert descent.Review(plateau=False)(seconds, standing).detail == ""
    assert descent.Review(plateau=True)(context(Budget(steps=30)), standing).detail == ""
    assert descent.Review(plateau=True)(seconds, replace(standing, stop=StopReason.STALLED)).detail == ""
    assert "one step took 1.0 s" in descent.Review()(context(Budget(seconds=0.1)), run_of([1.0])).detail


def test_a_network_too_large_for_the_memory_is_refused():
    with pytest.raises(npdg.InputError, match="solver=cg"):
        npdg.solve(equation(), steps=1, width=65536)


def test_a_second_tangent_space_is_for_runs_that_have_the_time_for_its_rows():
    middle, large = MLP(10, 32, 3, key=jax.random.key(0)), MLP(20, 128, 2, key=jax.random.key(0))
    enough = ENOUGH_ROWS * (2 * parameter_count(middle)) ** 3 / (SPEED / 2)
    assert not in_two_spaces(0.9 * enough / CORRECTION_SHARE, middle, SPEED)
    assert in_two_spaces(1.1 * enough / CORRECTION_SHARE, middle, SPEED)
    assert in_two_spaces(0.9 * enough / CORRECTION_SHARE, middle, 2 * SPEED)  # which a faster machine has
    assert correction_seconds(1.1 * enough / CORRECTION_SHARE, middle, SPEED) == pytest.approx(1.1 * enough)
    one = parameter_count(middle) ** 3 / (SPEED / 2)
    assert correction_seconds(20 * one, middle, SPEED) == pytest.approx(ENOUGH_ROWS * one)
    assert not in_two_spaces(1e6, large, SPEED)


def test_a_batch_of_the_polish_has_no_more_rows_than_its_seconds_are_enough_for():
    u = MLP(20, 128, 2, key=jax.random.key(0))
    size = parameter_count(u)
    one = size**3 / (SPEED / 2)
    points = points_in(3 * one, u, SPEED)
    sizes = correction_recipe(equation(), Linearised.at(u, (u,)), per_coefficient=points).sizes
    rows = sizes["interior"] + 2 * sizes["boundary"]  # a trace is two rows
    assert 3 * size / 2**0.5 < rows <= 3 * size  # of a few sizes, whose programs may be there
    assert points_in(0.1 * one, u, SPEED) == FEWEST_ROWS / 2  # what is begun has its fewest rows
    assert points_in(1e6, u, SPEED) == BATCH_POINTS


def test_a_run_that_has_few_seconds_left_is_polished_with_few_rows(monkeypatch):
    asked: list[tuple[float, Limits]] = []

    def watched(context: Context, before: Progress, start: Linearised, plan: Plan, limits: Limits) -> Progress:
        asked.append((plan.per_coefficient, limits))
        return before

    monkeypatch.setattr(correction, "corrected", watched)
    u = MLP(10, 64, 2, key=jax.random.key(0))
    trained = run_of([1.0] * 5, u)
    # On a machine on which a row a parameter takes a second, and which is given half of ten.
    clock = Steady(rate=2 * parameter_count(u) ** 3)
    Correct()(context(Budget(seconds=10.0), clock=clock), trained)
    ((points, limits),) = asked
    assert points == 2  # the next below 5/2
    assert limits == Limits(seconds=10.0)


def test_a_second_space_is_not_begun_when_the_first_batch_took_all_the_seconds(monkeypatch):
    asked: list[Limits] = []

    def slow(context: Context, before: Progress, start: Linearised, plan: Plan, limits: Limits) -> Progress:
        asked.append(limits)
        return replace(before, seconds=before.seconds + took)

    monkeypatch.setattr(correction, "corrected", slow)
    trained, within = run_of([1.0] * 8, net()), context(Budget(seconds=10.0))
    assert in_two_spaces(10.0, net(), SPEED)
    took = 2.5
    assert Correct()(within, trained).detail == ""  # nothing is said to be left out
    assert asked == [Limits(steps=1)]
    took = 1.0
    Correct()(within, trained)
    assert asked[1:] == [Limits(steps=1), Limits(seconds=10.0)]


def test_what_training_took_too_long_is_not_taken_from_the_polish(monkeypatch):
    asked: list[Limits] = []

    def watched(context: Context, before: Progress, start: Linearised, plan: Plan, limits: Limits) -> Progress:
        asked.append(limits)
        return before

    monkeypatch.setattr(correction, "corrected", watched)
    Correct()(context(Budget(seconds=10.0)), run_of([1.0] * 50, net()))
    assert asked[-1] == Limits(seconds=52.0)


def test_the_polish_is_not_for_runs_of_steps_nor_for_who_does_not_want_it():
    trained = run_of([1.0] * 8, net())
    assert Correct()(context(Budget(steps=8)), trained) is trained
    unwanted = replace(trained, settings=trained.settings.changed(polish=False))
    assert Correct()(context(Budget(seconds=10.0)), unwanted) is unwanted
    assert Correct().reserve(context(Budget(seconds=10.0)), unwanted, 10.0) == 0.0
    assert Correct().reserve(context(Budget(seconds=10.0)), trained, 10.0) == 2.0


def test_the_polish_gets_a_share_or_what_its_rows_take_and_nothing_if_that_is_too_much():
    small, large = net(), MLP(50, 128, 2, key=jax.random.key(0))
    assert correction_seconds(10.0, small, SPEED) == 2.0
    assert correction_seconds(1000.0, small, SPEED) == 40.0
    row_each = parameter_count(large) ** 3 / SPEED
    assert correction_seconds(1000.0, large, SPEED) == pytest.approx(ENOUGH_ROWS * row_each)
    assert correction_seconds(8 * row_each, large, SPEED) == pytest.approx(4 * row_each)  # half of the seconds
    assert correction_seconds(3.9 * row_each, large, SPEED) == 0.0
    assert correction_seconds(1e6, MLP(100, 256, 2, key=jax.random.key(0)), SPEED) == 0.0

"""The last stage: a linear solve for a correction of u, in one tangent space, or in two where there is time.

In two, one batch tells the first correction, and where it leaves u most undetermined; then both spaces are solved in.
"""

import math
from dataclasses import dataclass, replace

import equinox as eqx
import jax
from jax import Array

from npdg.fields.base import Field, parameter_count
from npdg.fields.tangent import Linearised
from npdg.precision import precision
from npdg.problem.pde import PDE
from npdg.rules.pooled import TRIANGULAR
from npdg.training.loop import advance
from npdg.training.progress import Events, Limits, Progress
from npdg.training.stages.base import Context
from npdg.training.stages.trial import merit_of, replay
from npdg.training.step import Recipe, State, initial
from npdg.training.stopping import StopReason
from npdg.training.tangent_space import (
    BATCH_POINTS,
    LARGEST_DENSE,
    RARE_POINTS,
    WORST_POINTS,
    as_float64,
    correction,
    doubled,
    posterior_draws,
)

CORRECTION = "correction"
CORRECTION_SHARE, LONGEST_CORRECTION = 0.2, 40.0  # Part of a run's seconds, and how many it is at the most.
FEWEST_ROWS = 2  # Rows per parameter that there must be time for.
# Rows per parameter below which a second tangent space over-fits. For them, one space may take half of the seconds.
ENOUGH_ROWS = 8
ROWS_PER_POINT = 2  # An interior point brings one row, and half a boundary point with two.
# Interior points per coefficient of the one batch that tells the second space, and of the batches in both spaces.
FIRST_POINTS, SECOND_POINTS = 2, 1.5


def in_two_spaces(seconds: float, u: Field, speed: float) -> bool:
    """Whether a run of so many seconds has the time for a second tangent space: with few rows it fits the samples."""
    columns = 2 * parameter_count(u)
    return columns <= TRIANGULAR and ENOUGH_ROWS * _row_each(columns, speed) <= _share(seconds)


def correction_seconds(seconds: float, u: Field, speed: float) -> float:
    """How many of a run's seconds the correction gets: its share or what enough rows take, and none if the fewest rows
    would take more than half."""
    size = parameter_count(u)
    one = _row_each(size, speed)
    if size > LARGEST_DENSE or FEWEST_ROWS * one > seconds / 2:
        return 0.0
    return min(max(_share(seconds), ENOUGH_ROWS * one), seconds / 2)


def points_in(seconds: float, u: Field, speed: float) -> float:
    """Interior points per parameter of one batch: as many as the seconds are enough for, but never too few rows."""
    rows = max(seconds / _row_each(parameter_count(u), speed), FEWEST_ROWS)
    # One of a few numbers, so that a program that was compiled ahead, or is kept, fits.
    return float(2 ** (math.floor(2 * math.log2(min(BATCH_POINTS, rows / ROWS_PER_POINT))) / 2))


def _share(seconds: float) -> float:
    return min(CORRECTION_SHARE * seconds, LONGEST_CORRECTION)


def _row_each(columns: int, speed: float) -> float:
    """Seconds for a row a column; a triangular factor takes twice those of a Gram matrix."""
    return columns**3 / (speed / 2 if columns <= TRIANGULAR else speed)


@dataclass(frozen=True)
class Correct:
    """Solve for the correction, and take it if it is better on fresh points."""

    def __call__(self, context: Context, progress: Progress | None) -> Progress:
        assert progress is not None
        seconds, u = context.budget.seconds, progress.state.fields["u"]
        reserved = self.reserve(context, progress, seconds or 0.0)
        if reserved == 0 or seconds is None:
            return progress
        # What training took too long, by a machine that was busy, is not taken from the correction.
        until = max(seconds, progress.seconds + reserved)
        speed = context.clock.speed()
        with precision("float64"):
            return self._corrected(context, progress, until, in_two_spaces(seconds, u, speed), speed)

    def reserve(self, context: Context, progress: Progress, seconds: float) -> float:
        if not context.timed or not progress.settings.stages.correction:
            return 0.0
        return correction_seconds(seconds, progress.state.fields["u"], context.clock.speed())

    def _first(self, context: Context, progress: Progress, until: float, u: Field, speed: float) -> "Plan":
        """What is solved in the first tangent space: one batch if a second follows, else what there is time for."""
        if in_two_spaces(context.budget.seconds or 0.0, u, speed):
            return Plan(FIRST_POINTS)
        left = max(until - progress.seconds, 0.0)
        return Plan(points_in(min(left, correction_seconds(until, u, speed)), u, speed))

    def _corrected(self, context: Context, trained: Progress, until: float, twice: bool, speed: float) -> Progress:
        u = as_float64(trained.state.fields["u"])
        start, plan = Linearised.at(u, (u,)), self._first(context, trained, until, u, speed)
        if twice:
            one = Limits(steps=int(trained.state.step) + 1)
            trained = corrected(context, trained, start, plan, one)
            found = trained.state.fields["u"]
            if isinstance(found, Linearised):
                draws = posterior_draws(trained.state.rules["u"].matrix, jax.random.key(context.seed))
                start, plan = doubled(found), Plan(SECOND_POINTS, RARE_POINTS, draws)
        ended = trained.stop is not None and not trained.stop.goes_on
        if ended or trained.seconds >= until:  # the first batch may have taken it all
            return trained
        return corrected(context, trained, start, plan, Limits(seconds=until))


@dataclass(frozen=True)
class Plan:
    """How a correction is solved for: interior points per coefficient, and where some of them are sought."""

    per_coefficient: float
    worst: tuple[float, int] = WORST_POINTS
    draws: Array | None = None

    def recipe(self, pde: PDE, start: Linearised) -> Recipe:
        """The run for the coefficients of `start`."""
        return correction(pde, start, per_coefficient=self.per_coefficient, worst=self.worst, draws=self.draws)


def corrected(context: Context, before: Progress, start: Linearised, plan: Plan, limits: Limits) -> Progress:
    """A run for the coefficients of `start`, taken if it is better on fresh points."""
    recipe = plan.recipe(context.problem, start)
    state: State = eqx.tree_at(lambda s: s.step, initial(recipe, context.seed), before.state.step)
    begun = replace(before, state=state, recipe=recipe, program=None, detail="")
    last = limits.seconds is not None
    evaluate = context.method.meter(context.problem, before.settings) if last else (lambda state: {})
    quiet = Events(should_stop=context.events.should_stop)
    after = advance(begun, limits, quiet, stage=CORRECTION, evaluate=evaluate, clock=context.clock)
    assert after.stop is not None
    ended = after.stop in (StopReason.SECONDS, StopReason.STEPS, StopReason.DIVERGED)
    stop = before.stop if ended else after.stop
    merit = merit_of(context.problem)
    if merit(after.state.fields) < merit({"u": start}):  # also of one that diverged after it
        replay(after, len(before.history), context.events)
        return replace(after, stop=stop, detail=before.detail)
    remark = f"the linear correction was {'not better' if ended else after.stop} and was left out"
    left_out = replace(before, stop=stop, seconds=after.seconds, compile_seconds=after.compile_seconds)
    return left_out.remarked(remark)

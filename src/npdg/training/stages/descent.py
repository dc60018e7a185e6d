"""The training itself, and a look back at it."""

import statistics
from dataclasses import dataclass

from npdg.precision import precision
from npdg.training.progress import Events, Progress
from npdg.training.rollback import go_on
from npdg.training.stages.base import TRAINING, Context, handed_over
from npdg.training.stopping import StopReason, last_stage

NO_PROGRESS = 0.8  # A median merit above this part of that in the third of the time before is a plateau.


def train(context: Context, progress: Progress, stage: str, events: Events | None = None) -> Progress:
    """Train with the progress's own settings to where the present stage ends."""
    settings = progress.settings
    with precision(settings.precision):
        return go_on(
            progress,
            context.recipe_after(settings),
            context.budget.rollbacks,
            context.limits,
            context.events if events is None else events,
            stage=stage,
            evaluate=context.method.meter(context.problem, settings),
            clock=context.clock,
        )


@dataclass(frozen=True)
class Descend:
    """Train until the seconds of this stage, or the steps of the run, are used up."""

    def __call__(self, context: Context, progress: Progress | None) -> Progress:
        assert progress is not None
        if handed_over(progress):  # a resumed run that was past this stage
            return progress
        return train(context, progress, TRAINING)

    def reserve(self, context: Context, progress: Progress, seconds: float) -> float:
        return 0.0


@dataclass(frozen=True)
class Review:
    """Say so if the budget was too small for a step or, with `plateau`, if the last part of it brought no progress."""

    plateau: bool = False

    def __call__(self, context: Context, progress: Progress | None) -> Progress:
        assert progress is not None
        if not context.timed or progress.stop is not StopReason.SECONDS:
            return progress
        assert context.budget.seconds is not None
        return progress.remarked(
            short_budget_remark(progress, context.budget.seconds) or (plateau_remark(progress) if self.plateau else "")
        )

    def reserve(self, context: Context, progress: Progress, seconds: float) -> float:
        return 0.0


def short_budget_remark(progress: Progress, seconds: float) -> str:
    """A sentence if not even one step fitted into the budget."""
    if len(progress.history) != 1 or progress.seconds <= 1.5 * seconds:
        return ""
    return (
        f"one step took {progress.seconds:.1f} s, more than the budget of {seconds:g} s; give more seconds, or set a "
        "smaller n_interior or width"
    )


def plateau_remark(progress: Progress) -> str:
    """A sentence if the last third of the time brought no progress over the third before it."""
    if not progress.history:
        return ""
    stage = last_stage(progress.history)
    began = 0.0 if len(stage) == len(progress.history) else stage[0].seconds
    third = (progress.seconds - began) / 3
    merits = [(record.seconds - began, record.rms_residual**2) for record in stage if record.rms_residual is not None]
    middle = [merit for at, merit in merits if third < at <= 2 * third]
    last = [merit for at, merit in merits if at > 2 * third]
    if min(len(middle), len(last)) < 5 or statistics.median(last) < NO_PROGRESS * statistics.median(middle):
        return ""
    return (
        f"plateau: the residual has stayed near its value at {began + third:.0f} s; a wider or deeper network may help"
    )

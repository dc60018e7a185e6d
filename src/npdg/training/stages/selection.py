"""The first stage: a short trial chooses the network, where there is a choice.

No shape is best for every equation, and theory does not tell which. The candidates train one after the other for a
small part of the budget. The first whose residual falls twentyfold in its trial is taken at once, so that an easy
equation pays nothing; otherwise the one with the smallest residual is. What is compared is the same for all: residual
and boundary mismatch on the same fresh points.
"""

from dataclasses import dataclass, replace
from typing import Any

from npdg.precision import precision
from npdg.training.loop import advance
from npdg.training.progress import Events, Limits, Progress
from npdg.training.stages.base import TRAINING, Context
from npdg.training.stages.trial import Trial, replay, tried
from npdg.training.stopping import StopReason

CONVINCING = 2.5e-3  # A trial that lowers |residual|² to this part of its start is taken at once.
TRIAL_SHARE, LONGEST_TRIAL = 0.2, 4.0  # Part of a run's seconds that a trial takes, and its seconds at the most.


def trial_seconds(settings: Any, seconds: float) -> float:
    """Seconds of one candidate's trial; a deeper network's steps take longer."""
    return min(TRIAL_SHARE * seconds, LONGEST_TRIAL) * (2 if settings.network.depth > 2 else 1)


@dataclass(frozen=True)
class Select:
    """Begin a run: with the only candidate, from a checkpoint, or with the best of several."""

    def __call__(self, context: Context, progress: Progress | None) -> Progress:
        if context.timed and len(context.candidates) > 1:
            return self._best(context)
        settings = context.candidates[0]
        with precision(settings.precision):
            checkpoints = context.events.checkpoints
            fresh = context.fresh(settings, checkpoints.rollbacks)
            begun = checkpoints.restore(fresh) or fresh
        context.events.on_chosen(settings)
        return begun

    def reserve(self, context: Context, progress: Progress, seconds: float) -> float:
        return 0.0

    def _best(self, context: Context) -> Progress:
        trials = self.trials(context)
        best = min(trials, key=lambda trial: trial.merit).progress
        context.events.on_chosen(best.settings)
        replay(best, 0, context.events)
        if best.stop is not None and not best.stop.goes_on and best.stop is not StopReason.DIVERGED:
            context.events.checkpoints.trained(best)
        return replace(
            best,
            seconds=max(trial.progress.seconds for trial in trials),
            compile_seconds=sum(trial.progress.compile_seconds for trial in trials),
            tried=tuple(str(trial) for trial in trials),
        )

    def trials(self, context: Context) -> list[Trial]:
        """Train each candidate for its share of the seconds, until one convinces."""
        trials: list[Trial] = []
        spent, seconds = 0.0, context.budget.seconds
        assert seconds is not None
        for settings in context.candidates:
            with precision(settings.precision):
                start = replace(context.fresh(settings), seconds=spent)
                limits = Limits(spent + trial_seconds(settings, seconds))
                events = Events(should_stop=context.events.should_stop)
                evaluate = context.method.meter(context.problem, settings)
                train = lambda s=start, lim=limits, e=events, m=evaluate: advance(
                    s, lim, e, stage=TRAINING, evaluate=m, clock=context.clock
                )
                trials.append(tried(context.problem, start, train))
            spent = trials[-1].progress.seconds
            stop = trials[-1].progress.stop
            if trials[-1].ratio <= CONVINCING or stop not in (StopReason.SECONDS, StopReason.DIVERGED):
                break
        return trials

"""The first stage: a short trial chooses the network, where there is a choice.

No shape is best for every equation, and theory does not tell which. The candidates train one after the other for a
small part of the budget. The first whose residual falls twentyfold in its trial is taken at once, so that an easy
equation pays nothing; otherwise the one with the smallest residual is. What is compared is the same for all: residual
and boundary mismatch on the same fresh points. In few dimensions sums of random features are tried before all of them.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

from npdg.precision import precision
from npdg.training.loop import advance
from npdg.training.progress import Events, Limits, Progress
from npdg.training.stages.base import TRAINING, Context, take_beside
from npdg.training.stages.features import MOST_DIMENSIONS, Search, as_trial
from npdg.training.stages.trial import Trial, merit_of, replay, tried
from npdg.training.stopping import StopReason, asked_to_stop
from npdg.training.tangent_space import as_float64

CONVINCING = 2.5e-3  # A trial that lowers |residual|² to this part of its start is taken at once.
SEPARATED = 1e-5  # The same for a sum of products, which falls fast at first on what it cannot hold as well.
FEATURES_SHARE = 0.25  # Part of a run's seconds for the first search for features.
HOPEFUL = 1e-16  # |residual|² relative to that of u = 0, below which features are all that is tried.
LEAD = 1e4  # Times that |residual|² of a network is larger than that of features, after which no other is tried.
MOSTLY = 0.6  # Part of a run's seconds after which no network is trained beside features that are better.
TRIAL_SHARE, LONGEST_TRIAL = 0.2, 4.0  # Part of a run's seconds that a trial takes, and its seconds at the most.


def trial_seconds(settings: Any, seconds: float) -> float:
    """Seconds of one candidate's trial; a deeper network's steps take longer."""
    return min(TRIAL_SHARE * seconds, LONGEST_TRIAL) * (2 if settings.network.depth > 2 else 1)


@dataclass(frozen=True)
class Select:
    """Begin a run: with the only candidate, from a checkpoint, or with the best of several.

    With `features`, sums of random features are tried first, in few dimensions.
    """

    features: bool = False

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
        seconds = context.budget.seconds
        assert seconds is not None
        search, linear = None, None
        if self.features and context.problem.dim <= MOST_DIMENSIONS:
            with precision("float64"):
                search = Search(context)
                search.run(FEATURES_SHARE * seconds)
                linear = as_trial(context, search)
        if linear is not None and linear.progress.stop is not None:
            return self._taken(context, [linear], linear)
        if search is not None and linear is not None and linear.ratio <= HOPEFUL:
            return self._finished(context, search)
        hopeless = math.inf if linear is None else LEAD * linear.merit
        trials = self.trials(context, 0.0 if search is None else search.spent, hopeless)
        best = min(trials, key=lambda trial: trial.merit)
        if search is None or linear is None or linear.merit > best.merit:
            return self._taken(context, [*trials, *([] if linear is None else [linear])], best, linear)
        with precision("float64"):
            before = search.spent
            search.run(search.spent + max(seconds - _spent(trials), 0.0))
            linear = as_trial(context, search) or linear
        spent = _spent(trials) + search.spent - before
        linear = replace(linear, progress=replace(linear.progress, seconds=spent))
        if linear.progress.stop is None and spent < MOSTLY * seconds:  # there is time to train the network as well
            late = replace(best, progress=replace(best.progress, seconds=spent))
            return self._taken(context, [linear, *trials], late, linear)
        return self._taken(context, [linear, *trials], _ended(context, linear))

    def _finished(self, context: Context, search: Search) -> Progress:
        """The search alone, to the end of the run's seconds."""
        assert context.budget.seconds is not None
        with precision("float64"):
            search.run(context.budget.seconds)
            linear = as_trial(context, search)
        assert linear is not None
        return self._taken(context, [linear], _ended(context, linear))

    def _taken(self, context: Context, trials: list[Trial], best: Trial, beside: Trial | None = None) -> Progress:
        chosen = best.progress
        context.events.on_chosen(chosen.settings)
        replay(chosen, 0, context.events)
        if chosen.stop is not None and not chosen.stop.goes_on and chosen.stop is not StopReason.DIVERGED:
            context.events.checkpoints.trained(chosen)
        return replace(
            chosen,
            seconds=max(_spent(trials), chosen.seconds),
            compile_seconds=sum(trial.progress.compile_seconds for trial in trials),
            tried=tuple(str(trial) for trial in trials),
            beside=None if beside is None or beside is best else beside.progress,
        )

    def trials(self, context: Context, spent: float = 0.0, hopeless: float = math.inf) -> list[Trial]:
        """Train each candidate for its share of the seconds, until one convinces; some may be spent already.

        After one whose merit is above `hopeless`, no other is tried.
        """
        trials: list[Trial] = []
        seconds = context.budget.seconds
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
            enough = SEPARATED if settings.network.rank > 0 else CONVINCING
            decided = trials[-1].ratio <= enough or trials[-1].merit > hopeless
            if decided or stop not in (StopReason.SECONDS, StopReason.DIVERGED):
                break
        return trials


def _spent(trials: list[Trial]) -> float:
    return max(trial.progress.seconds for trial in trials)


def _ended(context: Context, linear: Trial) -> Trial:
    """A search that is the end of its run."""
    asked = asked_to_stop(context.events.should_stop())
    stop = linear.progress.stop or asked or StopReason.SEARCHED
    return replace(linear, progress=replace(linear.progress, stop=stop))


@dataclass(frozen=True)
class TakeBetter:
    """End a run with what was tried beside it, if that is better on fresh points."""

    def __call__(self, context: Context, progress: Progress | None) -> Progress:
        assert progress is not None
        beside = progress.beside
        if beside is None or (progress.stop is not None and progress.stop.asked):
            return progress
        with precision("float64"):
            merit = merit_of(context.problem)
            now, other = (merit({"u": as_float64(one.state.fields["u"])}) for one in (progress, beside))
        return progress if now <= other else take_beside(context, progress)

    def reserve(self, context: Context, progress: Progress, seconds: float) -> float:
        return 0.0

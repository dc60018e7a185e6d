"""Hand over from the tangent dual to exact duals: from where the first stands, on with small batches.

The tangent dual leads from anywhere to an error at which it stands. The residual metric leads on from there, if a batch
tells enough of the parameters, and if there is time for some tens of steps. From a random start it fails, and where it
is no better after a third of its time, training goes on as before.
"""

from dataclasses import dataclass, replace

import equinox as eqx
import jax

from npdg.fields.base import Field, parameter_count
from npdg.precision import precision
from npdg.training.loop import advance
from npdg.training.progress import Checkpoints, Events, Progress
from npdg.training.stages.base import HANDOVER, TRAINING, Context, handed_over
from npdg.training.stages.descent import train
from npdg.training.stages.trial import Trial, replay, tried
from npdg.training.step import State, initial
from npdg.training.tangent_space import LARGEST_DENSE, as_float64

HANDOVER_SHARE = 0.75  # Part of the training's seconds that comes after the hand-over.
FEWEST_STEPS = 60  # Steps with exact duals that there must be time for.
STEP_COST = 0.4  # Cost of such a step, relative to dense least squares with one row per parameter.
PROBE_SHARE = 1 / 3  # Part of its seconds after which the hand-over is compared with its start.


def handover_seconds(seconds: float, spent: float, u: Field, speed: float) -> float:
    """How much of the training's seconds comes after the hand-over: a share of them, or what is left of them after
    those that are `spent`; nothing if that is too few steps."""
    size = parameter_count(u)
    part = min(HANDOVER_SHARE * seconds, seconds - spent)
    return part if size <= LARGEST_DENSE and part >= FEWEST_STEPS * STEP_COST * size**3 / speed else 0.0


@dataclass(frozen=True)
class HandOver:
    """Go on with exact duals where a probe of them is better; otherwise as before."""

    def __call__(self, context: Context, progress: Progress | None) -> Progress:
        assert progress is not None
        if not progress.settings.stages.handover:
            return progress
        if handed_over(progress):
            return self._continued(context, progress)
        part = self.reserve(context, progress, context.seconds or 0.0)
        if part > 0:
            return self._probed(context, progress, part)
        # Where training took longer than its part, what is left may be too short to hand over, but not to train on.
        left = context.timed and (context.seconds or 0.0) > progress.seconds
        return train(context, progress, TRAINING) if left else progress

    def reserve(self, context: Context, progress: Progress, seconds: float) -> float:
        if not context.timed or not progress.settings.stages.handover:
            return 0.0
        if handed_over(progress):
            return max(seconds - progress.seconds, 0.0)
        return handover_seconds(seconds, progress.seconds, progress.state.fields["u"], context.clock.speed())

    def _begun(self, context: Context, trained: Progress) -> Progress:
        """The first state with exact duals, from what was trained; to be called in float64."""
        u = as_float64(trained.state.fields["u"])
        chosen = trained.settings.handed_over(parameter_count(u), context.problem.boundary.rows)
        recipe = context.method.recipe(context.problem, chosen)
        state: State = eqx.tree_at(
            lambda state: (state.fields, state.step), initial(recipe, context.seed), ({"u": u}, trained.state.step)
        )
        return replace(trained, state=state, recipe=recipe, settings=chosen, program=None, stop=None)

    def _continued(self, context: Context, before: Progress) -> Progress:
        with precision("float64"):
            begun = self._begun(context, before)
        return self._train(context, begun, before)

    def _probed(self, context: Context, trained: Progress, part: float) -> Progress:
        events = context.events
        events.on_note(f"exact duals in small batches are tried from {trained.seconds:.0f} s on")
        with precision("float64"):
            trial = self._trial(context, trained, part)
        tried_so_far = (*trained.tried, str(trial))
        if trial.ratio < 1:
            replay(trial.progress, len(trained.history), events)
            return self._train(context, replace(trial.progress, tried=tried_so_far), trained)
        seconds, compiled = trial.progress.seconds, trial.progress.compile_seconds
        events.on_note(f"they were no better by {seconds:.0f} s: training goes on as before")
        back = replace(trained, seconds=seconds, compile_seconds=compiled, tried=tried_so_far)
        return train(context, back, TRAINING)

    def _trial(self, context: Context, trained: Progress, part: float) -> Trial:
        begun = self._begun(context, trained)
        limits = replace(context.limits, seconds=trained.seconds + PROBE_SHARE * part)
        quiet = Events(should_stop=context.events.should_stop)
        evaluate = context.method.meter(context.problem, begun.settings)
        train = lambda: advance(begun, limits, quiet, stage=HANDOVER, evaluate=evaluate, clock=context.clock)
        return tried(context.problem, begun, train)

    def _train(self, context: Context, progress: Progress, trained: Progress) -> Progress:
        """To the end of this stage; the settings of the run stay those of the training before."""
        events = replace(context.events, checkpoints=_in_shape_of(trained, context.events.checkpoints))
        return replace(train(context, progress, HANDOVER, events), settings=trained.settings)


def _in_shape_of(trained: Progress, checkpoints: Checkpoints) -> Checkpoints:
    """Keeps states as such of the training before the hand-over, from which a run can be resumed."""

    def like(progress: Progress) -> Progress:
        state = progress.state
        u = jax.tree.map(lambda new, old: new.astype(old.dtype), state.fields["u"], trained.state.fields["u"])
        rules = {"u": trained.recipe.rules["u"].init(u)}  # a good state of before would be a step back
        return replace(progress, state=State({"u": u}, rules, trained.state.key, state.step), program=None)

    return replace(
        checkpoints,
        between=lambda progress: checkpoints.between(like(progress)),
        trained=lambda progress: checkpoints.trained(like(progress)),
    )

"""The late phase of a run with the tangent dual: from where that stands, on with exact duals and small batches.

The tangent dual leads from anywhere to an error at which it stands. The residual metric leads on from there, if a batch
tells enough of the parameters, and if there is time for some tens of steps. From a random start it fails, and where it
is no better after a third of its time, training goes on as before.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import equinox as eqx
import jax

from npdg import methods
from npdg.fields import Field, parameter_count
from npdg.hooks import Keep
from npdg.loop import Outcome, Recipe, Record, State, initial, run
from npdg.pde import PDE, Dirichlet
from npdg.polish import LARGEST, SPEED, as_float64
from npdg.settings import Settings, late_settings
from npdg.trial import Start, judge

SHARE = 0.75  # of the training: in 20-D the tangent dual stands after 8 s
FEWEST = 60  # steps, with fewer of which it is not begun: in 30-D it is even after 40
COST = 0.4  # of a step, beside the polish's for a row a parameter
PROBE = 1 / 3  # of its seconds


def seconds_of(seconds: float, spent: float, u: Field) -> float:
    """How much of the training's seconds the late phase gets: its share of them, or what is left of them after those
    that are `spent`; nothing if that is too few steps."""
    size = parameter_count(u)
    part = min(SHARE * seconds, seconds - spent)
    return part if size <= LARGEST and part >= FEWEST * COST * size**3 / SPEED else 0.0


def begun(history: Sequence[Record]) -> bool:
    """Whether a run with the tangent dual, resumed after these records, was in its late phase."""
    return bool(history) and "pairing" not in history[-1].terms


def begin(pde: PDE, settings: Settings, trained: Outcome, seed: int) -> tuple[Settings, Recipe, State]:
    """What a late phase starts with, from what was trained; to be called in float64."""
    u = as_float64(trained.state.fields["u"])
    chosen = late_settings(settings, parameter_count(u), 2 if isinstance(pde.boundary, Dirichlet) else 1)
    recipe = methods.recipe(pde, "npdg", chosen)
    start: State = eqx.tree_at(
        lambda state: (state.fields, state.step), initial(recipe, seed), ({"u": u}, trained.state.step)
    )
    return chosen, recipe, start


def attempt(pde: PDE, settings: Settings, trained: Outcome, seed: int, seconds: float, **hooks) -> Start:
    """The first third of a late phase of so many seconds, from what was trained; to be called in float64.

    Its `ratio` is below one if it was better on fresh points.
    """
    chosen, recipe, start = begin(pde, settings, trained, seed)
    merit = judge(pde)
    before = merit(start.fields)
    outcome = run(recipe, start, seconds=trained.seconds + PROBE * seconds, spent=trained.seconds, **hooks)
    after = merit(outcome.state.fields) if outcome.stop_reason != "diverged" else math.inf
    return Start(chosen, recipe, outcome, after, after / before if before > 0 else math.inf)


def kept_as(recipe: Recipe, trained: State, keep: Keep) -> Keep:
    """Keeps the states of a late phase as such of the training before it, from which a run can be resumed."""

    def like(outcome: Outcome) -> Outcome:
        state = outcome.state
        u = jax.tree.map(lambda new, old: new.astype(old.dtype), state.fields["u"], trained.fields["u"])
        rules = {"u": recipe.rules["u"].init(u)}  # a good state of before would be a step back
        return replace(outcome, state=State({"u": u}, rules, trained.key, state.step), program=None)

    return replace(
        keep,
        between=lambda outcome: keep.between(like(outcome)),
        trained=lambda outcome: keep.trained(like(outcome)),
    )

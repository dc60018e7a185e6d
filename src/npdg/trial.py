"""A short trial that chooses the network: no shape is best for every equation, and theory does not tell which.

The candidates train one after the other for a small part of the budget. The first whose residual falls twentyfold
in its trial is taken at once, so that an easy equation pays nothing; otherwise the one with the smallest residual is.
What is compared is the same for all: residual and boundary mismatch on the same fresh points.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from npdg import methods
from npdg.formulations.least_squares import least_squares
from npdg.loop import Outcome, Recipe, initial, run
from npdg.pde import PDE
from npdg.saddle import Fields
from npdg.settings import Settings
from npdg.sizes import shape

CONVINCING = 2.5e-3  # of |residual|², relative to the start
POINTS = {"interior": 2000, "boundary": 400}


@dataclass(frozen=True)
class Start:
    """Where training goes on from: the settings chosen, their recipe, and the outcome of their trial."""

    settings: Settings
    recipe: Recipe
    outcome: Outcome
    merit: float
    ratio: float

    def __str__(self) -> str:
        return (
            f"{shape(self.settings)}, {self.settings.dual} dual: |residual|² fell to {self.ratio:.1e} of its start in "
            f"{len(self.outcome.history)} steps"
        )


def judge(pde: PDE) -> Callable[[Fields], float]:
    """|residual|² and boundary mismatch of any field on the same points."""
    saddle = least_squares(pde, boundary_norm="h1")
    samples = saddle.sample(jax.random.key(2**31), POINTS)
    value = jax.jit(lambda fields: saddle.value(fields, samples, "u"))

    def merit(fields: Fields) -> float:
        result = float(value({"u": fields["u"]}))
        return result if jnp.isfinite(result) else float("inf")

    return merit


def share(settings: Settings, seconds: float) -> float:
    """Seconds of one candidate's trial; a deeper network's steps take longer."""
    return min(seconds / 5, 4.0) * (2 if settings.depth > 2 else 1)


def choose_start(
    pde: PDE,
    method: str,
    candidates: list[Settings],
    seed: int,
    seconds: float,
    precision: Callable[[str], Any],
    **hooks: Any,
) -> tuple[Start, list[Start]]:
    """Train each candidate for its share of the seconds; the best one, and all that were tried."""
    tried: list[Start] = []
    spent = 0.0
    for settings in candidates:
        with precision(settings.precision):
            recipe = methods.recipe(pde, method, settings)
            state = initial(recipe, seed)
            merit = judge(pde)
            before = merit(state.fields)
            outcome = run(recipe, state, seconds=spent + share(settings, seconds), spent=spent, **hooks)
            after = merit(outcome.state.fields) if outcome.stop_reason != "diverged" else float("inf")
        spent = outcome.seconds
        tried.append(Start(settings, recipe, outcome, after, after / before if before > 0 else 0.0))
        if tried[-1].ratio <= CONVINCING or outcome.stop_reason not in ("seconds", "diverged"):
            break
    return min(tried, key=lambda start: start.merit), tried

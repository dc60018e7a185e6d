"""Trials: some training whose outcome is compared with its start, on points that are the same for all."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
from jax import Array

from npdg.compilation import jit, once_for_each
from npdg.formulations.least_squares import hardy_weight, least_squares
from npdg.problem.pde import PDE
from npdg.saddle.saddle import Fields
from npdg.training.progress import Events, Progress
from npdg.training.stopping import StopReason

MERIT_POINTS = {"interior": 2000, "boundary": 400}


@dataclass(frozen=True)
class Trial:
    """What came of trying some settings: the progress, its merit (the less the better), and that over the start's."""

    progress: Progress
    merit: float
    ratio: float

    def __str__(self) -> str:
        settings, steps = self.progress.settings, len(self.progress.history)
        return f"{settings.in_words()}: |residual|² fell to {self.ratio:.1e} of its start in {steps} steps"


@once_for_each
def merit_of(pde: PDE) -> Callable[[Fields], float]:
    """|residual|², weighed by Hardy's inequality, and boundary mismatch of any field on the same points; infinite if
    not finite."""
    saddle = least_squares(pde, boundary_norm="h1", weight=hardy_weight(pde))

    @jit
    def value(fields: Fields, key: Array) -> Array:
        return saddle.value(fields, saddle.sample(key, MERIT_POINTS), "u")

    def merit(fields: Fields) -> float:
        result = float(value({"u": fields["u"]}, jax.random.key(2**31)))
        return result if math.isfinite(result) else math.inf

    return merit


def tried(pde: PDE, start: Progress, train: Callable[[], Progress]) -> Trial:
    """Train, and compare what came out with the start."""
    merit = merit_of(pde)
    before = merit(start.state.fields)
    progress = train()
    after = merit(progress.state.fields) if progress.stop is not StopReason.DIVERGED else float("inf")
    return Trial(progress, after, after / before if before > 0 else (0.0 if after == 0 else float("inf")))


def replay(progress: Progress, since: int, events: Events) -> None:
    """Report the records from some number on, which were kept back until they were known to be part of the run."""
    measured = any(record.errors for record in progress.history)
    for record in progress.history[since:]:
        if record.errors or not measured:
            events.report(record)

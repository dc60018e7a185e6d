"""Why a run ends, and rules by which it may end before its budget is used up. Importable without jax."""

from __future__ import annotations

import enum
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from npdg.errors import InputError, unknown
from npdg.training.records import Record


class StopReason(enum.StrEnum):
    """Why a run, or a part of one, ended; `advice` says what a user may do about it."""

    STEPS = "steps"
    SECONDS = "seconds"
    DONE = "done"
    TOLERANCE = "tolerance"
    ROUNDING = "rounding"
    SEARCHED = "searched"
    STALLED = "stalled"
    DIVERGED = "diverged"
    INTERRUPTED = "interrupted"
    TERMINATED = "terminated"
    STOPPED = "stopped"
    UNTIL_REL_L2 = "until rel_l2"
    UNTIL_REL_H1 = "until rel_h1"
    UNTIL_RESIDUAL = "until residual"
    UNTIL_PLATEAU = "until plateau"
    UNTIL_MAP_L2 = "until map_l2"
    UNTIL_UVP = "until uvp"
    UNTIL_SLICED_W2 = "until sliced_w2"

    @property
    def advice(self) -> str:
        return _ADVICE.get(self, "what was waited for was reached")

    @property
    def goes_on(self) -> bool:
        """Whether what comes after a part of a run that ended so is still to come."""
        return self in (StopReason.SECONDS, StopReason.STALLED)

    @property
    def asked(self) -> bool:
        """Whether somebody asked the run to stop."""
        return self in (StopReason.INTERRUPTED, StopReason.TERMINATED, StopReason.STOPPED)


_ADVICE = {
    StopReason.STEPS: "the steps asked for were taken; give more with --steps, or seconds instead of steps",
    StopReason.SECONDS: "the training seconds are used up; give more with --seconds, or go on with npdg resume",
    StopReason.DONE: "the last time was reached",
    StopReason.TOLERANCE: "the residual is below the tolerance",
    StopReason.ROUNDING: "the residual is at rounding; more time would not make the error smaller",
    StopReason.SEARCHED: "no larger sum of features fits into the seconds; give more with --seconds",
    StopReason.STALLED: "no further progress was found; try a wider network, more samples or another method",
    StopReason.DIVERGED: "a step was not finite; lower the step sizes, raise damping, or allow --rollbacks 3",
    StopReason.INTERRUPTED: "it was interrupted; go on with npdg resume",
    StopReason.TERMINATED: "it was terminated; go on with npdg resume",
    StopReason.STOPPED: "a callback asked it to stop",
}

Enough = Callable[[Sequence[Record]], StopReason | None]

ERRORS = ("rel_l2", "rel_h1")
OF_MAPS = ("map_l2", "uvp", "sliced_w2")  # the first two need a true map
PLATEAU = "plateau"
WINDOW = 20  # Records that each window of the plateau rule must have, so that a median means something.
PLATEAU_RATIO = 0.95  # A median residual above this part of the one before is no progress.


def never(history: Sequence[Record]) -> None:
    """The rule that never ends a run."""


def asked_to_stop(answer: object) -> StopReason | None:
    """What `should_stop` means by its answer: a reason, any other truth, or nothing."""
    if not answer:
        return None
    known = isinstance(answer, str) and answer in list(StopReason)  # Python 3.11 refuses text in an enumeration
    return StopReason(answer) if known else StopReason.STOPPED


@dataclass(frozen=True)
class Until:
    """What a run waits for: some quantity below a value, or a plateau of the residual."""

    quantity: str
    value: float = 0.0

    @property
    def reason(self) -> StopReason:
        return StopReason(f"until {self.quantity}")

    def met(self, history: Sequence[Record]) -> StopReason | None:
        """The reason to stop, if the last record has what is waited for."""
        if self.quantity == PLATEAU:
            return self.reason if on_plateau(history) else None
        if not history:
            return None
        last = history[-1]
        value = last.rms_residual if self.quantity == "residual" else last.errors.get(self.quantity)
        return self.reason if value is not None and value <= self.value else None


def read_until(text: str) -> Until:
    """`rel_l2=1e-3`, `rel_h1=…`, `residual=…` or `plateau`; an `InputError` for anything else."""
    quantity, equals, value = (part.strip() for part in text.partition("="))
    if quantity == PLATEAU and not equals:
        return Until(PLATEAU)
    if quantity not in (*ERRORS, "residual", *OF_MAPS):
        raise unknown("until", quantity, (*ERRORS, "residual", PLATEAU, *OF_MAPS))
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not (0 < number < math.inf):
        raise InputError(f"until: {text!r} is not allowed; give {quantity}= and a positive number, or {PLATEAU}.")
    return Until(quantity, number)


def on_plateau(history: Sequence[Record]) -> bool:
    """Whether the last third of the steps lowered the median residual by less than a twentieth of the third before.

    Windows that grow with the run suit any pace: where the residual falls like a power of the steps, this is a power
    below 1/10, so that ten times the steps would not bring a fifth.
    """
    if not history:
        return False
    history = last_stage(history)
    before = history[0].step - 1
    third = (history[-1].step - before) / 3
    middle = residuals(record for record in history if before + third < record.step <= before + 2 * third)
    last = residuals(record for record in history if record.step > before + 2 * third)
    if min(len(middle), len(last)) < WINDOW:
        return False
    return statistics.median(last) > PLATEAU_RATIO * statistics.median(middle)


def residuals(records: Iterable[Record]) -> list[float]:
    """The root mean square residuals of records that have one."""
    return [record.rms_residual for record in records if record.rms_residual is not None]


def last_stage(history: Sequence[Record]) -> Sequence[Record]:
    """The records at the end of a history that are of one stage: only those can be compared."""
    stage = history[-1].stage
    others = [k for k, record in enumerate(history) if record.stage != stage]
    return history[others[-1] + 1 :] if others else history

"""Rules by which a run may end before its budget is used up; importable without jax."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from npdg.errors import InputError, unknown

if TYPE_CHECKING:
    from npdg.loop import Record

Enough = Callable[[Sequence["Record"]], str | None]

ERRORS = ("rel_l2", "rel_h1")
OF_MAPS = ("map_l2", "uvp", "sliced_w2")  # the first two need a true map
PLATEAU = "plateau"
WINDOW = 20  # records in each window of the plateau rule, so that a median means something
PROGRESS = 0.95  # of the median residual from one window to the next: less is progress


@dataclass(frozen=True)
class Until:
    """What a run waits for: some quantity below a value, or a plateau of the residual."""

    quantity: str
    value: float = 0.0


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


def stopping_rule(until: Until, method: str, *, exact: bool) -> Enough:
    """The rule as the loop asks it; an `InputError` if the run will never report what it waits for."""
    if until.quantity in OF_MAPS:
        raise InputError(f"until: {until.quantity} is of transport maps; give rel_l2, rel_h1, residual or {PLATEAU}.")
    if until.quantity in ERRORS and not exact:
        raise InputError(
            f"until: {until.quantity} needs an exact solution, which this equation has not; give residual=1e-3, say."
        )
    if until.quantity not in ERRORS and method == "deep-ritz":
        raise InputError(f"until: deep-ritz reports no residual to wait for; give {' or '.join(ERRORS)}.")
    if until.quantity == PLATEAU:
        return lambda history: "until plateau" if on_plateau(history) else None

    value = residual if until.quantity == "residual" else _error(until.quantity)
    return lambda history: f"until {until.quantity}" if history and value(history[-1]) <= until.value else None


def transport_rule(until: Until, *, exact: bool) -> Enough:
    """The same for a transport map, which is `exact` where the true one is known."""
    if until.quantity not in OF_MAPS:
        raise InputError(f"until: {until.quantity} is not of transport maps; give {', '.join(OF_MAPS)}.")
    if until.quantity in ("map_l2", "uvp") and not exact:
        raise InputError(f"until: {until.quantity} needs a true map, which is not known; give sliced_w2=0.05, say.")
    value = _error(until.quantity)
    return lambda history: f"until {until.quantity}" if history and value(history[-1]) <= until.value else None


def _error(quantity: str) -> Callable[[Record], float]:
    return lambda record: record.errors.get(quantity, math.inf)


def on_plateau(history: Sequence[Record]) -> bool:
    """Whether the last third of the steps lowered the median residual by less than a twentieth of the third before.

    Windows that grow with the run suit any pace: where the residual falls like a power of the steps, this is a power
    below 1/10, so that ten times the steps would not bring a fifth.
    """
    if not history:
        return False
    history = last_phase(history)
    before = history[0].step - 1
    third = (history[-1].step - before) / 3
    middle = [residual(record) for record in history if before + third < record.step <= before + 2 * third]
    last = [residual(record) for record in history if record.step > before + 2 * third]
    if min(len(middle), len(last)) < WINDOW:
        return False
    return statistics.median(last) > PROGRESS * statistics.median(middle)


def last_phase(history: Sequence[Record]) -> Sequence[Record]:
    """The records at the end of a history that report the same terms: only those can be compared."""
    names = history[-1].terms.keys()
    others = [k for k, record in enumerate(history) if record.terms.keys() != names]
    return history[others[-1] + 1 :] if others else history


def residual(record: Record) -> float:
    """The root mean square residual that a step reports, by the strong residual or by the dual norm."""
    terms = record.terms
    if "residual" in terms:
        return (2 * terms["residual"]) ** 0.5
    if "residual loss" in terms:
        return terms["residual loss"] ** 0.5
    return abs(terms["pairing"]) ** 0.5

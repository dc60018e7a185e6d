"""Clocks for tests: time that passes as the test says, on a machine whose speed is known."""

import itertools
from dataclasses import dataclass

from npdg.training.clock import Clock

SPEED = 3e10  # rows times columns squared a second


@dataclass(frozen=True)
class Steady(Clock):
    """A machine of a known speed."""

    rate: float = SPEED

    def speed(self) -> float:
        return self.rate


def ticking(seconds: float) -> Steady:
    """A clock by which whatever is timed takes so many seconds."""
    ticks = itertools.count()
    return Steady(lambda: seconds * next(ticks))

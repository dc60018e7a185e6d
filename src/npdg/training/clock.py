"""The only clock of a run, and the speed of the machine, measured."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from scipy.linalg import qr

from npdg.training.running import running

TIMED_ROWS, TIMED_COLUMNS = 2400, 800  # Shape of the matrix that is factorised; a smaller one says too little.
REPEATS = 2


@dataclass(frozen=True)
class Clock:
    """Where a run reads the time from; tests give another one."""

    now: Callable[[], float] = running

    def timed(self, call: Callable[[], Any]) -> tuple[Any, float]:
        """What a call returns when its arrays are there, and the seconds that took."""
        began = self.now()
        result = jax.block_until_ready(call())
        return result, self.now() - began

    def speed(self) -> float:
        """Rows times columns squared that dense normal equations get through in a second."""
        return _measured_speed()


@functools.cache
def _measured_speed() -> float:
    """By triangular factors in float64, which take twice the time of normal equations; measured once a process.

    They are scipy's, whose LAPACK is the one that compiled programs call: nothing has to be compiled for it.
    """
    rows = np.asfortranarray(np.random.default_rng(0).normal(size=(TIMED_ROWS, TIMED_COLUMNS)))
    seconds = min(Clock().timed(lambda: qr(rows, mode="raw", check_finite=False))[1] for _ in range(REPEATS))
    return 2 * TIMED_ROWS * TIMED_COLUMNS**2 / seconds

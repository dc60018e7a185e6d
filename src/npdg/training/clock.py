"""The only clock of a run, and the speed of the machine, measured."""

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

TIMED_ROWS, TIMED_COLUMNS = 4000, 500  # shape of the matrix J whose product JᵀJ is timed
REPEATS = 3
# A pooled least-squares solve, Jacobian included, reaches this part of the product's rate.
SHARE_OF_PRODUCT = 0.4


@dataclass(frozen=True)
class Clock:
    """Where a run reads the time from; tests give another one."""

    now: Callable[[], float] = time.perf_counter

    def timed(self, call: Callable[[], Any]) -> tuple[Any, float]:
        """What a call returns when its arrays are there, and the seconds that took."""
        began = self.now()
        result = jax.block_until_ready(call())
        return result, self.now() - began

    def speed(self) -> float:
        """Rows times columns squared that a dense least-squares solve gets through a second."""
        return _measured_speed()


@functools.cache
def _measured_speed() -> float:
    """The best of a few products in float64, measured once a process."""
    with jax.enable_x64(True):
        rows = jnp.ones((TIMED_ROWS, TIMED_COLUMNS), jnp.float64)
        square = jax.jit(lambda matrix: matrix.T @ matrix)
        jax.block_until_ready(square(rows))
        seconds = min(Clock().timed(lambda: square(rows))[1] for _ in range(REPEATS))
    return SHARE_OF_PRODUCT * TIMED_ROWS * TIMED_COLUMNS**2 / seconds

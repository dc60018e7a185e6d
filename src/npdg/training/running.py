"""The time that a process has been running, without that in which it was stopped. Importable without jax."""

import time

_stopped = 0.0


def add_stopped(seconds: float) -> None:
    """Leave out so many seconds, in which the process was stopped (SIGSTOP, Ctrl-Z) and could not compute."""
    global _stopped
    _stopped += seconds


def running() -> float:
    """Seconds on the wall without those in which the process was stopped."""
    return time.perf_counter() - _stopped

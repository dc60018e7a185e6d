"""The precision in which jax computes, for as long as a part of a run lasts."""

from contextlib import AbstractContextManager

import jax


def precision(name: str) -> AbstractContextManager[None]:
    """The context in which jax computes in float32 or float64; the user's own mode comes back after it."""
    return jax.enable_x64(name == "float64")

"""Arrays that take seconds to compute, kept in the user's cache directory from one run to the next."""

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from npdg.errors import InputError
from npdg.runs.files import write_npz
from npdg.runs.untrusted import read_arrays


def kept(name: str, recipe: str, compute: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The named arrays that `compute` gives; read from the cache if a run with the same recipe left them there."""
    path = _directory() / f"{name}-{hashlib.sha256(recipe.encode()).hexdigest()[:16]}.npz"
    # A cache that cannot be read, or is damaged, is as good as none.
    with contextlib.suppress(OSError, InputError):
        return read_arrays(path)
    arrays = compute()
    # A cache that cannot be written costs the next run some seconds, nothing else.
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_npz(path, arrays)
    return arrays


def _directory() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "npdg"

"""One process at a time in a run directory."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from npdg.errors import InputError

LOCK = "lock"


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """Hold a directory's lock; an `InputError` if another process does. The kernel frees it when its owner dies."""
    handle = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(handle, 20).decode(errors="replace").strip() or "(unknown)"
            raise InputError(
                f"run: {str(directory)!r} is in use by process {owner}; wait until that has ended, or stop it."
            ) from None
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(handle)

"""One process at a time in a run directory."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from npdg.errors import InputError
from npdg.runs.files import opened

try:
    import fcntl
except ImportError:  # Windows, where a handle that is open for writing keeps others out of nothing
    fcntl = None

LOCK = "lock"
_handles: set[int] = set()


def _forget() -> None:
    """A forked child lets go of the locks, which stay its parent's."""
    for handle in _handles:
        os.close(handle)
    _handles.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """Hold a directory's lock; an `InputError` if another process does. The kernel frees it when its owner dies."""
    handle = _locked(directory)
    _handles.add(handle)
    try:
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()}\n".encode())
        yield
    finally:
        _handles.discard(handle)
        if fcntl is not None:  # also where a child that was forked just now still has the handle
            fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def _locked(directory: Path) -> int:
    """A handle of the file `lock` that is locked, and still is the file of that name."""
    path = directory / LOCK
    while True:
        handle = opened(path, os.O_RDWR | os.O_CREAT)
        try:
            if os.fstat(handle).st_nlink > 1:
                raise InputError(f"run: {str(path)!r} is also another file, which would be changed; remove it.")
            if fcntl is None:
                return handle
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _same(handle, path):
                return handle
            os.close(handle)  # somebody removed the file between opening and locking
        except BlockingIOError:
            owner = os.read(handle, 20).decode(errors="replace").strip()
            os.close(handle)
            named = owner if owner.isdecimal() else "(unknown)"
            raise InputError(
                f"run: {str(directory)!r} is in use by process {named}; wait until that has ended, or stop it."
            ) from None
        except BaseException:
            os.close(handle)
            raise


def _same(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False

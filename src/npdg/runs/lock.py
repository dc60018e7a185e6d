"""One process at a time in a run directory."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from npdg.errors import InputError
from npdg.runs.files import opened

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCK = "lock"
FAR = 2**30  # The byte that is locked on Windows.
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
        _lock(handle, release=True)  # also where a child that was forked just now still has the handle
        os.close(handle)


def _locked(directory: Path) -> int:
    """A handle of the file `lock` that is locked, and still is the file of that name."""
    path = directory / LOCK
    while True:
        handle = opened(path, os.O_RDWR | os.O_CREAT)
        try:
            if os.fstat(handle).st_nlink > 1:
                raise InputError(f"run: {str(path)!r} is also another file, which would be changed; remove it.")
            _lock(handle)
            if _same(handle, path):
                return handle
            os.close(handle)  # somebody removed the file between opening and locking
        except (BlockingIOError, PermissionError):
            owner = os.read(handle, 20).decode(errors="replace").strip()
            os.close(handle)
            named = owner if owner.isdecimal() else "(unknown)"
            raise InputError(
                f"run: {str(directory)!r} is in use by process {named}; wait until that has ended, or stop it."
            ) from None
        except BaseException:
            os.close(handle)
            raise


def _lock(handle: int, *, release: bool = False) -> None:
    """Lock a file, or let go of it; an `OSError` if it is another's."""
    if sys.platform == "win32":  # a byte far behind the number of the process, which others may read
        os.lseek(handle, FAR, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK if release else msvcrt.LK_NBLCK, 1)
        os.lseek(handle, 0, os.SEEK_SET)
    else:
        fcntl.flock(handle, fcntl.LOCK_UN if release else fcntl.LOCK_EX | fcntl.LOCK_NB)


def _same(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False

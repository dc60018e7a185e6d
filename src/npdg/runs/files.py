"""The one place that opens files: regular ones, of bounded size, through no symbolic link, and written whole.

A run directory may come from anybody. What is in it is read without following links, waiting for a pipe or reading a
device; what is written is complete under a random name before it takes its own.
"""

import errno
import io
import json
import math
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from npdg.errors import InputError

LARGEST_TEXT = 2**23  # Bytes that a configuration, JSON or a picture may have.
LARGEST_TABLE = 2**26  # Bytes that a table may have.
LARGEST_ARRAYS = 2**33  # Bytes that a file of arrays may have.
CLOSED_ON_EXEC = getattr(os, "O_CLOEXEC", 0)
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
NO_WAIT = getattr(os, "O_NONBLOCK", 0)


def read_bytes(path: Path, most: int = LARGEST_TEXT, *, key: str = "run", follow: bool = False) -> bytes:
    """The content of a regular file of at most so many bytes; anything else is an `InputError` that begins with `key`.

    A link is followed only where the user named the file.
    """
    handle = opened(path, os.O_RDONLY, key=key, follow=follow)
    try:
        parts, size = [], 0
        while size <= most and (part := os.read(handle, 2**20)):
            parts.append(part)
            size += len(part)
    finally:
        os.close(handle)
    if size > most:
        raise InputError(f"{key}: {str(path)!r} is longer than the {most} bytes that such a file may have.")
    return b"".join(parts)


def read_text(path: Path, most: int = LARGEST_TEXT, *, key: str = "run", follow: bool = False) -> str:
    """The same as text."""
    try:
        return read_bytes(path, most, key=key, follow=follow).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{key}: {path} is damaged: {error}.") from None


def opened(path: Path, flags: int, *, key: str = "run", follow: bool = False) -> int:
    """The handle of a regular file that is opened at once and without following a link, or an `InputError`."""
    try:
        handle = os.open(path, flags | CLOSED_ON_EXEC | NO_WAIT | (0 if follow else NO_LINK), 0o644)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise InputError(f"{key}: {str(path)!r} is a symbolic link, which is not followed.") from None
        if error.errno == errno.ENXIO:
            raise _irregular(path, key) from None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _irregular(path, key)
    return handle


def _irregular(path: Path, key: str) -> InputError:
    return InputError(f"{key}: {str(path)!r} is no regular file.")


def real_directory(path: Path) -> Path:
    """A directory inside of a run, made if it is missing; an `InputError` if it is a link or no directory."""
    with suppress(FileExistsError):
        path.mkdir()
    if not stat.S_ISDIR(path.lstat().st_mode):
        raise InputError(f"run: {str(path)!r} is no directory, or a symbolic link, which is not followed.")
    return path


@contextmanager
def new_whole_directory(path: Path) -> Iterator[Path]:
    """A directory to fill, which takes its name when it is complete, or an `InputError` if there is one already."""
    if os.path.lexists(path):
        raise InputError(f"out: {str(path)!r} exists already and is never overwritten; give --out DIR.")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    temporary.mkdir()
    try:
        yield temporary
        temporary.rename(path)
        _sync_directory(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_whole(path: Path, data: bytes | str) -> None:
    """Write a file so that a reader, at any moment and after any crash, finds the old one or the new one."""
    _written(path, data, os.replace)


def write_new(path: Path, data: bytes | str) -> None:
    """The same for a file that must not exist yet."""
    _written(path, data, os.link)


def _written(path: Path, data: bytes | str, take_name: Callable[[Path, Path], None]) -> None:
    content = data.encode() if isinstance(data, str) else data
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | CLOSED_ON_EXEC | NO_LINK, 0o644)
        try:
            write_all(handle, content)
            os.fsync(handle)
        finally:
            os.close(handle)
        take_name(temporary, path)
        _sync_directory(path.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write an object of JSON, whole or not at all."""
    write_whole(path, json.dumps(plain(data), indent=2, allow_nan=False) + "\n")


def write_npz(path: Path, arrays: Mapping[str, Any], *, compressed: bool = False) -> None:
    """Named arrays, whole or not at all."""
    write_whole(path, packed(arrays, compressed=compressed))


def packed(arrays: Mapping[str, Any], *, compressed: bool = False) -> bytes:
    """The content of an .npz file."""
    import numpy as np  # which commands that only list something do not wait for

    content = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(content, allow_pickle=False, **arrays)
    return content.getvalue()


def plain(value: Any) -> Any:
    """The same with None for every NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_all(handle: int, content: bytes) -> None:
    """Write all of the content, however much of it the system takes at a time."""
    view = memoryview(content)
    while view:
        view = view[os.write(handle, view) :]


def _sync_directory(directory: Path) -> None:
    """Make a rename last through a power cut; Windows, which cannot open a directory, does without."""
    if os.name == "nt":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

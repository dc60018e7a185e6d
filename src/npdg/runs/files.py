"""The one place that opens files: regular ones, of bounded size, through no symbolic link, and written whole.

A run directory may come from anybody. What is in it is read without following links, waiting for a pipe or reading a
device; what is written is complete under a random name before it takes its own.
"""

import csv
import errno
import io
import json
import math
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from npdg.errors import InputError

LARGEST_TEXT = 2**23  # Bytes that a configuration, JSON or a picture may have.
LARGEST_TABLE = 2**26  # Bytes that a table of CSV may have.
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
            _write_all(handle, content)
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
    import numpy as np  # which commands that only list something do not wait for

    content = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(content, allow_pickle=False, **arrays)
    write_whole(path, content.getvalue())


def plain(value: Any) -> Any:
    """The same with None for every NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def append_rows(path: Path, columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
    """Append rows to a CSV file by one write, after a header if it is new; a row that does not fit on the disk leaves
    nothing behind."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", extrasaction="ignore", lineterminator="\n")
    handle = opened(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        size = os.fstat(handle).st_size
        if size == 0:
            writer.writeheader()
        writer.writerows(rows)
        try:
            _write_all(handle, text.getvalue().encode())
        except OSError as error:
            os.ftruncate(handle, size)
            raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(handle)


def read_rows(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """The columns and the rows of a CSV file; a last line that was not finished is left out."""
    if not os.path.lexists(path):
        return [], []
    text = read_text(path, LARGEST_TABLE)
    try:
        header, *rows = list(csv.reader(io.StringIO(text[: text.rfind("\n") + 1]))) or [[]]
    except csv.Error as error:
        raise InputError(f"run: {path} is damaged: {error}.") from None
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise InputError(f"run: {path} is damaged: line {number} has not {len(header)} entries.")
    return header, [dict(zip(header, row, strict=True)) for row in rows]


def keep_rows(path: Path, wanted: Callable[[dict[str, str]], bool]) -> None:
    """Leave only the wanted rows of a CSV file, if there is one."""
    columns, rows = read_rows(path)
    if not columns:
        path.unlink(missing_ok=True)
        return
    write_table(path, columns, [row for row in rows if wanted(row)])


def add_columns(path: Path, new: Sequence[str]) -> list[str]:
    """Give a CSV file further columns, which are empty in the rows that it has; all its columns then."""
    columns, rows = read_rows(path)
    if missing := [column for column in new if column not in columns]:
        columns += missing
        write_table(path, columns, rows)
    return columns


def write_table(path: Path, columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
    """A CSV file, whole or not at all."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(path, text.getvalue())


def _write_all(handle: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(handle, view) :]


def _sync_directory(directory: Path) -> None:
    """Make a rename last through a power cut."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""Files that are whole or not there at all, and a table that is valid after every row."""

import csv
import io
import json
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


def write_whole(path: Path, data: bytes | str) -> None:
    """Write a file so that a reader, at any moment and after any crash, finds the old one or the new one."""
    content = data.encode() if isinstance(data, str) else data
    temporary = path.with_name(f".{path.name}.partial")
    try:
        with temporary.open("wb", buffering=0) as file:
            _write_all(file.fileno(), content)
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_directory(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_json(path: Path, data: dict[str, Any]) -> None:
    """The same for an object of JSON."""
    write_whole(path, json.dumps(plain(data), indent=2, allow_nan=False) + "\n")


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
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
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
    if not path.exists():
        return [], []
    text = path.read_text()
    reader = csv.DictReader(io.StringIO(text[: text.rfind("\n") + 1]))
    return list(reader.fieldnames or []), list(reader)


def keep_rows(path: Path, wanted: Callable[[dict[str, str]], bool]) -> None:
    """Leave only the wanted rows of a CSV file, if there is one."""
    columns, rows = read_rows(path)
    if not columns:
        path.unlink(missing_ok=True)
        return
    _write_table(path, columns, [row for row in rows if wanted(row)])


def add_columns(path: Path, new: Sequence[str]) -> list[str]:
    """Give a CSV file further columns, which are empty in the rows that it has; all its columns then."""
    columns, rows = read_rows(path)
    if missing := [column for column in new if column not in columns]:
        columns += missing
        _write_table(path, columns, rows)
    return columns


def _write_table(path: Path, columns: Sequence[str], rows: Sequence[dict[str, str]]) -> None:
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

"""metrics.csv and its like: tables that grow by whole rows; lines that are damaged are left out, with a warning."""

import csv
import io
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from npdg.errors import InputError
from npdg.runs.files import LARGEST_TABLE, opened, read_text, write_all, write_whole
from npdg.training.records import Record, TimeStep

Row = dict[str, str]


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
            write_all(handle, text.getvalue().encode())
        except OSError as error:
            os.ftruncate(handle, size)
            raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(handle)


def read_metrics(path: Path) -> tuple[list[str], list[Row]]:
    """The columns and the rows of metrics.csv; what is damaged is left out, with a warning.

    A last line without an end is no damage: the run was stopped while it wrote that.
    """
    try:
        text = read_text(path, LARGEST_TABLE) if os.path.lexists(path) else ""
        header, *lines = list(csv.reader(io.StringIO(text[: text.rfind("\n") + 1]))) or [[]]
    except (InputError, csv.Error) as error:
        warnings.warn(f"the history is left out: {error}", stacklevel=2)
        return [], []
    rows = [dict(zip(header, line, strict=True)) for line in lines if len(line) == len(header)]
    rows = [row for row in rows if _sound(row)]
    if lost := len(lines) - len(rows):
        warnings.warn(f"{path} is damaged: {lost} of its {len(lines)} lines are left out", stacklevel=2)
    return (header, rows) if rows or not lines else ([], [])


def _sound(row: Row) -> bool:
    """Whether a row can be read as what a run reports."""
    try:
        (Record if "step" in row else TimeStep).from_row(row)
    except (KeyError, ValueError, OverflowError):
        return False
    return True


def keep_rows(path: Path, wanted: Callable[[Row], bool]) -> None:
    """Leave only the wanted rows of metrics.csv, if there is one."""
    columns, rows = read_metrics(path)
    if not columns:
        path.unlink(missing_ok=True)
        return
    write_table(path, columns, [row for row in rows if wanted(row)])


def add_columns(path: Path, new: Sequence[str]) -> list[str]:
    """Give metrics.csv further columns, which are empty in the rows that it has; all its columns then."""
    columns, rows = read_metrics(path)
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

"""What is kept of an error that nobody foresaw: its traceback, in the run that it happened in."""

import tempfile
import traceback
from pathlib import Path

from npdg.runs.files import write_whole

CRASH = "crash.txt"
_places: list[Path] = []


def crash_goes_to(directory: Path) -> None:
    """Name the run directory that a traceback is written to from now on."""
    _places.append(directory)


def record_crash(error: BaseException) -> str:
    """Write a traceback and say where it is, or that it could not be written."""
    text = "".join(traceback.format_exception(error))
    for place in (*reversed(_places[-1:]), Path(tempfile.gettempdir())):
        path = place / (CRASH if place in _places else f"npdg-{CRASH}")
        try:
            write_whole(path, text)
            return f"and its traceback is in {path}"
        except OSError:
            continue
    return "and its traceback could not be written"

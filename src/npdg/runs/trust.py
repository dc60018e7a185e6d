"""Digests of Python files that the person at the terminal has named, kept in that person's state directory.

Only such a file is run again by a configuration alone. The list is never in a run: who sends a run would send the list.
"""

import os
from contextlib import suppress
from pathlib import Path

from npdg.errors import InputError
from npdg.runs.files import LARGEST_TABLE, opened, read_text


def trusted(digest: str) -> bool:
    """Whether this person has named a file of that digest."""
    with suppress(OSError, InputError):
        return digest in read_text(_path(), LARGEST_TABLE).split()
    return False


def trust(digest: str) -> None:
    """Remember a digest; where nothing can be written, the file has to be named again."""
    if trusted(digest):
        return
    with suppress(OSError, InputError):
        _path().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = opened(_path(), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            os.write(handle, f"{digest}\n".encode())
        finally:
            os.close(handle)


def _path() -> Path:
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "npdg" / "trusted"

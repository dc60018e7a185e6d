"""Python files that the person at the terminal has named, kept in that person's state directory.

Only such a file, at the same place and unchanged, is run again by a configuration alone. The place counts because a
copy elsewhere may have other neighbours to import. The list is never in a run: who sends a run would send the list.
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from npdg.errors import InputError
from npdg.runs.files import LARGEST_TABLE, opened, read_text


def trusted(file: Path, digest: str) -> bool:
    """Whether this person has named a file at that place with that digest."""
    with suppress(OSError, InputError):
        return _entry(file, digest) in read_text(_path(), LARGEST_TABLE).split()
    return False


def trust(file: Path, digest: str) -> None:
    """Remember a file; where nothing can be written, it has to be named again."""
    if trusted(file, digest):
        return
    with suppress(OSError, InputError):
        _path().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = opened(_path(), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            os.write(handle, f"{_entry(file, digest)}\n".encode())
        finally:
            os.close(handle)


def _entry(file: Path, digest: str) -> str:
    return hashlib.sha256(f"{file.resolve()}\0{digest}".encode()).hexdigest()


def _path() -> Path:
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "npdg" / "trusted"

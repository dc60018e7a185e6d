"""The one writer to the terminal: control characters are taken out, and output that fails never ends a run."""

import io
import os
import sys
from contextlib import suppress
from typing import Any, TextIO

from rich.console import Console


def clean(text: str) -> str:
    """The text without control characters, by which a file could change a terminal; line ends and tabs stay."""
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else "\N{REPLACEMENT CHARACTER}" for letter in text
    )


def open_missing_streams() -> None:
    """Give a process that began without an input or output a silent one, whose number no file of a run then gets."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            handle = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free, which is this one
            os.set_inheritable(handle, True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (it stays open)


class LastingStream(io.TextIOBase):
    """A stream that becomes silent when writing to it fails: a closed pipe or a full disk is no reason to stop.

    What the terminal's encoding does not have is written as an escape.
    """

    def __init__(self, stream: TextIO):
        self.stream = stream
        self.failed = False

    def write(self, text: str) -> int:
        if not self.failed:
            try:
                encoding = getattr(self.stream, "encoding", None) or "utf-8"
                self.stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
                self.stream.flush()
            except (OSError, ValueError):
                self._silence()
        return len(text)

    def flush(self) -> None:
        if not self.failed:
            try:
                self.stream.flush()
            except (OSError, ValueError):
                self._silence()

    def isatty(self) -> bool:
        with suppress(OSError, ValueError):
            return not self.failed and self.stream.isatty()
        return False

    def fileno(self) -> int:
        return self.stream.fileno()

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return getattr(self.stream, "encoding", None) or "utf-8"

    def _silence(self) -> None:
        """Write no more, also not what Python still has to write at its end."""
        self.failed = True
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.stream.fileno())
            os.close(nowhere)


def console(*, stderr: bool = False, **how: Any) -> Console:
    """A console on standard output, or on standard error, that never fails."""
    stream: Any = LastingStream(sys.stderr if stderr else sys.stdout)
    return Console(file=stream, **how)


def answer(text: str) -> None:
    """What a command was asked for, on standard output; here a failure is one, which an `OSError` names."""
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        LastingStream(sys.stdout)._silence()
        raise OSError(
            getattr(error, "errno", None), getattr(error, "strerror", str(error)), "standard output"
        ) from None


def complain(message: str) -> None:
    """Say what is wrong in one line on standard error."""
    LastingStream(sys.stderr).write("npdg: " + " ".join(clean(message).split()) + "\n")

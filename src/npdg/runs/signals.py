"""How a run is asked to stop: SIGINT and SIGTERM end it after the present chunk; a second SIGINT leaves at once."""

import os
import signal
import sys
import threading
import time
from typing import Any

REASONS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
EXIT_CODES = {"interrupted": 130, "terminated": 143}
SHOW_CURSOR = "\x1b[?25h"
AT_ONCE = 0.2  # seconds in which two signals are one: `timeout` sends each twice


class Interrupt:
    """Listens to both signals from its making on."""

    def __init__(self) -> None:
        self.asked: str | None = None
        # Python's own handlers wait until a compilation or a chunk is over; the pipe is written to by the system.
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in REASONS:
            signal.signal(number, self._note)
        threading.Thread(target=self._watch, args=(reader,), daemon=True).start()

    def _note(self, number: int, frame: Any) -> None:
        self.asked = self.asked or REASONS[signal.Signals(number)]

    def _watch(self, reader: int) -> None:
        last = None
        while received := os.read(reader, 64):
            for number in [n for n in received if n in REASONS]:
                self._note(number, None)
                now = time.monotonic()
                if number == signal.SIGINT and last is not None and now - last > AT_ONCE:
                    _leave()
                last = now

    def reason(self) -> str | None:
        """Why to stop, if asked to."""
        return self.asked


def _leave() -> None:
    if sys.stderr.isatty():
        os.write(2, SHOW_CURSOR.encode())
    os._exit(EXIT_CODES["interrupted"])

"""How a run is asked to stop: SIGINT, SIGTERM and SIGHUP end it after the present chunk, a second SIGINT at once.

A compilation cannot be interrupted. A run that does not answer after some seconds of computing says its last words,
which leave what is known in its directory, and is left.
"""

import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from npdg.training.running import add_stopped

REASONS = {
    getattr(signal, name): reason
    for name, reason in (("SIGINT", "interrupted"), ("SIGTERM", "terminated"), ("SIGHUP", "terminated"))
    if hasattr(signal, name)
}
EXIT_CODES = {"interrupted": 130, "terminated": 143}
SHOW_CURSOR = "\x1b[?25h"
AT_ONCE = 0.2  # Seconds in which two signals are one: `timeout` sends each twice.
PATIENCE = 6.0  # Seconds of computing outside of a chunk, after which a run that was asked to stop is left.
TICK = 0.1  # Seconds between two looks.
CONTINUED = int(getattr(signal, "SIGCONT", 0))
LOOP = str(Path("npdg", "training", "loop.py"))


class Interrupt:
    """Listens to the signals from its making on."""

    def __init__(self) -> None:
        self.asked: str | None = None
        self.last_words: Callable[[str], object] = lambda reason: None
        # Python's own handlers wait until a compilation or a chunk is over; the pipe is written to by the system.
        self.ends = reader, writer = socket.socketpair()  # Windows can wait for sockets only
        writer.setblocking(False)
        signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        if hasattr(signal, "SIGCONT"):
            signal.signal(signal.SIGCONT, lambda number, frame: None)
        for number in REASONS:
            ignored = signal.getsignal(number) is signal.SIG_IGN
            if not (ignored and number.name == "SIGHUP"):  # which nohup asks to ignore
                signal.signal(number, self._note)
        threading.Thread(target=self._watch, args=(reader, threading.get_ident()), daemon=True).start()

    def _note(self, number: int, frame: Any) -> None:
        self.asked = self.asked or REASONS[signal.Signals(number)]

    def _watch(self, reader: socket.socket, main: int) -> None:
        last, since, awake = None, 0.0, time.perf_counter()
        while True:
            ready, _, _ = select.select([reader], [], [], TICK)
            numbers = reader.recv(64) if ready else b""
            slept, awake = time.perf_counter() - awake, time.perf_counter()
            if CONTINUED in numbers:
                add_stopped(max(slept - TICK, 0.0))
            for number in [n for n in numbers if n in REASONS]:
                self._note(number, None)
                now = time.monotonic()
                if number == signal.SIGINT and last is not None and now - last > AT_ONCE:
                    _leave("interrupted")
                since = time.process_time() if last is None else since
                last = now
            if self.asked is None or last is None:
                continue
            if _in_chunk(main):
                since = time.process_time()
            elif time.process_time() - since > PATIENCE:
                try:
                    self.last_words(self.asked)
                finally:
                    _leave(self.asked)

    def reason(self) -> str | None:
        """Why to stop, if asked to."""
        return self.asked


def _in_chunk(thread: int) -> bool:
    """Whether a thread is within a chunk of training steps, which is to be finished."""
    frame = sys._current_frames().get(thread)
    while frame is not None:
        if frame.f_code.co_name == "_chunk" and frame.f_code.co_filename.endswith(LOOP):
            return True
        frame = frame.f_back
    return False


def _leave(reason: str) -> None:
    if sys.stderr.isatty():
        os.write(2, SHOW_CURSOR.encode())
    os._exit(EXIT_CODES[reason])

"""Signals in every stage of default runs in many dimensions: the run ends soon, and leaves its result."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path

from trials.common import Scratch, Verdict, parallel

DIMENSIONS = (1, 2, 3, 5, 10, 20, 30, 50)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SECONDS, LONGEST = 8, 10.0  # Training seconds of a run, and seconds of CPU in which it is out.


def stops(scratch: Scratch, count: int) -> Verdict:
    """INT, TERM and HUP at random moments of default runs."""
    chance = random.Random(9)
    moments = [chance.uniform(1, 45) for _ in range(count)]

    def one(number: int) -> tuple[str | None, float | None]:
        dim, sent = DIMENSIONS[number % len(DIMENSIONS)], SIGNALS[number // len(DIMENSIONS) % 3]
        path = scratch.directory / f"stop-{number}"
        process = scratch.start("solve", "poisson", "--dim", str(dim), "--seconds", str(SECONDS), "--out", path.name)
        while not (path / "env.json").exists() and process.poll() is None:
            time.sleep(0.02)
        time.sleep(moments[number])
        if process.poll() is not None:
            process.communicate()
            return None, None  # it had ended
        before = _cpu(process.pid)
        process.send_signal(sent)
        after = before
        while process.poll() is None:
            after = _cpu(process.pid) or after
            time.sleep(0.02)
        _, error = process.communicate()
        result = path / "result.json"
        code = 130 if sent is signal.SIGINT else 143
        spent = after - before
        ended = json.loads(result.read_text()) if result.exists() else {}
        fine = "error_estimate" in ended and process.returncode in (code, 0) and "Traceback" not in error
        fine &= spent < LONGEST
        told = f"{sent.name} after {moments[number]:.0f} s in {dim}-D: {spent:.1f} s, "
        told += f"exit {process.returncode}, {error[-200:]}"
        return (None if fine else told), spent

    results = parallel(one, count)
    wrong = [complaint for complaint, _ in results if complaint]
    for complaint in wrong[:8]:
        print("   ", complaint)
    times = sorted(seconds for _, seconds in results if seconds is not None)
    return Verdict(
        count - len(wrong),
        count,
        f"out with result.json; CPU after the signal: median {times[len(times) // 2]:.1f} s, longest {times[-1]:.1f} s "
        f"({count - len(times)} had ended before it)",
    )


def pauses(scratch: Scratch, count: int) -> Verdict:
    """SIGSTOP for a while: the seconds of the run are those in which it could compute."""
    good, figures = 0, []
    for number in range(count):
        path = scratch.directory / f"pause-{number}"
        words = ["solve", "poisson", "--dim", "1", "--method", "deep-ritz", "--seconds", "4", "--set", "width=8"]
        process = scratch.start(*words, "--set", "n_interior=50", "--out", path.name)
        while not list(path.glob("metrics.csv")) and process.poll() is None:
            time.sleep(0.02)
        began = time.monotonic()
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(4)
        os.kill(process.pid, signal.SIGCONT)
        process.communicate()
        rows = (path / "metrics.csv").read_text().splitlines()
        index = rows[0].split(",").index("seconds")
        times = [float(row.split(",")[index]) for row in rows[1:]]
        gap = max(b - a for a, b in zip(times, times[1:], strict=False))
        fine = process.returncode == 0 and gap < 2 and time.monotonic() - began > 6
        good += fine
        figures.append(f"{gap:.2f}")
    return Verdict(good, count, f"stopped for 4 s; the longest step on the run's clock then: {', '.join(figures)} s")


def _cpu(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, IndexError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

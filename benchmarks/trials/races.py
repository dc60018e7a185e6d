"""Several processes in one directory: one writes, and every reader reads."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

from trials.common import Scratch, Verdict, parallel, small_solve

SMALL = small_solve(3000)
# A user's file that forks a child which outlives the run, as a logger or a loader of data may.
FORKING = """
import os, time
import jax.numpy as jnp
import npdg
pde = npdg.PDE(npdg.Box(0.0, 1.0, dim=1), lambda u, x: npdg.grad(u)(x), source=lambda x: jnp.ones(()))
if os.fork() == 0:
    os.close(1)
    os.close(2)
    time.sleep(40)
    os._exit(0)
"""


def races(scratch: Scratch, count: int) -> Verdict:
    """Two that begin, two that go on, reports beside reports and beside a run, a forked child, a removed lock."""
    scratch.reference("small", SMALL)
    kinds = (_two_begin, _two_resume, _reports, _report_beside_resume, _removed_lock, _forked)
    results = [kinds[number % len(kinds)](scratch, number) for number in range(count)]
    for complaint in [one for one in results if one][:8]:
        print("   ", complaint[:400])
    wrong = sum(one is not None for one in results)
    return Verdict(count - wrong, count, "with exactly one writer, and no reader that failed")


def _one_of_two(first: subprocess.Popen, second: subprocess.Popen) -> str | None:
    ends = []
    for process in (first, second):
        _, error = process.communicate(timeout=600)
        ends.append((process.returncode, error))
    lost = [error for code, error in ends if code == 2]
    won = [code for code, _ in ends if code == 0]
    known = ("in use", "exists already", "has ended")
    fine = len(won) == 1 and len(lost) == 1 and any(words in lost[0] for words in known)
    return None if fine else f"two at once: {ends}"


def _two_begin(scratch: Scratch, number: int) -> str | None:
    words = [*SMALL, "--out", f"race-{number}"]
    return _one_of_two(scratch.start(*words), scratch.start(*words))


def _two_resume(scratch: Scratch, number: int) -> str | None:
    run = scratch.copy(f"race-{number}", scratch.directory / "small")
    words = ["resume", run.name, "--steps", "30000"]
    return _one_of_two(scratch.start(*words), scratch.start(*words))


def _reports(scratch: Scratch, number: int) -> str | None:
    run = scratch.copy(f"race-{number}", scratch.directory / "small")
    if number % 2:
        shutil.rmtree(run / "figures")  # both make the pictures again
    ends = parallel(lambda _: scratch.run("report", run.name), 3, workers=3)
    whole = (run / "report.html").read_text().rstrip().endswith("</html>")
    return None if whole and all(ended.code == 0 for ended in ends) else f"three reports: {ends}"


def _report_beside_resume(scratch: Scratch, number: int) -> str | None:
    run = scratch.copy(f"race-{number}", scratch.directory / "small")
    writer = scratch.start("resume", run.name, "--steps", "60000")
    ends = []
    while writer.poll() is None and len(ends) < 6:
        ends.append(scratch.run("report", run.name))
        ends.append(scratch.run("evaluate", run.name, str(scratch.points())))
    _, error = writer.communicate()
    fine = writer.returncode == 0 and all(ended.code == 0 for ended in ends)
    return None if fine else f"readers beside a run ({writer.returncode} {error[-200:]}): {[e for e in ends if e.code]}"


def _removed_lock(scratch: Scratch, number: int) -> str | None:
    """Somebody removes the lock of a run: of two that then begin only one goes on."""
    run = scratch.copy(f"race-{number}", scratch.directory / "small")
    (run / "lock").unlink(missing_ok=True)
    words = ["resume", run.name, "--steps", "30000"]
    return _one_of_two(scratch.start(*words), scratch.start(*words))


def _forked(scratch: Scratch, number: int) -> str | None:
    """A child that the user's own file forked does not keep the directory from others."""
    Path(scratch.directory / "forking.py").write_text(FORKING)
    name = f"race-{number}"
    words = ["solve", "forking.py:pde", *SMALL[2:], "--out", name]
    words = [word for k, word in enumerate(words) if word != "--dim" and words[k - 1] != "--dim"]
    began = time.monotonic()
    first = subprocess.run(
        [sys.executable, "-m", "npdg.cli", *words],
        cwd=scratch.directory, env=scratch.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    ended = scratch.run("resume", name, "--steps", "3500")
    fine = first.returncode == 0 and ended.code == 0
    return None if fine else f"forked ({time.monotonic() - began:.0f} s): {first.returncode} {first.stderr} {ended}"

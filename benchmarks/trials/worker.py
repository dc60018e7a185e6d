"""Carries out commands of npdg from standard input, one JSON list of words a line, and answers what became of each."""

import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from npdg.cli import app


def memory(kind: str) -> int:
    """The resident memory now (VmRSS), or at its largest since that was last forgotten (VmHWM)."""
    status = Path("/proc/self/status").read_text()
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith(kind))


FRESH = memory("VmRSS")


def carry_out(words: list[str]) -> dict:
    """Run one command with its output in files."""
    kept = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        os.dup2(out.fileno(), 1)
        os.dup2(error.fileno(), 2)
        Path("/proc/self/clear_refs").write_text("5")  # forgets the largest memory
        held = memory("VmRSS")
        before, began = time.process_time(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        code = app._guarded(lambda: app.app(words, standalone_mode=False))
        spent = time.process_time() - before + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(kept[0], 1)
        os.dup2(kept[1], 2)
        texts = []
        for file in (out, error):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    for handle in kept:
        os.close(handle)
    return {"code": code, "out": texts[0], "error": texts[1], "cpu": spent, "memory": FRESH + memory("VmHWM") - held}


for line in sys.stdin:
    print(json.dumps(carry_out(json.loads(line))), flush=True)

"""Growth of the memory of a long run."""

from __future__ import annotations

import json
import subprocess
import sys

from trials.common import METHOD, SETTINGS, Scratch, Verdict

PROGRAM = """
import json, sys, npdg
from jax import monitoring
from npdg.catalogue import find
compiled, sizes = [], {}
def hear(name, *_, **__):
    if "backend_compile" in name:
        compiled.append(name)
monitoring.register_event_duration_secs_listener(hear)
def size():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
def look(step, record):
    sizes[step] = (size(), len(compiled))
settings = json.loads(sys.argv[2])
npdg.solve(find("poisson").build(1), sys.argv[3], steps=int(sys.argv[1]) + 500, callbacks=[look], **settings)
steps = sorted(sizes)
start = min(s for s in steps if s >= 500)
print(start, steps[-1], sizes[start][0], sizes[steps[-1]][0], sizes[steps[-1]][1] - sizes[steps[0]][1])
"""


def memory(scratch: Scratch, steps: int) -> Verdict:
    """Growth of the resident memory, and compilations after the first chunk."""
    program = [sys.executable, "-c", PROGRAM, str(steps), json.dumps(SETTINGS), METHOD]
    done = subprocess.run(program, capture_output=True, text=True, cwd=scratch.directory, check=True)
    start, end, before, after, compilations = (int(word) for word in done.stdout.split())
    growth = (after - before) / before
    return Verdict(
        int(growth < 0.01) + int(compilations == 0),
        2,
        f"growth {100 * growth:.2f} % from step {start} to {end} ({before / 2**20:.0f} to {after / 2**20:.0f} MB); "
        f"compilations after the first chunk: {compilations}",
    )

"""What surrounds a run: its output, its environment, its memory, its processor. The training does not depend on it."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from trials.common import SOLVE, Scratch, Verdict, checkpoints_whole, parallel, small_solve

SMALL = small_solve(3000)


def outputs(scratch: Scratch, count: int) -> Verdict:
    """Closed or full output, other encodings, no home, read-only places: the same bits."""
    scratch.reference("small", SMALL)
    whole = scratch.state("small")
    shell = ["bash", "-c"]
    quoted = " ".join(SMALL)
    npdg = f"{sys.executable} -m npdg.cli {quoted}"
    environment = scratch.environment
    bare = {key: value for key, value in environment.items() if key not in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")}
    nowhere = {"HOME": "/nonexistent", "XDG_STATE_HOME": "/proc/none", "XDG_CACHE_HOME": "/proc/none"}
    cases: dict[str, tuple[str, dict[str, str]]] = {
        "standard output closed": (f"{npdg} --out NAME >&-", environment),
        "standard error closed": (f"{npdg} --out NAME 2>&-", environment),
        "both closed": (f"{npdg} --out NAME >&- 2>&-", environment),
        "input closed": (f"{npdg} --out NAME <&-", environment),
        "all closed": (f"{npdg} --out NAME <&- >&- 2>&-", environment),
        "standard output full": (f"{npdg} --out NAME > /dev/full", environment),
        "standard error full": (f"{npdg} --out NAME 2> /dev/full", environment),
        "both full": (f"{npdg} --out NAME > /dev/full 2>&1", environment),
        "a pipe that ends": (f"{npdg} --out NAME | head -1", environment),
        "a pipe that nobody reads": (f"{npdg} --out NAME | true", environment),
        "latin-1": (f"{npdg} --out NAME", {**environment, "PYTHONIOENCODING": "latin-1"}),
        "ascii": (f"{npdg} --out NAME", {**environment, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}),
        "a locale that is not there": (f"{npdg} --out NAME", {**environment, "LC_ALL": "xx_YY.UTF-9"}),
        "no HOME": (f"{npdg} --out NAME", bare),
        "HOME nowhere": (f"{npdg} --out NAME", {**bare, **nowhere}),
        "TMPDIR nowhere": (f"{npdg} --out NAME", {**environment, "TMPDIR": "/nonexistent"}),
        "a dumb terminal of one column": (f"{npdg} --out NAME", {**environment, "TERM": "dumb", "COLUMNS": "1"}),
        "forced colours": (f"{npdg} --out NAME", {**environment, "FORCE_COLOR": "1", "COLUMNS": "3"}),
        "a directory that cannot be written": (f"cd /proc && {npdg} --out HERE/NAME", environment),
        "JSON to a closed pipe": (f"{npdg} --json --out NAME | true", environment),
    }
    names = (list(cases) * (count // len(cases) + 1))[:count]

    def one(number: int) -> str | None:
        command, variables = cases[names[number]]
        name = f"output-{number}"
        command = command.replace("HERE", str(scratch.directory)).replace("NAME", name)
        ended = scratch.run(command, program=shell, env=variables)
        try:
            same = scratch.state(name) == whole and (scratch.directory / name / "result.json").exists()
        except ValueError:
            same = False
        shutil.rmtree(scratch.directory / name, ignore_errors=True)
        return None if same and "Traceback" not in ended.error else f"{names[number]}: {ended}"

    wrong = [complaint for complaint in parallel(one, count) if complaint]
    for complaint in wrong[:8]:
        print("   ", complaint[:400])
    return Verdict(count - len(wrong), count, f"of {len(cases)} surroundings left the training as it is, bit for bit")


def memory_limits(scratch: Scratch, levels: int) -> Verdict:
    """Limits on the memory at many levels, for five commands: no traceback, and the checkpoints stay whole."""
    reference = scratch.reference("small", SMALL)
    commands: dict[str, list[str]] = {
        "solve": [*SMALL, "--out", "NEW"],
        "resume": ["resume", "RUN", "--steps", "4000"],
        "evaluate": ["evaluate", "RUN", str(scratch.points())],
        "report": ["report", "RUN"],
        "export": ["export", "RUN", "--npz", "--out", "NEW"],
    }
    cases = [(level, name) for level in range(levels) for name in commands]

    def one(number: int) -> tuple[str | None, int]:
        level, name = cases[number]
        room = int(2**28 * (2**4.5) ** (level / max(levels - 1, 1)))  # from 256 MB to 5.8 GB
        run, new = scratch.copy(f"limited-{number}", reference), f"limited-{number}-new"
        words = [run.name if word == "RUN" else new if word == "NEW" else word for word in commands[name]]
        limit = partial(resource.setrlimit, resource.RLIMIT_AS, (room, room))
        ended = scratch.run(*words, preexec_fn=limit)
        whole = checkpoints_whole(run) and checkpoints_whole(scratch.directory / new)
        shutil.rmtree(run, ignore_errors=True)
        shutil.rmtree(scratch.directory / new, ignore_errors=True)
        fine = whole and "Traceback" not in ended.error + ended.out
        return (None if fine else f"{name} in {room / 2**20:.0f} MB: {ended.code} {ended.error[-300:]}"), ended.code

    results = parallel(one, len(cases))
    wrong = [complaint for complaint, _ in results if complaint]
    for complaint in wrong[:8]:
        print("   ", complaint)
    codes = dict(sorted(Counter(code for _, code in results).items()))
    return Verdict(len(cases) - len(wrong), len(cases), f"without a traceback, checkpoints whole (exit codes {codes})")


def bits(scratch: Scratch, count: int) -> Verdict:
    """One core and two, another place, other flags: the same bits, or it says that they differ."""
    words = small_solve(20000)
    half = small_solve(10000)
    flags = {**scratch.environment, "XLA_FLAGS": "--xla_cpu_enable_fast_math=false"}
    variables = {**scratch.environment, "JAX_DEFAULT_MATMUL_PRECISION": "float32"}
    one_core = lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    ways: list[tuple[str, dict[str, Any], dict[str, Any], bool]] = [
        ("as it was", {}, {}, False),
        ("moved", {}, {}, True),
        ("on one core", {}, {"preexec_fn": one_core}, False),
        ("all on one core", {"preexec_fn": one_core}, {"preexec_fn": one_core}, False),
        ("with XLA_FLAGS", {}, {"env": flags}, False),
        ("with JAX_ variables", {}, {"env": variables}, False),
    ]
    good, told = 0, Counter()
    for number in range(count):
        what, first, second, moved = ways[number % len(ways)]
        place = scratch.directory / f"bits-{number}"
        assert scratch.run(*words, "--out", f"{place.name}-whole", **first).code == 0
        assert scratch.run(*half, "--out", place.name, **first).code == 0
        if moved:
            place = place.rename(scratch.directory / f"bits-{number}-elsewhere")
        ended = scratch.run("resume", place.name, "--steps", "20000", **second)
        announced = "not bit for bit" in ended.out
        equal = scratch.state(place) == scratch.state(f"bits-{number}-whole")
        good += ended.code == 0 and (equal or announced)
        told[f"{what}: {'equal' if equal else 'differs'}{', announced' if announced else ''}"] += 1
    return Verdict(good, count, "; ".join(f"{times} {what}" for what, times in told.items()))


def full_disks(scratch: Scratch, levels: int) -> Verdict:
    """Runs that meet a full disk, at several levels of it."""
    good, codes = 0, []
    for level in range(levels):
        room = int(8192 * 1.4**level)  # from not even a configuration to all but the report
        with _small_disk(scratch.directory / f"disk-{level}", room) as (place, limit):
            ended = scratch.run(*SOLVE, "--out", str(place / "run"), preexec_fn=limit)
            codes.append(ended.code)
            last = [line for line in ended.error.splitlines() if line.startswith("npdg: ")]
            whole = checkpoints_whole(place / "run")
            good += ended.code == 4 and whole and len(last) == 1 and "Traceback" not in ended.error
    return Verdict(good, levels, f"exit 4 with one line, and every checkpoint there is whole (exit codes {codes})")


@contextlib.contextmanager
def _small_disk(place: Path, room: int) -> Iterator[tuple[Path, Callable[[], None] | None]]:
    """A file system with that many bytes; where one cannot be mounted, a limit on the size of every file."""
    place.mkdir()
    blocks = max(room // 4096, 1)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={blocks * 4096}", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True).returncode == 0:
        try:
            yield place, None
        finally:
            subprocess.run(["umount", str(place)], check=True)
    else:
        yield place, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

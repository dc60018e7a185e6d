"""What a run survives: kills, damage, bad input, signals, full disks, races, hostile files. Prints its figures.

    python benchmarks/torture.py [--quick] [--only NAME ...]

Every part runs the command line in processes of its own. What was compiled once is reused (a compilation cache in the
scratch directory), except in the first runs of the reference, so that two separate compilations are compared as well.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from hostile import bad_configuration, evil_checkpoints, evil_configurations
from hypothesis import HealthCheck, Phase, given
from hypothesis import seed as seeded
from hypothesis import settings as sized

from npdg.runs.checkpoint import Damaged, read, unpack

NPDG = [sys.executable, "-m", "npdg.cli"]
# The method that is traced and compiled fastest; without second derivatives there is no certificate to wait for.
METHOD = "deep-ritz"
SETTINGS: dict[str, Any] = {"width": 8, "activation": "prelu", "n_interior": 50, "n_boundary": 10, "depth": 2}
STEPS = 60000


def _words(problem: str, settings: dict[str, Any], *words: str) -> list[str]:
    sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    return ["solve", problem, *words, "--checkpoint-seconds", "0", *sets]


SOLVE = _words("poisson", SETTINGS, "--dim", "1", "--method", METHOD, "--steps", str(STEPS))
MARCH = _words(
    "allen-cahn-1d",
    {"width": 6, "n_interior": 30, "time_steps": 12, "until": 0.12, "step_max": 8, "epsilon": 0.1},
)
TRANSPORT = _words("ot-1d", {"width": 8, "n_interior": 64, "n_metric": 32, "minres_max": 10}, "--steps", "1500")


class Verdict(NamedTuple):
    """How many of how many went well, and the figures."""

    good: int
    total: int
    figures: str


class Scratch:
    """A directory to work in, and processes in it."""

    def __init__(self, directory: Path):
        self.directory = directory
        cache = {
            "JAX_COMPILATION_CACHE_DIR": str(directory / "cache"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
        self.environment = {**os.environ, **cache}

    def start(self, *words: str, **keywords) -> subprocess.Popen:
        """A command, begun."""
        keywords.setdefault("env", self.environment)
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen([*NPDG, *words], cwd=self.directory, text=True, **pipes, **keywords)

    def run(self, *words: str, **keywords) -> tuple[int, str, str]:
        """A command to its end: exit code, standard output, standard error."""
        process = self.start(*words, **keywords)
        out, error = process.communicate(timeout=600)
        return process.returncode, out, error

    def state(self, name: str) -> dict[str, bytes]:
        """The arrays of the newest checkpoint of a run."""
        newest = max((self.directory / name / "checkpoints").glob("*.checkpoint"))
        return {key: array.tobytes() for key, array in read(newest).arrays.items()}


def kills(run: list[str], reference: str, scratch: Scratch, count: int) -> Verdict:
    """kill −9 at random moments, then resume."""
    uncached = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false"}
    assert scratch.run(*run, "--out", f"{reference}-apart", env=uncached)[0] == 0
    if not (scratch.directory / reference).exists():  # another part may have needed it
        assert scratch.run(*run, "--out", reference)[0] == 0
    began = time.monotonic()
    assert scratch.run(*run, "--out", f"{reference}-warm")[0] == 0
    length = time.monotonic() - began
    whole = scratch.state(reference)
    training = json.loads((scratch.directory / reference / "result.json").read_text())["seconds"]
    apart = "equal" if scratch.state(f"{reference}-apart") == whole else "NOT EQUAL"
    chance = random.Random(1)
    moments = [chance.uniform(0.15, 1.0) for _ in range(count)]

    def one(number: int) -> tuple[bool, str]:
        name = f"{reference}-kill-{number}"
        process = scratch.start(*run, "--out", name)
        if number % 2:  # one in two somewhere in the training
            while not list(scratch.directory.glob(f"{name}/checkpoints/*.checkpoint")) and process.poll() is None:
                time.sleep(0.01)
            time.sleep(moments[number] * training)
        else:
            time.sleep(moments[number] * length)
        process.kill()
        process.communicate()
        if not (scratch.directory / name / "config.toml").exists():  # killed before there was anything
            shutil.rmtree(scratch.directory / name, ignore_errors=True)
            return scratch.run(*run, "--out", name)[0] == 0 and scratch.state(name) == whole, "before config.toml"
        found = list((scratch.directory / name / "checkpoints").glob("*.checkpoint"))
        where = "before the first checkpoint" if not found else "in training"
        where = "after it" if found and scratch.state(name) == whole else where
        code, _, error = scratch.run("resume", name)
        finished = code == 0 or (code == 2 and "has ended" in error)
        return finished and scratch.state(name) == whole, where

    results = _parallel(one, count)
    good, moments_hit = sum(fine for fine, _ in results), Counter(where for _, where in results)
    return Verdict(
        good,
        count,
        "final states bitwise equal to the uninterrupted run's ("
        + ", ".join(f"{times} killed {where}" for where, times in moments_hit.items())
        + f"); separate compilations: {apart}",
    )


def flips(scratch: Scratch, count: int) -> Verdict:
    """Random bit flips of a checkpoint."""
    content = _checkpoint(scratch)
    chance, silent = random.Random(2), 0
    for _ in range(count):
        damaged = bytearray(content)
        bit = chance.randrange(8 * len(content))
        damaged[bit // 8] ^= 1 << bit % 8
        silent += _accepted(bytes(damaged))
    return Verdict(count - silent, count, f"detected, {silent} silent ({len(content)} bytes)")


def truncations(scratch: Scratch, count: int) -> Verdict:
    """Truncations of a checkpoint; and one through the command line, which falls back."""
    content = _checkpoint(scratch)
    chance = random.Random(3)
    silent = sum(_accepted(content[: chance.randrange(len(content))]) for _ in range(count))
    _copy(scratch, "reference", "truncated")
    newest = max((scratch.directory / "truncated" / "checkpoints").glob("*.checkpoint"))
    newest.write_bytes(content[: len(content) // 2])
    (scratch.directory / "truncated" / "result.json").unlink()
    code, out, _ = scratch.run("resume", "truncated")
    fell_back = code == 0 and f"{newest.name} is damaged" in out
    same = scratch.state("truncated") == scratch.state("reference")
    good = count - silent if fell_back and same else 0
    return Verdict(good, count, f"detected, {silent} silent; resumed from the one before: {fell_back and same}")


def configurations(scratch: Scratch, count: int) -> Verdict:
    """Bad configurations, drawn by hypothesis, each in a process of its own."""
    drawn: list[tuple[str, str]] = []

    @seeded(4)
    @given(bad_configuration())
    @sized(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    def draw(example: tuple[str, str]) -> None:
        if len(drawn) < count:
            drawn.append(example)

    while len(drawn) < count:
        draw()

    def one(number: int) -> tuple[str | None, float]:
        text, key = drawn[number]
        path = scratch.directory / f"bad-{number}.toml"
        path.write_text(text)
        began = time.monotonic()
        code, out, error = scratch.run("solve", "--config", path.name)
        taken = time.monotonic() - began
        fine = code == 2 and not out and len(error.splitlines()) == 1 and key in error and "Traceback" not in error
        path.unlink()
        return (None if fine else f"{text!r} -> {code}: {error[:300]}"), taken

    results = _parallel(one, count)
    wrong = [complaint for complaint, _ in results if complaint]
    for complaint in wrong[:5]:
        print("   ", complaint)
    times = sorted(seconds for _, seconds in results)
    return Verdict(
        count - len(wrong),
        count,
        f"exit 2 with one line that names the key; seconds: median {times[count // 2]:.2f}, 99 % "
        f"{times[int(0.99 * count)]:.2f}, longest {times[-1]:.2f}",
    )


def terminations(scratch: Scratch, count: int) -> Verdict:
    """SIGTERM at random moments of the training."""
    chance = random.Random(5)
    delays = [chance.uniform(0, 2) for _ in range(count)]
    forever = [word if word != str(STEPS) else "100000000" for word in SOLVE]

    def one(number: int) -> bool:
        name = f"term-{number}"
        process = scratch.start(*forever, "--out", name)
        folder = scratch.directory / name / "checkpoints"
        while not list(folder.glob("*.checkpoint")) and process.poll() is None:
            time.sleep(0.02)
        time.sleep(delays[number])
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=120)
        result = json.loads((scratch.directory / name / "result.json").read_text())
        newest = read(max(folder.glob("*.checkpoint")))
        said = f"npdg resume {name}" in out
        return process.returncode == 143 and said and newest.facts["step"] == result["steps"]

    good = sum(_parallel(one, count))
    return Verdict(good, count, "exit 143 with a valid checkpoint of the last step, and say how to go on")


def full_disks(scratch: Scratch, levels: int) -> Verdict:
    """Runs that meet a full disk, at several levels of it."""
    good, codes = 0, []
    for level in range(levels):
        room = int(8192 * 1.4**level)  # from not even a configuration to all but the report
        with _small_disk(scratch.directory / f"disk-{level}", room) as (place, limit):
            code, _, error = scratch.run(*SOLVE, "--out", str(place / "run"), preexec_fn=limit)
            whole = [path for path in (place / "run" / "checkpoints").glob("*.checkpoint") if not _damaged(path)]
            listed = list((place / "run" / "checkpoints").glob("*.checkpoint"))
            codes.append(code)
            last = [line for line in error.splitlines() if line.startswith("npdg: ")]
            good += code == 4 and len(whole) == len(listed) and len(last) == 1 and "Traceback" not in error
    return Verdict(good, levels, f"exit 4 with one line, and every checkpoint there is whole (exit codes {codes})")


@contextlib.contextmanager
def _small_disk(place: Path, room: int) -> Iterator[tuple[Path, Callable[[], None] | None]]:
    """A file system with that many bytes; where one cannot be mounted, a limit on the size of every file."""
    place.mkdir()
    blocks = max(room // 4096, 1)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={blocks * 4096}", "tmpfs", str(place)], capture_output=True
    )
    if mounted.returncode == 0:
        try:
            yield place, None
        finally:
            subprocess.run(["umount", str(place)], check=True)
    else:
        yield place, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))


def races(scratch: Scratch, count: int) -> Verdict:
    """Two processes for one directory: half of the time to begin a run, half of the time to go on with one."""

    def winners(first: subprocess.Popen, second: subprocess.Popen) -> bool:
        ends = []
        for process in (first, second):
            _, error = process.communicate(timeout=600)
            ends.append((process.returncode, error))
        lost = [error for code, error in ends if code == 2]
        won = [code for code, _ in ends if code == 0]
        return len(won) == 1 and len(lost) == 1 and ("in use" in lost[0] or "exists already" in lost[0])

    good = 0
    for number in range(count):
        name = f"race-{number}"
        words = [*SOLVE, "--out", name]
        if number % 2:
            _copy(scratch, "reference", name)
            words = ["resume", name, "--steps", str(STEPS + 2000)]
        good += winners(scratch.start(*words), scratch.start(*words))
    return Verdict(good, count, "with exactly one that runs")


def hostile_files(scratch: Scratch, count: int) -> Verdict:
    """Checkpoints and configurations that try to run code."""
    del count  # there is one list of them
    sprung = scratch.directory / "sprung"
    contents = evil_checkpoints(scratch.directory, sprung)
    texts = evil_configurations(scratch.directory, sprung)
    refused = 0
    for number, content in enumerate(contents):
        name = f"hostile-{number}"
        _copy(scratch, "reference", name)
        for path in (scratch.directory / name / "checkpoints").iterdir():
            path.write_bytes(content)
        (scratch.directory / name / "result.json").unlink()
        code, out, error = scratch.run("resume", name)
        fine = "Traceback" not in error and (code == 2 or (code == 0 and "is damaged" in out))
        refused += fine
        if not fine:
            print(f"    checkpoint {number}: {code} {out[-200:]!r} {error[-300:]!r}")
    for number, text in enumerate(texts):
        path = scratch.directory / f"hostile-{number}.toml"
        path.write_text(text)
        code, _, error = scratch.run("solve", "--config", path.name)
        fine = code == 2 and len(error.splitlines()) == 1
        refused += fine
        if not fine:
            print(f"    {text!r}: {code} {error[-300:]!r}")
    total = len(contents) + len(texts)
    ran = sprung.exists()
    return Verdict(0 if ran else refused, total, f"refused or set aside; code run: {'YES' if ran else 'never'}")


MEMORY = """
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
    program = [sys.executable, "-c", MEMORY, str(steps), json.dumps(SETTINGS), METHOD]
    done = subprocess.run(program, capture_output=True, text=True, cwd=scratch.directory, check=True)
    start, end, before, after, compilations = (int(word) for word in done.stdout.split())
    growth = (after - before) / before
    return Verdict(
        int(growth < 0.01) + int(compilations == 0),
        2,
        f"growth {100 * growth:.2f} % from step {start} to {end} ({before / 2**20:.0f} to {after / 2**20:.0f} MB); "
        f"compilations after the first chunk: {compilations}",
    )


def _checkpoint(scratch: Scratch) -> bytes:
    if not (scratch.directory / "reference").exists():
        assert scratch.run(*SOLVE, "--out", "reference")[0] == 0
    return max((scratch.directory / "reference" / "checkpoints").glob("*.checkpoint")).read_bytes()


def _accepted(content: bytes) -> bool:
    try:
        unpack(content)
    except Damaged:
        return False
    return True


def _damaged(path: Path) -> bool:
    return not _accepted(path.read_bytes())


def _copy(scratch: Scratch, source: str, target: str) -> None:
    _checkpoint(scratch)
    shutil.copytree(scratch.directory / source, scratch.directory / target)


def _parallel(one: Callable[[int], object], count: int) -> list:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, range(count)))


# Each with its count in full and in the short version.
PARTS: dict[str, tuple[Callable[[Scratch, int], Verdict], int, int]] = {
    "kill -9": (partial(kills, SOLVE, "reference"), 50, 3),
    "kill -9 in a march": (partial(kills, MARCH, "march"), 10, 2),
    "kill -9 in a transport": (partial(kills, TRANSPORT, "transport"), 10, 2),
    "bit flips": (flips, 200, 200),
    "truncations": (truncations, 50, 50),
    "bad configurations": (configurations, 500, 25),
    "SIGTERM": (terminations, 20, 2),
    "disk full": (full_disks, 10, 3),
    "races": (races, 20, 2),
    "hostile files": (hostile_files, 0, 0),
    "memory": (memory, 2000, 2000),
}


def main() -> int:
    """Run the parts and print a line of figures for each; 1 if anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few of each")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="some parts only")
    arguments = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory(prefix="npdg-torture-") as directory:
        scratch = Scratch(Path(directory))
        for name in arguments.only:
            part, full, short = PARTS[name]
            began = time.monotonic()
            verdict = part(scratch, short if arguments.quick else full)
            failed |= verdict.good < verdict.total
            taken = time.monotonic() - began
            print(f"{name}: {verdict.good}/{verdict.total} {verdict.figures} [{taken:.0f} s]", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

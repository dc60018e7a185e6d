"""What a run survives: kills, damage, bad input, signals, full disks, races, hostile files. Prints its figures.

    python benchmarks/torture.py [--quick] [--only NAME ...]

Every part runs the command line in processes of its own. What was compiled once is reused (a compilation cache in the
scratch directory), except in the first runs of the reference, so that two separate compilations are compared as well.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import pickle
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given
from hypothesis import seed as seeded
from hypothesis import settings as sized
from hypothesis import strategies as st

from npdg.runs.checkpoint import MAGIC, Damaged, read, unpack
from npdg.runs.config import RUN_KEYS
from npdg.settings import Settings

NPDG = [sys.executable, "-m", "npdg.cli"]
# The method that is traced and compiled fastest; without second derivatives there is no certificate to wait for.
METHOD = "deep-ritz"
SETTINGS: dict[str, Any] = {"width": 8, "activation": "prelu", "n_interior": 50, "n_boundary": 10, "depth": 2}
STEPS = 60000
WORDS = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
SOLVE = [
    "solve",
    "poisson",
    "--dim",
    "1",
    "--method",
    METHOD,
    "--steps",
    str(STEPS),
    "--checkpoint-seconds",
    "0",
    *WORDS,
]


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


def kills(scratch: Scratch, count: int) -> str:
    """kill −9 at random moments, then resume."""
    uncached = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false"}
    assert scratch.run(*SOLVE, "--out", "apart", env=uncached)[0] == 0
    began = time.monotonic()
    assert scratch.run(*SOLVE, "--out", "reference")[0] == 0
    assert scratch.run(*SOLVE, "--out", "warm")[0] == 0
    length = (time.monotonic() - began) / 2
    whole = scratch.state("reference")
    training = json.loads((scratch.directory / "reference" / "result.json").read_text())["seconds"]
    apart = "equal" if scratch.state("apart") == whole else "NOT EQUAL"
    chance = random.Random(1)
    moments = [chance.uniform(0.15, 1.0) * length for _ in range(count)]

    def one(number: int) -> tuple[bool, int]:
        name = f"kill-{number}"
        process = scratch.start(*SOLVE, "--out", name)
        if number % 2:  # one in two somewhere in the training
            while not list(scratch.directory.glob(f"{name}/checkpoints/*.checkpoint")) and process.poll() is None:
                time.sleep(0.01)
            time.sleep(moments[number] / length * training)
        else:
            time.sleep(moments[number])
        process.kill()
        process.communicate()
        if not (scratch.directory / name / "config.toml").exists():  # killed before there was anything
            shutil.rmtree(scratch.directory / name, ignore_errors=True)
            return scratch.run(*SOLVE, "--out", name)[0] == 0 and scratch.state(name) == whole, -2
        found = sorted((scratch.directory / name / "checkpoints").glob("*.checkpoint"))
        reached = read(found[-1]).facts["step"] if found else -1
        code, _, error = scratch.run("resume", name)
        finished = code == 0 or (code == 2 and "has ended" in error)
        return finished and scratch.state(name) == whole, reached

    results = _parallel(one, count)
    where = [step for _, step in results]
    middle = sum(0 < step < STEPS for step in where)
    return (
        f"{sum(good for good, _ in results)}/{count} final states bitwise equal to the uninterrupted run's "
        f"({where.count(-2)} killed before config.toml, {where.count(-1)} before the first checkpoint, {middle} in "
        f"training, {where.count(STEPS)} after it); separate compilations: {apart}"
    )


def flips(scratch: Scratch, count: int) -> str:
    """Random bit flips of a checkpoint."""
    content = _checkpoint(scratch)
    chance, silent = random.Random(2), 0
    for _ in range(count):
        damaged = bytearray(content)
        bit = chance.randrange(8 * len(content))
        damaged[bit // 8] ^= 1 << bit % 8
        silent += _accepted(bytes(damaged))
    return f"{count - silent}/{count} detected, {silent} silent ({len(content)} bytes)"


def truncations(scratch: Scratch, count: int) -> str:
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
    return f"{count - silent}/{count} detected, {silent} silent; resumed from the one before: {fell_back and same}"


def configurations(scratch: Scratch, count: int) -> str:
    """Bad configurations, drawn by hypothesis, each in a process of its own."""
    drawn: list[tuple[str, str]] = []

    @seeded(4)
    @given(_bad_configuration())
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
    return (
        f"{count - len(wrong)}/{count} exit 2 with one line that names the key; seconds: median "
        f"{times[count // 2]:.2f}, 99 % {times[int(0.99 * count)]:.2f}, longest {times[-1]:.2f}"
    )


def _bad_configuration() -> st.SearchStrategy[tuple[str, str]]:
    """A configuration with one mistake, and what a message must name."""
    good = '[run]\nproblem = "poisson"\ndim = 2\nsteps = 3\n'
    numbers = [key for key, info in Settings.model_fields.items() if info.annotation in (int, float)]
    words = [key for key, info in Settings.model_fields.items() if info.annotation not in (int, float, bool)]
    letters = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=3, max_size=12)
    new_name = letters.filter(lambda k: k not in (*RUN_KEYS, *Settings.model_fields, "solution", "run", "options"))
    nonsense = st.one_of(
        st.just("nan"),
        st.just("inf"),
        st.just("true"),
        st.just("[1, 2]"),
        st.just("{a = 1}"),
        st.just("1979-05-27"),
        st.floats(max_value=-1e-3, allow_nan=False, allow_infinity=False).map(repr),
        letters.map(lambda text: f'"{text}"'),
        st.sampled_from(
            ["\"__import__('os').system('touch sprung')\"", '"().__class__.__bases__"', '"${HOME}"', '"1;2"']
        ),
    )
    return st.one_of(
        st.tuples(st.sampled_from(numbers), nonsense).map(lambda p: (f"{good}[settings]\n{p[0]} = {p[1]}\n", p[0])),
        st.tuples(st.sampled_from(words), letters).map(lambda p: (f'{good}[settings]\n{p[0]} = "{p[1]}"\n', p[0])),
        st.tuples(new_name, st.integers()).map(lambda p: (f"{good}[settings]\n{p[0]} = {p[1]}\n", p[0])),
        st.tuples(new_name, st.integers()).map(lambda p: (f"{good}{p[0]} = {p[1]}\n", p[0])),
        st.tuples(new_name, st.integers()).map(lambda p: (f"{good}[options]\n{p[0]} = {p[1]}\n", p[0])),
        new_name.map(lambda name: (f"{good}[{name}]\n", name)),
        new_name.map(lambda name: (f'[run]\nproblem = "{name}"\n', name)),
        nonsense.map(lambda value: (f'[run]\nproblem = "poisson"\nseed = {value}\n', "seed")),
        nonsense.map(lambda value: (f'[run]\nproblem = "poisson"\nsteps = {value}\n', "steps")),
        letters.map(lambda text: (f'{good}until = "{text}"\n', "until")),
        letters.map(lambda text: (f'[run]\nproblem = "../../{text}.py:pde"\n', "problem")),
        st.text(max_size=30).map(lambda text: (f"{good}[[{text}\x00\n", "config")),
    )


def terminations(scratch: Scratch, count: int) -> str:
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
    return f"{good}/{count} exit 143 with a valid checkpoint of the last step, and say how to go on"


def full_disks(scratch: Scratch, levels: int) -> str:
    """Runs that meet a full disk, at several levels of it."""
    good, codes = 0, []
    for level in range(levels):
        room = int(8192 * 1.5**level)  # from not even a configuration to all but the report
        with _small_disk(scratch.directory / f"disk-{level}", room) as (place, limit):
            code, _, error = scratch.run(*SOLVE, "--out", str(place / "run"), preexec_fn=limit)
            whole = [path for path in (place / "run" / "checkpoints").glob("*.checkpoint") if not _damaged(path)]
            listed = list((place / "run" / "checkpoints").glob("*.checkpoint"))
            codes.append(code)
            last = [line for line in error.splitlines() if line.startswith("npdg: ")]
            good += code == 4 and len(whole) == len(listed) and len(last) == 1 and "Traceback" not in error
    return f"{good}/{levels} exit 4 with one line, and every checkpoint that is there is whole (exit codes {codes})"


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


def races(scratch: Scratch, count: int) -> str:
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
    return f"{good}/{count} with exactly one that runs"


class Trap:
    """An object that makes a file when it is unpickled."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def hostile_files(scratch: Scratch, count: int) -> str:
    """Checkpoints and configurations that try to run code."""
    del count  # there is one list of them
    sprung = scratch.directory / "sprung"
    trap = pickle.dumps(Trap(sprung))
    evil = scratch.directory / "evil.py"
    evil.write_text(f"open({str(sprung)!r}, 'w')\n")

    def signed(header: dict, rest: bytes) -> bytes:
        body = json.dumps(header).encode() + b"\n" + rest
        return MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body

    entry: dict[str, Any] = {"name": ".step", "dtype": "object", "shape": [1]}
    objects = scratch.directory / "objects.npz"
    np.savez(objects, a=np.array([Trap(sprung)], dtype=object))
    contents = [trap, objects.read_bytes()]
    contents += [
        signed({"arrays": [{**entry, **change}]}, trap)
        for change in (
            {},
            {"dtype": "O"},
            {"dtype": "__import__('os').system('touch sprung')"},
            {"dtype": "float64", "shape": [2**60]},
        )
    ]
    contents.append(signed({"arrays": [], "step": "__import__('os')", "run": {}}, b""))
    contents.append(signed({"arrays": [{"name": "../../evil", "dtype": "bool", "shape": [0]}], "run": {}}, b""))
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
    good = '[run]\nproblem = "poisson"\n'
    dunder = "__import__('os').system('touch sprung')"
    texts = [
        f'[run]\nproblem = "{evil}:pde"\n',
        f'[run]\nproblem = "../{scratch.directory.name}/evil.py:pde"\n',
        f'[run]\nproblem = "{evil}:pde"\nsha256 = "{"0" * 64}"\n',
        f'{good}out = "../../sprung"\n',
        f'{good}[settings]\nwidth = "{dunder}"\n',
        f'{good}[settings]\nactivation = "{dunder}"\n',
        f'{good}[options]\nsolution = "{dunder}"\n',
        f'{good}until = "rel_l2={dunder}"\n',
        f'{good}[settings]\n"{dunder}" = 1\n',
    ]
    for number, text in enumerate(texts):
        path = scratch.directory / f"hostile-{number}.toml"
        path.write_text(text)
        code, _, error = scratch.run("solve", "--config", path.name)
        fine = code == 2 and len(error.splitlines()) == 1
        refused += fine
        if not fine:
            print(f"    {text!r}: {code} {error[-300:]!r}")
    total = len(contents) + len(texts)
    return f"{refused}/{total} refused or set aside, code run: {'YES' if sprung.exists() else 'never'}"


MEMORY = """
import json, sys, npdg
from jax import monitoring
from npdg.problems import find
compiled, sizes = [], {}
def hear(name, *_, **__):
    if "backend_compile" in name:
        compiled.append(name)
monitoring.register_event_duration_secs_listener(hear)
def size():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
def look(record):
    sizes[record.step] = (size(), len(compiled))
settings = json.loads(sys.argv[2])
npdg.solve(find("poisson").build(1), sys.argv[3], steps=int(sys.argv[1]) + 500, callbacks=[look], **settings)
steps = sorted(sizes)
start = min(s for s in steps if s >= 500)
print(start, steps[-1], sizes[start][0], sizes[steps[-1]][0], sizes[steps[-1]][1] - sizes[steps[0]][1])
"""


def memory(scratch: Scratch, steps: int) -> str:
    """Growth of the resident memory, and compilations after the first chunk."""
    program = [sys.executable, "-c", MEMORY, str(steps), json.dumps(SETTINGS), METHOD]
    done = subprocess.run(program, capture_output=True, text=True, cwd=scratch.directory, check=True)
    start, end, before, after, compilations = (int(word) for word in done.stdout.split())
    growth = (after - before) / before
    return (
        f"{100 * growth:.2f} % from step {start} to {end} ({before / 2**20:.0f} to {after / 2**20:.0f} MB); "
        f"compilations after the first chunk: {compilations}"
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
PARTS: dict[str, tuple[Callable[[Scratch, int], str], int, int]] = {
    "kill -9": (kills, 50, 3),
    "bit flips": (flips, 200, 200),
    "truncations": (truncations, 50, 50),
    "bad configurations": (configurations, 500, 25),
    "SIGTERM": (terminations, 20, 2),
    "disk full": (full_disks, 10, 3),
    "races": (races, 20, 2),
    "hostile files": (hostile_files, 0, 0),
    "memory": (memory, 2000, 2000),
}


def main() -> None:
    """Run the parts and print a line of figures for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few of each")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="some parts only")
    given_ = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="npdg-torture-") as directory:
        scratch = Scratch(Path(directory))
        for name in given_.only:
            part, full, short = PARTS[name]
            began = time.monotonic()
            print(f"{name}: {part(scratch, short if given_.quick else full)}", end=" ")
            print(f"[{time.monotonic() - began:.0f} s]", flush=True)


if __name__ == "__main__":
    main()

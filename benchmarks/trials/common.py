"""What all trials share: small runs, a directory to work in, processes in it, and a warm process for readers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from npdg.runs.checkpoint import Damaged, read, unpack

NPDG = [sys.executable, "-m", "npdg.cli"]
HERE = Path(__file__).parent
# The method that is traced and compiled fastest; without second derivatives there is no certificate to wait for.
METHOD = "deep-ritz"
SETTINGS: dict[str, Any] = {"width": 8, "activation": "prelu", "n_interior": 50, "n_boundary": 10, "depth": 2}
STEPS = 60000


def _words(problem: str, settings: dict[str, Any], *words: str) -> list[str]:
    sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    return ["solve", problem, *words, "--checkpoint-seconds", "0", *sets]


def small_solve(steps: int) -> list[str]:
    """A solve of one dimension that is over in seconds."""
    return _words("poisson", SETTINGS, "--dim", "1", "--method", METHOD, "--steps", str(steps))


SOLVE = small_solve(STEPS)
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


class Ended(NamedTuple):
    """A command that has ended: exit code, standard output, standard error."""

    code: int
    out: str
    error: str

    @property
    def foreseen(self) -> bool:
        """Whether it went well, or was refused or failed in one line."""
        lines = [line for line in self.error.splitlines() if line.startswith("npdg: ") and "warning: " not in line]
        return "Traceback" not in self.error and (self.code == 0 or (self.code in (2, 4) and len(lines) == 1))


class Scratch:
    """A directory to work in, and processes in it."""

    def __init__(self, directory: Path):
        self.directory = directory
        self.environment = {
            **os.environ,
            "JAX_COMPILATION_CACHE_DIR": str(directory / "cache"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "XDG_STATE_HOME": str(directory / "state"),
            "XDG_CACHE_HOME": str(directory / "own-cache"),
        }
        self.making = threading.Lock()

    def start(self, *words: str, program: list[str] = NPDG, **keywords) -> subprocess.Popen:
        """A command, begun."""
        keywords.setdefault("env", self.environment)
        keywords.setdefault("stdout", subprocess.PIPE)
        keywords.setdefault("stderr", subprocess.PIPE)
        keywords.setdefault("cwd", self.directory)
        return subprocess.Popen([*program, *words], text=True, errors="replace", **keywords)

    def run(self, *words: str, **keywords) -> Ended:
        """A command to its end."""
        process = self.start(*words, **keywords)
        out, error = process.communicate(timeout=600)
        return Ended(process.returncode, out or "", error or "")

    def reference(self, name: str = "reference", words: list[str] = SOLVE) -> Path:
        """A run that nothing disturbed, made when it is first asked for."""
        with self.making:
            path = self.directory / name
            if not (path / "result.json").exists():
                ended = self.run(*words, "--out", name)
                assert ended.code == 0, ended
        return path

    def copy(self, target: str, source: Path | None = None) -> Path:
        """A copy of the reference, or of another run."""
        path = self.directory / target
        shutil.copytree(self.reference() if source is None else source, path, symlinks=True)
        return path

    def state(self, name: str | Path) -> dict[str, bytes]:
        """The arrays of the newest checkpoint of a run."""
        newest = max((self.directory / name / "checkpoints").glob("*.checkpoint"))
        return {key: array.tobytes() for key, array in read(newest).arrays.items()}

    def points(self, dim: int = 1) -> Path:
        """A file of a few points."""
        path = self.directory / ("points.csv" if dim == 1 else f"points-{dim}.csv")
        if not path.exists():
            rows = [",".join([f"x{k + 1}" for k in range(dim)]), *(",".join([x] * dim) for x in ("0.1", "0.25", "0.7"))]
            path.write_text("\n".join(rows) + "\n")
        return path


def accepted(content: bytes) -> bool:
    """Whether bytes are taken for a whole checkpoint."""
    try:
        unpack(content)
    except Damaged:
        return False
    return True


def checkpoints_whole(run: Path) -> bool:
    """Whether every checkpoint of a run is whole."""
    return all(accepted(path.read_bytes()) for path in (run / "checkpoints").glob("*.checkpoint"))


def parallel(one: Callable[[int], Any], count: int, workers: int = 2) -> list:
    """The results of `one` for all numbers, two at a time."""
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(one, range(count)))


@dataclass
class Measured:
    """How a command in the warm process ended, its seconds of CPU, and the bytes of memory that it needs if fresh."""

    ended: Ended
    cpu: float
    memory: int


class Warm:
    """A process that has imported everything and carries out one command after another."""

    def __init__(self, scratch: Scratch):
        program = [sys.executable, str(HERE / "worker.py")]
        self.scratch = scratch
        self.process = scratch.start(program=program, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def run(self, *words: str) -> Measured:
        """A command to its end; if the process dies of it, that is its end."""
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(words) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            code = process.wait()
            self.process = Warm(self.scratch).process
            return Measured(Ended(code, "", f"the process died: Traceback unknown, {words}"), 0.0, 0)
        found = json.loads(line)
        return Measured(Ended(*(found[key] for key in ("code", "out", "error"))), found["cpu"], found["memory"])

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

"""Checkpoints: named arrays and JSON in one file with a SHA-256 over all of it. No pickle, and no code is ever run.

A file is three lines (what it is, the digest of all that follows the second line, JSON) and then the bytes of the
arrays one after another, as the JSON lists them. It is written whole or not at all. The last two and the best of a run
are kept.
"""

import hashlib
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from npdg.runs.files import LARGEST_ARRAYS, read_bytes, real_directory, write_whole

MAGIC = b"npdg checkpoint 1\n"
DTYPES = ("bool", "int32", "int64", "uint32", "float32", "float64")
SPENT = ("seconds", "compile_seconds", "rollbacks")
LONGEST = 1e10  # Seconds that a run can have spent.
LATEST = 2  # checkpoints that are kept beside the best


class Damaged(ValueError):
    """A file that is not the checkpoint that was written."""


@dataclass(frozen=True)
class Checkpoint:
    """What a file held: facts as JSON, and arrays by name."""

    path: Path
    facts: dict[str, Any]
    arrays: dict[str, np.ndarray]


def pack(facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """The content of a checkpoint file."""
    listed = [{"name": name, "dtype": a.dtype.name, "shape": list(a.shape)} for name, a in arrays.items()]
    if unknown := [entry["dtype"] for entry in listed if entry["dtype"] not in DTYPES]:
        raise TypeError(f"a checkpoint holds no {unknown[0]}")
    header = json.dumps({**facts, "arrays": listed}).encode() + b"\n"
    body = header + b"".join(np.ascontiguousarray(a, _little(a.dtype.name)).tobytes() for a in arrays.values())
    return MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def unpack(content: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Facts and arrays of a checkpoint file, or `Damaged`. Nothing is looked at before the digest is right."""
    start = len(MAGIC) + 64 + 1
    body = content[start:]
    if not content.startswith(MAGIC):
        raise Damaged("it does not begin like a checkpoint")
    if content[len(MAGIC) : start] != hashlib.sha256(body).hexdigest().encode() + b"\n":
        raise Damaged("its SHA-256 is wrong")
    header, newline, rest = body.partition(b"\n")
    try:
        facts = json.loads(header)
        listed = facts.pop("arrays")
        arrays, at = {}, 0
        for entry in listed:
            name, shape = entry["name"], tuple(entry["shape"])
            if not isinstance(name, str) or entry["dtype"] not in DTYPES:
                raise Damaged("it lists an array of a kind that checkpoints do not have")
            if not all(isinstance(n, int) and n >= 0 for n in shape):
                raise Damaged("it lists an array of no shape")
            dtype = _little(entry["dtype"])
            end = at + math.prod(shape) * dtype.itemsize
            if end > len(rest):
                raise Damaged("it ends before its arrays do")
            arrays[name] = np.frombuffer(rest[at:end], dtype).reshape(shape)
            at = end
    except Damaged:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Damaged("its JSON is not a checkpoint's") from error
    if not newline or at != len(rest):
        raise Damaged("it is longer than its arrays")
    return facts, arrays


def read(path: Path) -> Checkpoint:
    """One checkpoint, or `Damaged`."""
    checkpoint = Checkpoint(path, *unpack(read_bytes(path, LARGEST_ARRAYS)))
    number = lambda value: isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    facts = {key: checkpoint.facts.get(key, 0) for key in SPENT}
    facts |= {
        "step": checkpoint.facts.get("step"),
        "merit": 0 if checkpoint.facts.get("merit") is None else checkpoint.facts["merit"],
    }
    tables = (checkpoint.facts.get(key, {}) for key in ("run", "settings"))
    if (
        not all(map(number, facts.values()))
        or not all(0 <= facts[key] <= LONGEST for key in SPENT)
        or not all(isinstance(table, dict) for table in tables)
    ):
        raise Damaged("its facts are not those of a run")
    return checkpoint


@dataclass
class Folder:
    """The checkpoints of one run: writes them, forgets those that are neither recent nor best, finds the newest."""

    directory: Path
    merits: dict[Path, float] = field(default_factory=dict)

    def write(self, step: int, merit: float | None, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> Path:
        """Write the checkpoint of a step; `merit` is the smaller the better."""
        real_directory(self.directory)
        path = self.directory / f"step-{step:09d}.checkpoint"
        known = None if merit is None or not math.isfinite(merit) else merit
        write_whole(path, pack({**facts, "step": step, "merit": known}, arrays))
        self.merits[path] = math.inf if known is None else known
        recent = sorted(self.merits)[-LATEST:]
        best = min(self.merits, key=lambda p: self.merits[p])
        for old in [p for p in self.merits if p not in recent and p != best]:
            old.unlink(missing_ok=True)
            del self.merits[old]
        return path

    def newest(self) -> tuple[Checkpoint | None, list[str]]:
        """The newest checkpoint that is whole, and a sentence for each one that is not; those are set aside."""
        found, complaints = None, []
        for partial in self.directory.glob(".*.partial"):
            partial.unlink()
        for path in sorted(self.directory.glob("step-*.checkpoint"), reverse=True):
            try:
                checkpoint = read(path)
            except Damaged as error:
                aside = path.with_suffix(".damaged")
                path.replace(aside)
                complaints.append(f"{path.name} is damaged ({error}) and was set aside as {aside.name}")
                continue
            merit = checkpoint.facts.get("merit")
            self.merits[path] = math.inf if merit is None else float(merit)
            found = found or checkpoint
        return found, complaints


def _little(name: str) -> np.dtype:
    return np.dtype(name).newbyteorder("<")

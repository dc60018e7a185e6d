"""Disks that fail: a fault at every call on a file, and power cuts after which what was not synchronised is gone."""

from __future__ import annotations

import errno
import os
import pickle
import random
import shutil
import sys
from collections import Counter
from pathlib import Path

from trials.common import HERE, Scratch, Verdict, checkpoints_whole, parallel, small_solve
from trials.layer import FAILING

LAYERED = [sys.executable, str(HERE / "layer.py")]
SMALL = small_solve(3000)
ALL = 400  # About as many as there are: every call of a small run with every error that it can have.
ERRORS = {
    "open": (errno.EROFS, errno.ENOSPC, errno.EIO),
    "mkdir": (errno.EROFS, errno.ENOSPC),
    "write": (errno.ENOSPC, errno.EIO),
    "fsync": (errno.EIO,),
    **dict.fromkeys(("replace", "link", "rename"), (errno.EROFS, errno.ENOSPC, errno.EIO)),
}


def _journal(scratch: Scratch) -> list[tuple[str, tuple]]:
    path = scratch.directory / "journal"
    if not path.exists():
        ended = scratch.run("record", str(path), "small", *SMALL, "--out", "small", program=LAYERED)
        assert ended.code == 0, ended
    return pickle.loads(path.read_bytes())


def faults(scratch: Scratch, count: int) -> Verdict:
    """A fault at the k-th write, fsync, rename or open of a small run; the whole run for every k and error."""
    calls = [name for name, _ in _journal(scratch) if name in FAILING]
    cases = [(k, code) for k, name in enumerate(calls, start=1) for code in ERRORS[name]]
    cases = random.Random(5).sample(cases, count) if count < ALL else cases

    def one(number: int) -> str | None:
        k, code = cases[number]
        path = scratch.directory / f"fault-{number}"
        ended = scratch.run("fail", str(k), str(code), path.name, *SMALL, "--out", path.name, program=LAYERED)
        where = Path(f"{path}.failed")
        if not where.exists():  # a chunk more or less: this run had fewer calls
            return None
        failed = where.read_text().split()
        lines = [line for line in ended.error.splitlines() if line.startswith("npdg: ")]
        whole = checkpoints_whole(path)
        resumed = True
        if (path / "config.toml").exists() and number % 8 == 0:
            again = scratch.run("resume", path.name)
            resumed = again.code == 0 or "has ended" in again.error
        shutil.rmtree(path, ignore_errors=True)
        named = len(lines) == 1 and path.name in lines[0] and "Traceback" not in ended.error
        fine = ended.code == 4 and named and whole and resumed
        return (
            None
            if fine
            else f"{errno.errorcode[code]} at call {k} ({' '.join(failed)}): {ended.code} {lines} {whole=} {resumed=}"
        )

    wrong = [complaint for complaint in parallel(one, len(cases)) if complaint]
    for complaint in wrong[:8]:
        print("   ", complaint)
    kinds = ", ".join(f"{times} {name}" for name, times in Counter(calls).most_common())
    return Verdict(
        len(cases) - len(wrong), len(cases), f"exit 4 with one line that names the file, old state whole ({kinds})"
    )


class Disk:
    """What a disk holds: names and contents, those that are synchronised and those that are not yet."""

    def __init__(self, chance: random.Random):
        self.chance = chance
        self.now: dict[str, int] = {}
        self.safe: dict[str, int] = {}
        self.waiting: list[tuple[str, str, int | None]] = []  # directory, name, file or None if the name goes
        self.content: dict[int, bytearray] = {}
        self.synced: dict[int, bytes] = {}
        self.folders: set[str] = set()

    def _name(self, path: str, file: int | None) -> None:
        self.waiting.append((os.path.dirname(path), path, file))
        if file is None:
            self.now.pop(path, None)
        else:
            self.now[path] = file

    def call(self, name: str, about: tuple) -> None:
        """What one call changes."""
        path = about[0]
        if name == "mkdir":
            self.folders.add(path)
        elif name == "open" and not about[1] and about[2] & os.O_CREAT:
            file = len(self.content)
            self.content[file], self.synced[file] = bytearray(), b""
            self._name(path, file)
        elif name == "write" and path in self.now:
            self.content[self.now[path]] += about[-1]
        elif name == "ftruncate" and path in self.now:
            del self.content[self.now[path]][about[-1] :]
        elif name == "fsync" and path in self.now:
            self.synced[self.now[path]] = bytes(self.content[self.now[path]])
        elif name == "fsync":
            for folder, entry, file in self.waiting:
                if folder == path:
                    self._apply(self.safe, entry, file)
            self.waiting = [change for change in self.waiting if change[0] != path]
        elif name in ("replace", "rename", "link") and path in self.now:
            self._name(about[1], self.now[path])
            if name != "link":
                self._name(path, None)
        elif name == "unlink" and path in self.now:
            self._name(path, None)

    @staticmethod
    def _apply(names: dict[str, int], entry: str, file: int | None) -> None:
        if file is None:
            names.pop(entry, None)
        else:
            names[entry] = file

    def after_a_cut(self, how: str) -> dict[str, bytes]:
        """The files that are there after a power cut."""
        names = dict(self.safe)
        for _, entry, file in self.waiting:
            if how == "zeroed" or (how == "reordered" and self.chance.random() < 0.5):
                self._apply(names, entry, file)
        return {path: self._bytes(file, how) for path, file in names.items()}

    def _bytes(self, file: int, how: str) -> bytes:
        safe, now = self.synced[file], bytes(self.content[file])
        if how == "lost" or len(now) <= len(safe):
            return safe
        if how == "zeroed":
            return safe + bytes(len(now) - len(safe))
        kept = self.chance.randrange(len(safe), len(now) + 1)
        return now[:kept] if self.chance.random() < 0.5 else now[:kept] + bytes(len(now) - kept)


def power_cuts(scratch: Scratch, count: int) -> Verdict:
    """Writes that were not synchronised are lost, zeroed or reordered after a call; then resume."""
    calls, chance = _journal(scratch), random.Random(6)
    scratch.reference("small-again", SMALL)
    whole, root = scratch.state("small-again"), str(scratch.directory / "small")
    moments = [chance.randrange(len(calls)) for _ in range(count)]
    ways = ("lost", "zeroed", "reordered")

    def one(number: int) -> tuple[str | None, str]:
        disk = Disk(random.Random(number))
        for name, about in calls[: moments[number] + 1]:
            disk.call(name, about)
        path = scratch.directory / f"cut-{number}"
        for folder in sorted(disk.folders):
            Path(folder.replace(root, str(path), 1)).mkdir(exist_ok=True)
        for file, content in disk.after_a_cut(ways[number % 3]).items():
            Path(file.replace(root, str(path), 1)).write_bytes(content)
        if not (path / "config.toml").exists():
            return None, "with nothing to go on from"
        ended = scratch.run("resume", path.name)
        if ended.code == 2 and "has ended" in ended.error:
            read = scratch.run("evaluate", path.name, str(scratch.points()))
            return (None if read.code == 0 else f"{ways[number % 3]} {read.error}"), "that had ended"
        fine = ended.code == 0 and scratch.state(path) == whole
        shutil.rmtree(path, ignore_errors=True)
        return (
            None if fine else f"{ways[number % 3]} at {calls[moments[number]][:2]}: {ended.code} {ended.error[-300:]}"
        ), "resumed"

    results = parallel(one, count)
    wrong = [complaint for complaint, _ in results if complaint]
    for complaint in wrong[:5]:
        print("   ", complaint[:600])
    kinds = ", ".join(f"{times} {how}" for how, times in Counter(how for _, how in results).most_common())
    return Verdict(count - len(wrong), count, f"go on to the same bits ({kinds})")

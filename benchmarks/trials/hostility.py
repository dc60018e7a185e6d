"""Directories and files that mean harm: nothing outside of the run changes, and no code runs."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, Phase, given
from hypothesis import seed as seeded
from hypothesis import settings as sized

from trials.common import Scratch, Verdict, parallel, small_solve
from trials.hostile import bad_configuration, evil_checkpoints, evil_configurations

NAMES = (
    "lock", "config.toml", "result.json", "env.json", "metrics.csv", "report.json", "report.html", "solution.npz",
    "checkpoints", "figures", "figures/slices.npz", "crash.txt",
)  # fmt: skip
SECRET = "what belongs to the user\n"


def directories(scratch: Scratch, count: int) -> Verdict:
    """A link, a pipe, a device or another hard link at each name of a run, and configurations that sign themselves."""
    reference = scratch.reference("small", small_solve(3000))
    outside = scratch.directory / "outside"
    outside.mkdir()
    (outside / "secret").write_text(SECRET)
    sprung = outside / "sprung"
    makers: list[tuple[str, Callable[[Path], None]]] = [
        ("link", lambda path: path.symlink_to(outside / "secret")),
        ("dangling link", lambda path: path.symlink_to(outside / "new")),
        ("link to a directory", lambda path: path.symlink_to(outside)),
        ("pipe", lambda path: os.mkfifo(path)),
        ("device", lambda path: path.symlink_to("/dev/zero")),
        ("hard link", lambda path: os.link(outside / "secret", path)),
    ]
    cases = [(name, kind, make) for name in NAMES for kind, make in makers][: count or None]

    def one(number: int) -> str | None:
        name, kind, make = cases[number]
        run = scratch.copy(f"hostile-dir-{number}", reference)
        target = run / name
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)
        make(target)
        wrong = []
        for words in (
            ["resume", run.name, "--steps", "3001"],
            ["report", run.name],
            ["evaluate", run.name, "points.csv"],
        ):
            began = time.monotonic()
            ended = scratch.run(*words)
            if not ended.foreseen or time.monotonic() - began > 60:
                wrong.append(f"{words[0]}: {ended}")
        shutil.rmtree(run)
        return f"{kind} at {name}: {wrong}" if wrong else None

    scratch.points()
    wrong = [complaint for complaint in parallel(one, len(cases)) if complaint]
    signed = [
        _self_signed(scratch, reference, sprung, command) for command in ("resume", "solve", "evaluate", "report")
    ]
    wrong += [complaint for complaint in signed if complaint]
    for complaint in wrong[:8]:
        print("   ", complaint[:500])
    same = (outside / "secret").read_text() == SECRET and sorted(p.name for p in outside.iterdir()) == ["secret"]
    total = len(cases) + len(signed)
    return Verdict(
        total - len(wrong) if same else 0,
        total,
        f"refused or read in one line; outside of the run {'nothing changed' if same else 'SOMETHING CHANGED'}; "
        f"code run: {'YES' if sprung.exists() else 'never'}",
    )


def _self_signed(scratch: Scratch, reference: Path, sprung: Path, command: str) -> str | None:
    """A directory with an equation of its own and the right digest of it, as somebody may mail it."""
    run = scratch.copy(f"signed-{command}", reference)
    (run / "x.py").write_text(f"open({str(sprung)!r}, 'w')\n")
    digest = hashlib.sha256((run / "x.py").read_bytes()).hexdigest()
    text = (run / "config.toml").read_text()
    text = text.replace('problem = "poisson"', f'problem = "{run / "x.py"}:pde"\nsha256 = "{digest}"')
    (run / "config.toml").write_text(text)
    (run / "result.json").unlink()
    words = {
        "resume": [run.name],
        "solve": ["--config", f"{run.name}/config.toml"],
        "evaluate": [run.name, "points.csv"],
    }
    ended = scratch.run(command, *words.get(command, [run.name]))
    fine = ended.foreseen and (ended.code == 2 or command == "report")
    return None if fine else f"{command} of a configuration that signs itself: {ended}"


def files(scratch: Scratch, count: int) -> Verdict:
    """Checkpoints and configurations that try to run code."""
    del count  # there is one list of them
    sprung = scratch.directory / "sprung"
    contents = evil_checkpoints(scratch.directory, sprung)
    texts = evil_configurations(scratch.directory, sprung)
    refused = 0
    for number, content in enumerate(contents):
        run = scratch.copy(f"hostile-{number}", scratch.reference("small", small_solve(3000)))
        for path in (run / "checkpoints").iterdir():
            path.write_bytes(content)
        (run / "result.json").unlink()
        (run / "solution.npz").unlink()
        ended = scratch.run("resume", run.name)
        fine = "Traceback" not in ended.error and (ended.code == 2 or (ended.code == 0 and "is damaged" in ended.out))
        refused += fine
        if not fine:
            print(f"    checkpoint {number}: {ended}")
    for number, text in enumerate(texts):
        path = scratch.directory / f"hostile-{number}.toml"
        path.write_text(text)
        ended = scratch.run("solve", "--config", path.name)
        fine = ended.code == 2 and len(ended.error.splitlines()) == 1
        refused += fine
        if not fine:
            print(f"    {text!r}: {ended}")
    total, ran = len(contents) + len(texts), sprung.exists()
    return Verdict(0 if ran else refused, total, f"refused or set aside; code run: {'YES' if ran else 'never'}")


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
        ended = scratch.run("solve", "--config", path.name)
        taken = time.monotonic() - began
        fine = ended.foreseen and ended.code == 2 and not ended.out and key in ended.error
        path.unlink()
        return (None if fine else f"{text!r} -> {ended}"), taken

    results = parallel(one, count)
    wrong = [complaint for complaint, _ in results if complaint]
    for complaint in wrong[:5]:
        print("   ", complaint[:400])
    times = sorted(seconds for _, seconds in results)
    return Verdict(
        count - len(wrong),
        count,
        f"exit 2 with one line that names the key; seconds: median {times[count // 2]:.2f}, longest {times[-1]:.2f}",
    )

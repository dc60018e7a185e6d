"""kill −9 at random moments of everything that writes: it goes on to the same bits, or is simply run again."""

from __future__ import annotations

import json
import os
import random
import shutil
import time
import tomllib
from collections import Counter
from pathlib import Path

from trials.common import Scratch, Verdict, parallel


def _evaluates(scratch: Scratch, run: Path) -> bool:
    """Whether a solution that is there can be read."""
    if not (run / "result.json").exists():
        return True
    about = tomllib.loads((run / "config.toml").read_text())["run"]
    moment = ["--time", "0.05"] if about["kind"] == "evolution" else []
    ended = scratch.run("evaluate", str(run), str(scratch.points(about["dim"])), *moment)
    if ended.code and "no saved solution" not in ended.error:
        print(f"    {run.name}: {ended}")
        return False
    return True


def kills(run: list[str], reference: str, scratch: Scratch, count: int) -> Verdict:
    """kill −9 at random moments, then resume."""
    uncached = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false"}
    assert scratch.run(*run, "--out", f"{reference}-apart", env=uncached).code == 0
    scratch.reference(reference, run)
    began = time.monotonic()
    assert scratch.run(*run, "--out", f"{reference}-warm").code == 0
    length = time.monotonic() - began
    whole = scratch.state(reference)
    training = json.loads((scratch.directory / reference / "result.json").read_text())["seconds"]
    apart = "equal" if scratch.state(f"{reference}-apart") == whole else "NOT EQUAL"
    chance = random.Random(1)
    moments = [chance.uniform(0.15, 1.0) for _ in range(count)]

    def one(number: int) -> tuple[bool, str]:
        name = f"{reference}-kill-{number}"
        path = scratch.directory / name
        process = scratch.start(*run, "--out", name)
        waited_for = (None, "checkpoints/*.checkpoint", "solution.npz")[number % 3]
        if waited_for is None:  # anywhere
            time.sleep(moments[number] * length)
        else:  # somewhere in the training, or in what is written after it
            while not list(path.glob(waited_for)) and process.poll() is None:
                time.sleep(0.005)
            time.sleep(moments[number] * (training if number % 3 == 1 else 0.6))
        process.kill()
        process.communicate()
        if not (path / "config.toml").exists():  # killed before there was anything
            shutil.rmtree(path, ignore_errors=True)
            return scratch.run(*run, "--out", name).code == 0 and scratch.state(name) == whole, "before config.toml"
        found = list((path / "checkpoints").glob("*.checkpoint"))
        where = "before the first checkpoint" if not found else "in training"
        where = "while finalising" if (path / "solution.npz").exists() else where
        readable = _evaluates(scratch, path)
        ended = scratch.run("resume", name)
        finished = ended.code == 0 or (ended.code == 2 and "has ended" in ended.error)
        fine = readable and finished and scratch.state(name) == whole
        if not fine:
            print(f"    {name}, killed {where}: {readable=} {ended}")
        shutil.rmtree(path)
        return fine, where

    results = parallel(one, count)
    return Verdict(
        sum(fine for fine, _ in results), count, f"bitwise equal ({_counted(results)}); separate compilations: {apart}"
    )


def kills_of_a_default(scratch: Scratch, count: int) -> Verdict:
    """kill −9 in the stages of a default run of given seconds, which has no bits to keep but goes on to its end."""
    words = ["solve", "poisson", "--dim", "2", "--seconds", "6", "--checkpoint-seconds", "0.5"]
    scratch.reference("default", words)
    began = time.monotonic()
    assert scratch.run(*words, "--out", "default-warm").code == 0
    length, chance = time.monotonic() - began, random.Random(2)
    moments = [chance.uniform(0.2, 1.0) for _ in range(count)]

    def one(number: int) -> tuple[bool, str]:
        name = f"default-kill-{number}"
        path = scratch.directory / name
        process = scratch.start(*words, "--out", name)
        time.sleep(moments[number] * length)
        process.kill()
        process.communicate()
        if not (path / "config.toml").exists():
            return scratch.run(*words, "--out", f"{name}-again").code == 0, "before config.toml"
        rows = (path / "metrics.csv").read_text().splitlines() if (path / "metrics.csv").exists() else []
        where = rows[-1].split(",")[rows[0].split(",").index("stage")] if len(rows) > 1 else "before training"
        readable = _evaluates(scratch, path)
        ended = scratch.run("resume", name)
        finished = ended.code == 0 or (ended.code == 2 and "has ended" in ended.error)
        fine = readable and finished and _evaluates(scratch, path)
        if not fine:
            print(f"    {name}, killed {where}: {readable=} {ended}")
        return fine, "while finalising" if (path / "solution.npz").exists() and ended.code == 2 else where

    results = parallel(one, count)
    return Verdict(sum(fine for fine, _ in results), count, f"went on to their end ({_counted(results)})")


def kills_of_comparisons(scratch: Scratch, count: int) -> Verdict:
    """kill −9 of a comparison: what is there is whole, every finished run of it included."""
    words = ["compare", "poisson", "--dim", "1", "--methods", "pinn,deep-ritz", "--seconds", "0.5", "--set", "width=8"]
    words += ["--set", "n_interior=50"]
    began = time.monotonic()
    assert scratch.run(*words, "--out", "comparison").code == 0
    length, chance = time.monotonic() - began, random.Random(3)
    moments = [chance.uniform(0.2, 1.0) for _ in range(count)]

    def one(number: int) -> tuple[bool, str]:
        path = scratch.directory / f"comparison-{number}"
        process = scratch.start(*words, "--out", path.name)
        time.sleep(moments[number] * length)
        process.kill()
        said = process.communicate()[0].count("stopped by")
        if not (path / "compare.json").exists():
            return said == 0, "before the first run"
        found = json.loads((path / "compare.json").read_text())
        kept = sum(len(method["runs"]) for method in found["methods"].values())
        picture = path / "curves.png"
        whole = not picture.exists() or picture.read_bytes().endswith(b"IEND\xaeB`\x82")
        return kept >= said - 1 and whole, f"with {kept} runs kept"

    results = parallel(one, count)
    return Verdict(sum(fine for fine, _ in results), count, f"left whole files ({_counted(results)})")


def kills_of_exports(scratch: Scratch, count: int) -> Verdict:
    """kill −9 of an export: the directory is there whole or not at all, and the next export goes through."""
    reference = scratch.reference()
    words = ["export", str(reference), "--npz", "--vtk", "--points", "20000", "--out"]
    began = time.monotonic()
    assert scratch.run(*words, "export").code == 0
    length, chance = time.monotonic() - began, random.Random(4)
    moments = [chance.uniform(0.6, 1.05) for _ in range(count)]
    wanted = {path.name: path.stat().st_size for path in (scratch.directory / "export").iterdir()}

    def one(number: int) -> tuple[bool, str]:
        path = scratch.directory / f"export-{number}"
        process = scratch.start(*words, path.name)
        time.sleep(moments[number] * length)
        process.kill()
        process.communicate()
        if path.exists():
            return {p.name: p.stat().st_size for p in path.iterdir()} == wanted, "that were whole"
        return scratch.run(*words, path.name).code == 0, "that were made again"

    results = parallel(one, count)
    return Verdict(sum(fine for fine, _ in results), count, f"({_counted(results)})")


def _counted(results: list[tuple[bool, str]]) -> str:
    return ", ".join(f"{times} {where}" for where, times in Counter(where for _, where in results).most_common())

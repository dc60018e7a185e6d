"""Files of a run that are damaged or forged: by chance in every file, or on purpose in their structure."""

from __future__ import annotations

import hashlib
import io
import json
import random
import re
import shutil
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from npdg.runs.checkpoint import pack, unpack
from trials.common import Ended, Scratch, Verdict, Warm, accepted, small_solve
from trials.hostile import signed

LONGEST, LARGEST = 2.0, 500 * 2**20  # Seconds of CPU and bytes of memory that a damaged file may cost.
NASTY: list[Any] = [
    None, True, -1, 0, 2**63, 10**200, 1e308, -0.0, float("inf"), float("nan"), "", "\x1b[2J",
    "<script>alert(1)</script>",
    "../../etc/passwd", "a" * 10_000, [], {}, [[[]]], {"a": {"b": {}}}, [1e300] * 50, "float64", "step-000000001",
]  # fmt: skip


def flips(scratch: Scratch, count: int) -> Verdict:
    """Bit flips and truncations in every file of a run: `evaluate` says the same, or says what is wrong."""
    reference, points = scratch.reference("small", small_solve(3000)), str(scratch.points())
    files = sorted(p.relative_to(reference) for p in reference.rglob("*") if p.is_file() and p.name != "lock")
    chance, warm = random.Random(7), Warm(scratch)
    wanted = warm.run("evaluate", str(reference), points).ended
    assert wanted.code == 0, wanted
    path, outcomes, wrong = scratch.copy("flipped", reference), Counter(), []
    for number in range(count):
        name = files[number % len(files)]
        content = (reference / name).read_bytes()
        (path / name).write_bytes(_damaged(content, chance))
        if name.suffix == ".checkpoint":
            ended = Ended(2, "", "npdg: ") if not accepted((path / name).read_bytes()) else Ended(1, "", "accepted")
        else:
            ended = warm.run("evaluate", str(path), points).ended
        same = ended.code == 0 and ended.out == wanted.out
        outcomes["unchanged" if same else "detected" if ended.foreseen and ended.code else "WRONG"] += 1
        if not same and not (ended.foreseen and ended.code):
            wrong.append(f"{name}: {ended}")
        (path / name).write_bytes(content)
    warm.close()
    for complaint in wrong[:5]:
        print("   ", complaint[:400])
    figures = ", ".join(f"{times} {outcome}" for outcome, times in outcomes.most_common())
    return Verdict(count - len(wrong), count, f"in {len(files)} files: {figures}; silent changes: {outcomes['WRONG']}")


def _damaged(content: bytes, chance: random.Random) -> bytes:
    if not content or chance.random() < 0.25:
        return content[: chance.randrange(len(content) or 1)]
    damaged = bytearray(content)
    bit = chance.randrange(8 * len(content))
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def fuzz(scratch: Scratch, count: int) -> Verdict:
    """Forged checkpoints, arrays, JSON, TOML and CSV, whose digests are right: refused in one line, or read."""
    reference, chance, warm = scratch.reference("small", small_solve(3000)), random.Random(8), Warm(scratch)
    points = str(scratch.points())
    kinds: list[tuple[str, Callable[[Path, random.Random], None], list[str]]] = [
        ("checkpoint", _forged_checkpoint, ["resume"]),
        ("npz", _forged_arrays, ["evaluate", points]),
        ("JSON", _forged_json, ["evaluate", points]),
        ("JSON", _forged_json, ["report"]),
        ("TOML", _forged_toml, ["evaluate", points]),
        ("CSV", _forged_table, ["report"]),
        ("points", _forged_points, ["evaluate", "POINTS"]),
    ]
    warm.run("evaluate", str(reference), points)  # what is compiled once is not what a forged file costs
    codes, wrong, longest, largest = Counter(), [], 0.0, 0
    for number in range(count):
        kind, forge, (command, *rest) = kinds[number % len(kinds)]
        path = scratch.copy(f"forged-{number}", reference)
        if command == "resume":
            (path / "result.json").unlink()
        forge(path, chance)
        if command == "resume":
            reading = warm.run("resume", str(path), "--steps", "1")
        else:
            reading = warm.run(command, str(path), *(str(path / "points.csv") if w == "POINTS" else w for w in rest))
        ended = reading.ended
        codes[ended.code] += 1
        # A run that goes on trains, and a report of which a part is missing draws its pictures anew.
        accepted_run = command in ("resume", "report") and ended.code == 0
        longest = longest if accepted_run else max(longest, reading.cpu)
        largest = max(largest, reading.memory)
        fine = ended.foreseen and (accepted_run or reading.cpu < LONGEST) and reading.memory < LARGEST
        fine &= "\x1b[2J" not in ended.out + ended.error
        if not fine:
            wrong.append(f"{kind} ({number}) {command}: {reading.cpu:.1f} s, {reading.memory / 2**20:.0f} MB, {ended}")
        shutil.rmtree(path)
    warm.close()
    for complaint in wrong[:8]:
        print("   ", complaint[:500])
    figures = f"exit codes {dict(sorted(codes.items()))}; longest {longest:.2f} s of CPU, most {largest / 2**20:.0f} MB"
    return Verdict(count - len(wrong), count, figures)


def _mutated(value: Any, chance: random.Random) -> Any:
    """The same structure with one of its parts replaced, removed or repeated."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        way = chance.random()
        if way < 0.1:
            return {k: v for k, v in value.items() if k != key}
        if way < 0.2:
            return {**value, str(chance.choice(NASTY))[:50]: value[key]}
        return {**value, key: _mutated(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.8:
        at = chance.randrange(len(value))
        return [*value[:at], _mutated(value[at], chance), *value[at + 1 :]]
    if isinstance(value, float | int) and not isinstance(value, bool) and chance.random() < 0.3:
        return chance.choice([-value, value * 1e10, value + 1, str(value)])
    return chance.choice(NASTY)


def _forged_checkpoint(path: Path, chance: random.Random) -> None:
    for one in (path / "checkpoints").glob("*.checkpoint"):
        facts, arrays = unpack(one.read_bytes())
        packed = pack(facts, arrays)
        body = packed[packed.index(b"{") :]
        header, _, rest = body.partition(b"\n")
        for _ in range(chance.randrange(1, 4)):
            header = json.dumps(_mutated(json.loads(header), chance)).encode()
        one.write_bytes(signed(header + b"\n" + rest))


def _reseal(path: Path) -> None:
    result = json.loads((path / "result.json").read_text())
    result["seals"]["solution.npz"] = hashlib.sha256((path / "solution.npz").read_bytes()).hexdigest()
    (path / "result.json").write_text(json.dumps(result))


def _forged_arrays(path: Path, chance: random.Random) -> None:
    file = path / "solution.npz"
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name, way = chance.choice(list(members)), chance.randrange(8)
    if way == 0:
        del members[name]
    elif way == 1:
        members[chance.choice(["../evil.npy", "a" * 300, "\x1b[2J.npy"])] = members[name]
    elif way == 2:
        members[name] = _npy(
            np.full(chance.choice([(), (0,), (3, 3, 3), (2**10,)]), chance.choice([np.nan, 1e308, 0.0]))
        )
    elif way == 3:
        members[name] = re.sub(rb"'shape': \([^)]*\)", b"'shape': (1000000000000,)", members[name])
    elif way == 4:
        members[name] = re.sub(
            rb"'descr': '[^']*'",
            chance.choice([b"'descr': '|O'", b"'descr': '<U8'", b"'descr': '<c16'"]),
            members[name],
        )
    elif way == 5:
        members[name] = bytes(2**24)
    else:
        members[name] = _damaged(members[name], chance)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED if way == 5 else zipfile.ZIP_STORED) as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    data = bytearray(content.getvalue())
    if way == 6:  # sizes in the archive's own tables
        data[-chance.randrange(1, min(200, len(data)))] ^= 0xFF
    file.write_bytes(bytes(data))
    _reseal(path)


def _npy(array: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


def _forged_json(path: Path, chance: random.Random) -> None:
    file = path / chance.choice(["result.json", "env.json", "report.json"])
    found = json.loads(file.read_text())
    for _ in range(chance.randrange(1, 4)):
        found = _mutated(found, chance)
    text = json.dumps(found)
    if chance.random() < 0.1:
        text = chance.choice(["[" * 10_000, '{"a":' * 5000, "9" * 10_000, text[:-1], "\ufeff" + text])
    file.write_text(text)


def _forged_toml(path: Path, chance: random.Random) -> None:
    file = path / "config.toml"
    lines = file.read_text().splitlines()
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(lines))
        key = lines[at].partition("=")[0].strip()
        value = chance.choice(
            [
                "nan",
                "-inf",
                "1e400",
                "9" * 500,
                '"\\u001b[2J"',
                "[" * 200,
                "{a={b={c=1}}}",
                "1979-05-27",
                "true",
                "-1",
                '"x"',
                "0x7fffffffffffffff",
                "''",
            ]
        )
        lines[at] = chance.choice(
            [f"{key} = {value}", f"[{key or 'a'}.b.c]", "", lines[at] + lines[at], "a." * 500 + "b = 1"]
        )
    file.write_text("\n".join(lines) + "\n")
    result = json.loads((path / "result.json").read_text())
    del result["seals"]  # as an earlier version left it
    (path / "result.json").write_text(json.dumps(result))


def _forged_table(path: Path, chance: random.Random) -> None:
    file = path / "metrics.csv"
    rows = [line.split(",") for line in file.read_text().splitlines()]
    for _ in range(chance.randrange(1, 5)):
        row = rows[chance.choice([0, chance.randrange(len(rows))])]
        row[chance.randrange(len(row))] = chance.choice(
            ["", "nan", "inf", "1_0", "O.2", "\x00", '"', "1e999", "-1", "x" * 200_000, "\x1b[2J", "9" * 5000]
        )
    file.write_text("\n".join(",".join(row) for row in rows) + chance.choice(["\n", "", "\n1,2"]))


def _forged_points(path: Path, chance: random.Random) -> None:
    rows = chance.choice(
        [
            "x1\n0.1\n",
            "0.1,O.2\n",
            "1_0\n",
            "nan\n",
            "1e999\n",
            "0.1\n\n0.2\n",
            "0.1,0.2\n",
            "",
            "\x00",
            '"0.1\n',
            "x1\nx1\n",
            "\ufeffx1\n0.5\n",
            "0.5\n" * 10_000,
            "-1e308\n",
            "0,1\n",
            "9" * 10_000 + "\n",
        ]
    )
    (path / "points.csv").write_text(rows)

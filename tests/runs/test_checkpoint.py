"""Checkpoint files: whole or detected, never run; and the files, the table and the lock around them."""

import hashlib
import json
import math
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from npdg.errors import InputError
from npdg.runs import checkpoint, lock, tables
from npdg.runs.checkpoint import MAGIC, Damaged, Folder, pack, unpack

ARRAYS = {
    ".fields['u'].weight": np.linspace(0, 1, 12).reshape(3, 4),
    ".rules['u']": np.float32(0.5).reshape(()),
    ".key": np.array([1, 2], np.uint32),
    ".step": np.array(7),
    "['flag']": np.array([True, False]),
}


def test_what_is_packed_comes_back_bit_for_bit():
    facts, arrays = unpack(pack({"seconds": 1.5, "run": {"seed": 3}}, ARRAYS))
    assert facts == {"seconds": 1.5, "run": {"seed": 3}}
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)


def test_every_bit_flip_and_truncation_is_detected():
    content = pack({"seconds": 1.5}, ARRAYS)
    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(Damaged):
            unpack(bytes(flipped))
    for length in range(len(content)):
        with pytest.raises(Damaged):
            unpack(content[:length])
    with pytest.raises(Damaged):
        unpack(content + b"\0")


def signed(header: bytes, rest: bytes = b"") -> bytes:
    """A file whose digest is right, whatever it says."""
    body = header + b"\n" + rest
    return MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


class Trap:
    """An object that makes a file when it is unpickled."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def listing(**changes) -> bytes:
    return json.dumps({"arrays": [{"name": "a", "dtype": "float64", "shape": [1], **changes}]}).encode()


def test_a_file_with_the_right_digest_runs_no_code_and_asks_for_no_memory(tmp_path):
    trap = pickle.dumps(Trap(tmp_path / "sprung"))
    hostile = [
        trap,
        signed(trap),
        signed(listing(dtype="object"), trap),
        signed(listing(dtype="O"), trap),
        signed(listing(dtype="__import__('os')"), trap[:8]),
        signed(listing(dtype=["object"]), trap),
        signed(listing(shape=[2**62, 2**62])),
        signed(listing(shape=[-1]), bytes(8)),
        signed(listing(shape=[True, "1"]), bytes(8)),
        signed(listing(name=["../../x"]), bytes(8)),
        signed(b"[" * 100_000),
        signed(b"{}"),
        signed(b"null"),
        signed(b'{"arrays": 3}'),
        signed(b"\xff\xfe"),
    ]
    for content in hostile:
        with pytest.raises(Damaged):
            unpack(content)
    assert not (tmp_path / "sprung").exists()
    for facts in (b'{"arrays": []}', b'{"arrays": [], "step": "__import__"}', b'{"arrays": [], "step": 1, "run": 2}'):
        (tmp_path / "step").write_bytes(signed(facts))
        with pytest.raises(Damaged, match="facts"):
            checkpoint.read(tmp_path / "step")
    with pytest.raises(TypeError, match="object"):
        pack({}, {"a": np.array([Trap(tmp_path)], dtype=object)})


def test_the_last_two_and_the_best_are_kept(tmp_path):
    folder = Folder(tmp_path / "checkpoints")
    for step, merit in ((1, 0.5), (2, 0.1), (3, math.nan), (4, 0.3), (5, 0.2)):
        folder.write(step, merit, {}, ARRAYS)
    assert [int(p.stem[5:]) for p in sorted(folder.directory.iterdir())] == [2, 4, 5]
    again = Folder(folder.directory)
    found, _ = again.newest()
    assert found is not None
    assert found.facts["step"] == 5
    again.write(6, 0.05, {}, ARRAYS)
    assert [int(p.stem[5:]) for p in sorted(folder.directory.iterdir())] == [5, 6]


def test_a_damaged_checkpoint_is_named_and_the_previous_one_is_used(tmp_path):
    folder = Folder(tmp_path)
    for step in (1, 2):
        folder.write(step, None, {}, ARRAYS)
    newest = tmp_path / "step-000000002.checkpoint"
    newest.write_bytes(newest.read_bytes()[:-1])
    (tmp_path / ".step-000000003.checkpoint.partial").write_bytes(b"half")
    found, complaints = Folder(tmp_path).newest()
    assert found is not None
    assert found.facts["step"] == 1
    assert len(complaints) == 1
    assert newest.name in complaints[0]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-000000001.checkpoint", "step-000000002.damaged"]


@pytest.fixture
def full_disk(monkeypatch):
    """After so many bytes there is no space left."""

    def fill(room: int) -> None:
        left, write = room, os.write

        def limited(handle: int, data) -> int:
            nonlocal left
            if left == 0:
                raise OSError(28, "No space left on device")
            done = write(handle, bytes(data)[:left])
            left -= done
            return done

        monkeypatch.setattr(os, "write", limited)

    return fill


@pytest.mark.parametrize("room", [0, 1, 90, 500])
def test_a_full_disk_leaves_the_old_checkpoint_and_nothing_else(room, tmp_path, full_disk):
    folder = Folder(tmp_path)
    folder.write(1, None, {}, ARRAYS)
    full_disk(room)
    with pytest.raises(OSError, match="step-000000002"):
        folder.write(2, None, {}, ARRAYS)
    assert [p.name for p in tmp_path.iterdir()] == ["step-000000001.checkpoint"]
    assert checkpoint.read(tmp_path / "step-000000001.checkpoint").facts["step"] == 1


def test_a_row_that_does_not_fit_leaves_a_valid_table(tmp_path, full_disk):
    table = tmp_path / "metrics.csv"
    tables.append_rows(table, COLUMNS, [{"step": 1, "seconds": 0, "error": 0.5}])
    full_disk(3)
    with pytest.raises(OSError, match=r"metrics\.csv"):
        tables.append_rows(table, COLUMNS, [{"step": 2, "seconds": 0, "error": 0.25}])
    assert table.read_text() == "step,seconds,error\n1,0,0.5\n"


COLUMNS = ["step", "seconds", "error"]


def test_rows_after_a_checkpoint_are_dropped_and_a_torn_line_is_too(tmp_path):
    table = tmp_path / "metrics.csv"
    for step in (1, 2, 3):
        tables.append_rows(table, COLUMNS, [{"step": step, "seconds": 0, "error": 1 / step, "other": 0}])
    with table.open("a") as file:
        file.write("4,0,0.2")
    tables.keep_rows(table, lambda row: int(row["step"]) <= 2)
    assert table.read_text() == "step,seconds,error\n1,0,1.0\n2,0,0.5\n"


def test_a_lock_is_for_one_and_is_free_again(tmp_path):
    refused = pytest.raises(InputError, match=f"in use by process {os.getpid()}")
    with lock.held(tmp_path), refused, lock.held(tmp_path):
        pass
    with lock.held(tmp_path):
        pass

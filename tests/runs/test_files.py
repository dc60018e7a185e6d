"""Files that are opened as regular ones alone, read with bounds, and written whole or not at all."""

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npdg.errors import InputError
from npdg.runs import files, lock, trust
from npdg.runs.files import new_whole_directory, read_bytes, write_new, write_whole
from npdg.runs.tables import append_rows, read_metrics
from npdg.runs.untrusted import read_array, read_arrays, read_json, read_toml


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_whole(path, "old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_whole(path, "new")
    assert caught.value.filename == str(path)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_new_file_replaces_nothing(tmp_path):
    write_new(tmp_path / "file", "first")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "file", "second")
    assert (tmp_path / "file").read_text() == "first"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_link_is_neither_read_nor_written_through(tmp_path):
    outside, inside = tmp_path / "outside", tmp_path / "run"
    outside.write_text("precious")
    inside.mkdir()
    for name in ("lock", "metrics.csv", "config.toml"):
        (inside / name).symlink_to(outside)
    with pytest.raises(InputError, match="symbolic link"):
        read_bytes(inside / "config.toml")
    with pytest.raises(InputError, match="symbolic link"):
        append_rows(inside / "metrics.csv", ["a"], [{"a": 1}])
    with pytest.raises(InputError, match="symbolic link"), lock.held(inside):
        pass
    write_whole(inside / "config.toml", "ours")  # it takes the place of the link
    assert outside.read_text() == "precious"
    assert not (inside / "config.toml").is_symlink()
    assert read_bytes(inside / "metrics.csv", follow=True) == b"precious"  # a file that the user named


def test_a_directory_of_a_run_is_no_link(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "figures").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="symbolic link"):
        files.real_directory(tmp_path / "figures")
    assert files.real_directory(tmp_path / "checkpoints").is_dir()


@pytest.mark.parametrize("kind", ["fifo", "directory", "device"])
def test_what_is_no_file_is_refused_at_once(tmp_path, kind):
    path = tmp_path / "it"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path = Path("/dev/zero")
    with pytest.raises(InputError, match="no regular file"):
        read_bytes(path)


def test_a_lock_that_is_another_file_too_is_not_emptied(tmp_path):
    (tmp_path / "other").write_text("precious")
    os.link(tmp_path / "other", tmp_path / "lock")
    with pytest.raises(InputError, match="also another file"), lock.held(tmp_path):
        pass
    assert (tmp_path / "other").read_text() == "precious"


FORKED = """
import os, sys
from pathlib import Path
from npdg.runs import lock
directory = Path(sys.argv[1])
with lock.held(directory):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(read, 1)  # it lives on for as long as it is let
        os._exit(0)
with lock.held(directory):  # the parent has let go, and so has the child
    print("held")
os.write(write, b"x")
os.waitpid(child, 0)
"""


def test_a_forked_child_does_not_keep_the_lock(tmp_path):
    words = [sys.executable, "-c", FORKED, str(tmp_path)]
    assert subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout == "held\n"


def test_a_lock_that_was_removed_is_not_held_by_two(tmp_path):
    with lock.held(tmp_path):
        (tmp_path / "lock").unlink()
        with lock.held(tmp_path):  # another file of the same name
            assert (tmp_path / "lock").exists()


def test_longer_files_than_there_may_be_are_refused(tmp_path):
    (tmp_path / "long").write_bytes(b"x" * 101)
    with pytest.raises(InputError, match="longer than the 100 bytes"):
        read_bytes(tmp_path / "long", 100)


def test_a_torn_last_line_is_left_out_and_damaged_lines_are_too_with_a_warning(tmp_path):
    (tmp_path / "m.csv").write_text("step,seconds\n1,2\n2,")
    assert read_metrics(tmp_path / "m.csv") == (["step", "seconds"], [{"step": "1", "seconds": "2"}])
    (tmp_path / "m.csv").write_text("step,seconds\n1\n2,3\n\0\0\0\0\nx,1\n3,O.1\n")
    with pytest.warns(UserWarning, match="4 of its 5 lines"):
        assert read_metrics(tmp_path / "m.csv")[1] == [{"step": "2", "seconds": "3"}]
    (tmp_path / "m.csv").write_text("stfp,seconds\n1,2\n")
    with pytest.warns(UserWarning, match="1 of its 1 lines"):
        assert read_metrics(tmp_path / "m.csv") == ([], [])
    (tmp_path / "m.csv").write_bytes(b"step,seconds\n\xff\xfe,2\n")
    with pytest.warns(UserWarning, match="history is left out"):
        assert read_metrics(tmp_path / "m.csv") == ([], [])


@pytest.mark.parametrize("text", ["[" * 10_000, '{"a":' * 10_000, "1" * 5000, "[1]", "{", '{"a": tru}', "\x00"])
def test_bad_json_is_one_sentence(tmp_path, text):
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(InputError, match=r"is damaged: .*\.$"):
        read_json(tmp_path / "result.json")


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "[" + "a." * 5000 + "a]", "a = " + "1" * 5000, "a = \x00"])
def test_bad_toml_is_one_sentence(tmp_path, text):
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(InputError, match=r"is damaged: "):
        read_toml(tmp_path / "config.toml")


def npz(**arrays: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    return content.getvalue()


def test_arrays_are_read_as_numpy_writes_them(tmp_path):
    given = {
        "a": np.arange(6.0).reshape(2, 3),
        "['b'].c": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "d": np.array(1),
    }
    (tmp_path / "it.npz").write_bytes(npz(**given))
    found = read_arrays(tmp_path / "it.npz")
    assert found.keys() == given.keys()
    for name, array in given.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype


def test_arrays_that_ask_for_more_memory_than_there_is_are_refused(tmp_path):
    header = (
        b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }".ljust(127)
        + b"\n"
    )
    (tmp_path / "it.npy").write_bytes(header)
    with pytest.raises(InputError, match="another size"):
        read_array(tmp_path / "it.npy")
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", b"\0" * (2**26 + 1))
    with pytest.raises(InputError, match="unpack to more"):
        read_arrays(tmp_path / "bomb.npz")
    objects = io.BytesIO()
    np.save(objects, np.array([{}], dtype=object), allow_pickle=True)
    (tmp_path / "objects.npy").write_bytes(objects.getvalue())
    with pytest.raises(InputError, match="Python objects"):
        read_array(tmp_path / "objects.npy")


WHOLE = npz(a=np.arange(20.0), b=np.ones((3, 2)))


@given(st.integers(0, 8 * len(WHOLE) - 1))
@settings(max_examples=200, deadline=None)
def test_a_flipped_bit_of_arrays_is_seen_or_changes_nothing(tmp_path_factory, bit):
    damaged = bytearray(WHOLE)
    damaged[bit // 8] ^= 1 << bit % 8
    path = tmp_path_factory.mktemp("flip") / "it.npz"
    path.write_bytes(bytes(damaged))
    try:
        found = read_arrays(path)
    except InputError:
        return
    if found.keys() == {"a", "b"}:  # a name is not part of what is checked; whoever asks for it finds it missing
        np.testing.assert_array_equal(found["a"], np.arange(20.0))
        np.testing.assert_array_equal(found["b"], np.ones((3, 2)))


def test_a_directory_is_there_when_it_is_complete(tmp_path):
    def interrupted() -> None:
        with new_whole_directory(tmp_path / "export") as place:
            (place / "one").write_text("1")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not list(tmp_path.iterdir())
    with new_whole_directory(tmp_path / "export") as place:
        (place / "one").write_text("1")
    assert (tmp_path / "export" / "one").read_text() == "1"


def test_what_was_named_is_trusted_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    mine, other = tmp_path / "mine.py", tmp_path / "other.py"
    assert not trust.trusted(mine, "a" * 64)
    trust.trust(mine, "a" * 64)
    assert trust.trusted(mine, "a" * 64)
    assert not trust.trusted(mine, "b" * 64)
    assert not trust.trusted(other, "a" * 64)
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")  # where nothing can be written
    trust.trust(mine, "b" * 64)
    assert not trust.trusted(mine, "b" * 64)


def test_json_is_what_was_written(tmp_path):
    files.write_json(tmp_path / "it.json", {"a": float("nan"), "b": [1, {"c": "d"}]})
    assert read_json(tmp_path / "it.json") == {"a": None, "b": [1, {"c": "d"}]}
    assert json.loads((tmp_path / "it.json").read_text())["a"] is None
    assert read_json(tmp_path / "none.json") == {}

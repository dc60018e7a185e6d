"""Arrays kept from one run to the next: written once, read again, and missed by nobody where they cannot be kept."""

import numpy as np
import pytest

from npdg.catalogue import find
from npdg.reference import transport_maps
from npdg.runs.cache import kept


class Computation:
    """Gives the same arrays every time, and counts how often it was asked."""

    def __init__(self):
        self.times = 0

    def __call__(self) -> dict[str, np.ndarray]:
        self.times += 1
        return {"one": np.arange(3.0), "two": np.eye(2)}


@pytest.fixture
def directory(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "npdg"


def same(first, second) -> bool:
    return first.keys() == second.keys() and all(np.array_equal(first[key], second[key]) for key in first)


def test_arrays_are_computed_once_for_every_recipe(directory):
    compute = Computation()
    first = kept("name", "a recipe", compute)
    assert same(kept("name", "a recipe", compute), first)
    assert compute.times == 1
    assert same(kept("name", "another recipe", compute), first)
    assert compute.times == 2
    assert len(list(directory.iterdir())) == 2  # and nothing that was on the way
    assert all(path.name.startswith("name-") for path in directory.iterdir())


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04broken", b"\x80\x04K\x01.", None])
def test_a_damaged_cache_is_made_anew(directory, damage):
    compute = Computation()
    first = kept("name", "a recipe", compute)
    [path] = directory.iterdir()
    path.write_bytes(path.read_bytes()[:-100] if damage is None else damage)
    assert same(kept("name", "a recipe", compute), first)
    assert compute.times == 2
    assert same(kept("name", "a recipe", compute), first)
    assert compute.times == 2


def test_a_directory_that_cannot_be_written_costs_time_and_nothing_else(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    compute = Computation()
    for times in (1, 2):
        assert same(kept("name", "a recipe", compute), compute())
        assert compute.times == 2 * times
    assert (tmp_path / "file").read_text() == "not a directory"


@pytest.fixture
def few(monkeypatch):
    """The assignment of a few points, of which this process remembers nothing."""
    monkeypatch.setattr(transport_maps, "ASSIGNED", 32)
    transport_maps.planar.cache_clear()
    yield
    transport_maps.planar.cache_clear()


@pytest.mark.usefixtures("few")
def test_the_truth_of_a_transport_is_kept_from_one_run_to_the_next(directory, monkeypatch):
    pair = find("ot-mixture").build(2)
    assert pair.truth is not None
    points, images = pair.truth(20)
    assert [path.suffix for path in directory.iterdir()] == [".npz"]

    def never(*arguments):
        raise AssertionError("it was computed again")

    transport_maps.planar.cache_clear()  # as in a new process
    monkeypatch.setattr(transport_maps, "assignment", never)
    again = pair.truth(20)
    np.testing.assert_array_equal(again[0], points)
    np.testing.assert_array_equal(again[1], images)


@pytest.mark.usefixtures("few")
def test_the_truth_of_a_transport_does_not_need_its_cache(directory, tmp_path, monkeypatch):
    pair = find("ot-mixture").build(2)
    assert pair.truth is not None
    points, images = pair.truth(20)
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    transport_maps.planar.cache_clear()
    again = pair.truth(20)
    np.testing.assert_array_equal(again[0], points)
    np.testing.assert_array_equal(again[1], images)

"""A few of every part of benchmarks/torture.py."""

import pytest
from torture import PARTS
from trials.common import Scratch

COUNTS = {
    "faults at every call": 2,
    "unsynced writes": 3,
    "memory limits": 1,
    "flips and truncations": 60,
    "forged files": 42,
    "hostile directories": 4,
    "bad configurations": 4,
    "output and surroundings": 3,
    "SIGSTOP": 1,
    "races": 3,
}


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return Scratch(tmp_path_factory.mktemp("torture"))


@pytest.mark.slow
@pytest.mark.parametrize("part", COUNTS)
def test_a_few_of(part, scratch):
    verdict = PARTS[part][0](scratch, COUNTS[part])
    assert verdict.good == verdict.total, verdict.figures

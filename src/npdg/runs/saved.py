"""Saved solutions, marches and maps, opened from their run directory; damage is named in one sentence."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from npdg.errors import InputError

if TYPE_CHECKING:
    from npdg.solution import Solution
    from npdg.trajectory import Trajectory
    from npdg.transportation import TransportSolution

    Saved = Solution | Trajectory | TransportSolution


def open_saved(directory: Path, problem: str | None) -> Saved:
    """What a run directory holds; `problem` is FILE.py:NAME if it was of the user's own equation or measures."""
    from npdg.runs.reading import read_run

    run = read_run(directory)  # says what a directory that is none lacks
    if not run.finished:
        raise InputError(f"run: {str(directory)!r} has not come to its end and holds no solution yet.")
    target = None if problem is None else _target(problem)
    if target is None and ".py:" in str(run.run["problem"]):
        raise InputError(f"problem: {run.run['problem']!r} is your own equation; give it as --problem FILE.py:NAME.")

    from npdg.problems.user import load_file
    from npdg.solution import load

    pde = None if target is None else load_file(*target, run.run["dim"])
    try:
        return load(directory, pde)
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"run: {str(directory)!r} is damaged: {_one_line(error)}.") from None


def _target(problem: str) -> tuple[Path, str]:
    from npdg.runs.config import read_target

    target = read_target(problem, None, {})
    if target.file is None:
        raise InputError(f"problem: {problem!r} is one of ours, which the run names itself; leave --problem out.")
    return target.file


def _one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")

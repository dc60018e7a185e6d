"""Saved results, opened from their directory; damage is named in one sentence."""

from __future__ import annotations

import json
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from npdg.catalogue import CARDS
from npdg.catalogue.user import load_file
from npdg.errors import InputError
from npdg.methods.registry import make_method
from npdg.problem.transport import Transport
from npdg.results.base import Result, Saved
from npdg.runs.files import read_rows
from npdg.runs.finalise import finalise
from npdg.runs.reading import ARRAYS, CONFIG, METRICS, RESULT, SAMPLES, Run, kind_of, read_run
from npdg.runs.report import build
from npdg.runs.request import read_target


def load(path: str | Path, pde: Any = None, network: Any = None) -> Any:
    """Read the `Solution`, `Trajectory` or `TransportMap` of a run or of `save`.

    Arguments:
        path: the directory.
        pde: the equation, evolution or transport problem, if it was your own.
        network: the network, if it was your own.
    """
    directory = Path(path)
    missing = [name for name in (ARRAYS, CONFIG, RESULT) if not (directory / name).is_file()]
    if missing:
        raise InputError(f"load: {str(directory)!r} holds no saved solution: {', '.join(missing)} is missing.")
    config = tomllib.loads((directory / CONFIG).read_text())
    result = json.loads((directory / RESULT).read_text())
    run = config["run"]
    with np.load(directory / ARRAYS, allow_pickle=False) as arrays:
        saved = Saved(
            directory / ARRAYS, run, result, read_rows(directory / METRICS)[1], {name: arrays[name] for name in arrays}
        )
    problem = _problem(directory, config) if pde is None else pde
    method = make_method(kind_of(run, result), run["method"], preset=run["preset"], network=network)
    return method.restored(problem, method.model.from_flat(config["settings"]), saved)


def _problem(directory: Path, config: dict[str, Any]) -> Any:
    """The problem that a directory tells of itself: one of the catalogue, or samples that are kept with it."""
    run = config["run"]
    name, ours = run["problem"], not run.get("own", False)
    if ours and name in CARDS:
        return CARDS[name].build(run["dim"], **config.get("options", {}))
    if (directory / SAMPLES).is_file():
        with np.load(directory / SAMPLES, allow_pickle=False) as arrays:
            if {"source", "target"} <= set(arrays):
                return Transport(arrays["source"], arrays["target"], name=name)
    if run.get("kind") == "transport":
        raise InputError(
            "pde: the measures of this run were your own; give them as npdg.load(path, pde=npdg.Transport(...))."
        )
    raise InputError(f"pde: {name!r} is your own equation; give it as npdg.load(path, pde=...).")


def open_saved(directory: Path, problem: str | None) -> Result:
    """What a run directory holds; `problem` is FILE.py:NAME if it was of the user's own equation or measures."""
    run = read_run(directory)  # says what a directory that is none lacks
    if not run.finished:
        raise InputError(f"run: {str(directory)!r} has not come to its end and holds no solution yet.")
    target = None if problem is None else _target(problem)
    if target is None and ".py:" in str(run.run["problem"]):
        raise InputError(f"problem: {run.run['problem']!r} is your own equation; give it as --problem FILE.py:NAME.")
    own = None if target is None else load_file(*target, run.run["dim"])
    try:
        return load(directory, own)
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"run: {str(directory)!r} is damaged: {_one_line(error)}.") from None


def completed(run: Run) -> Run:
    """A run with what its report needs, made now if it is missing and can be."""
    if not build.incomplete(run):
        return run
    finalise(run.directory, open_saved(run.directory, None))
    return read_run(run.directory)


def _target(problem: str) -> tuple[Path, str]:
    target = read_target(problem, None, {})
    if target.file is None:
        raise InputError(f"problem: {problem!r} is one of ours, which the run names itself; leave --problem out.")
    return target.file


def _one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")

"""Saved results, opened from their directory; damage is named in one sentence."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from npdg.catalogue import CARDS
from npdg.catalogue.user import load_file
from npdg.errors import InputError
from npdg.methods.registry import make_method
from npdg.problem.transport import Transport
from npdg.results.base import Result, Saved
from npdg.runs.finalise import finalise
from npdg.runs.reading import (
    ARRAYS,
    CONFIG,
    METRICS,
    RESULT,
    SAMPLES,
    Config,
    Run,
    kind_of,
    read_config,
    read_result,
    read_run,
)
from npdg.runs.report import build
from npdg.runs.request import read_target
from npdg.runs.seals import check_seals
from npdg.runs.tables import read_metrics
from npdg.runs.untrusted import damaged, read_arrays


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
    config, result, path = read_config(directory), read_result(directory), directory / ARRAYS
    check_seals(directory, config, result)
    arrays = read_arrays(path)
    if not all(np.all(np.isfinite(array)) for array in arrays.values()):
        raise damaged(path, "it holds numbers that are not finite")
    saved = Saved(path, config.run, result, read_metrics(directory / METRICS)[1], arrays)
    problem = _problem(directory, config) if pde is None else pde
    kind, preset = kind_of(config.run, result), str(config.run.get("preset", "default"))
    method = make_method(kind, config.run["method"], preset=preset, network=network)
    settings = method.model.from_flat(config.settings)
    try:
        return method.restored(problem, settings, saved)
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise damaged(directory, f"{type(error).__name__}: {error}") from None


def _problem(directory: Path, config: Config) -> Any:
    """The problem that a directory tells of itself: one of the catalogue, or samples that are kept with it."""
    run = config.run
    name, ours = run["problem"], not run.get("own", False)
    if ours and name in CARDS:
        options, others = CARDS[name].take_options(config.options)
        if others:
            raise damaged(directory / CONFIG, f"{next(iter(others))!r} is no option of {name}")
        return CARDS[name].build(CARDS[name].check_dim(run["dim"]), **options)
    if os.path.lexists(directory / SAMPLES):
        arrays = read_arrays(directory / SAMPLES)
        if {"source", "target"} <= set(arrays):
            return Transport(arrays["source"], arrays["target"], name=name)
    if run.get("kind") == "transport":
        raise InputError(
            "pde: the measures of this run were your own; give them as npdg.load(path, pde=npdg.Transport(...))."
        )
    raise InputError(f"pde: {name!r} is your own equation; give it as npdg.load(path, pde=...).")


def open_saved(directory: Path, problem: str | None) -> Result:
    """What a run directory holds; `problem` is FILE.py:NAME if it was of the user's own equation or measures."""
    run = read_config(directory).run  # says what a directory that is none lacks
    if not read_result(directory):
        raise InputError(f"run: {str(directory)!r} has not come to its end and holds no solution yet.")
    target = None if problem is None else _target(problem)
    if target is None and ".py:" in str(run["problem"]):
        raise InputError(f"problem: {run['problem']!r} is your own equation; give it as --problem FILE.py:NAME.")
    return load(directory, None if target is None else load_file(*target, run["dim"]))


def completed(run: Run, warn: Callable[[str], None]) -> Run:
    """A run with what its report needs, made now if it is missing and can be."""
    if not build.incomplete(run):
        return run
    try:
        finalise(run.directory, open_saved(run.directory, None), timed=True)
    except InputError as error:
        warn(f"the report has no pictures of the solution: {error}")
    return read_run(run.directory)


def _target(problem: str) -> tuple[Path, str]:
    target = read_target(problem, None, {})
    if target.file is None:
        raise InputError(f"problem: {problem!r} is one of ours, which the run names itself; leave --problem out.")
    return target.file

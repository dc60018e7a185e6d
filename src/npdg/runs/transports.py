"""Saved transport maps: the arrays of T and φ, and those of the samples where a measure is one of samples."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from npdg.distributions import Samples
from npdg.errors import InputError
from npdg.pair import Pair
from npdg.problems import CARDS
from npdg.runs import store
from npdg.runs.files import plain, write_json
from npdg.settings import parse
from npdg.transport_recipe import start
from npdg.transport_settings import TransportSettings

if TYPE_CHECKING:
    from npdg.transportation import TransportSolution

SAMPLES = "samples.npz"


def save(solution: TransportSolution, path: Path) -> Path:
    """Write a solution to a new directory."""
    directory = store.new_directory(path, "")
    write_config(directory, solution.pair, solution.method, solution.preset, solution.seed, solution.settings)
    metrics = store.MetricsFile(directory)
    for record in solution.history:
        if record.errors:
            metrics(record.step, record)
    write_result(directory, solution)
    return directory


def write_config(directory: Path, pair: Pair, method: str, preset: str, seed: int, settings: TransportSettings) -> None:
    """The resolved configuration of a solution, and its samples."""
    store.write_config(directory, pair, method, preset, seed, settings)
    write_samples(directory, pair)


def write_samples(directory: Path, pair: Pair) -> None:
    """The arrays of measures that are known by nothing else."""
    arrays = {
        side: measure.given
        for side, measure in (("source", pair.source), ("target", pair.target))
        if isinstance(measure, Samples)
    }
    if arrays:
        store.write_npz(directory / SAMPLES, arrays)


def write_result(directory: Path, solution: TransportSolution) -> dict[str, Any]:
    """The arrays of T and φ and the result of the run; returns the result."""
    store.write_arrays(directory, solution.fields)
    result = plain(result_of(solution, directory))
    write_json(directory / store.RESULT, result)
    return result


def result_of(solution: TransportSolution, directory: Path) -> dict[str, Any]:
    """The figures of a run under the names the command line promises."""
    return {
        "problem": solution.pair.name,
        "dim": solution.pair.dim,
        "method": solution.method,
        "preset": solution.preset,
        "seed": solution.seed,
        "precision": solution.precision,
        "steps": solution.steps,
        "seconds": solution.seconds,
        "compile_seconds": solution.compile_seconds,
        "rel_l2": None,
        "rel_h1": None,
        "error_estimate": None,
        **solution.score(),
        "stop_reason": solution.stop_reason,
        "detail": solution.detail,
        "run_dir": str(directory),
    }


def load(directory: Path, pair: Pair | None) -> TransportSolution:
    """Read a solution back; its arrays are laid into fields built from its configuration."""
    from npdg.transportation import TransportSolution, precision

    config = tomllib.loads((directory / store.CONFIG).read_text())
    settings, run = parse(TransportSettings, config["settings"]), config["run"]
    pair = _pair(directory, config) if pair is None else pair
    result = json.loads((directory / store.RESULT).read_text())
    with precision(settings.precision):
        fields = store.fill(start(pair, settings, jax.random.key(0)), directory / store.ARRAYS)
    return TransportSolution(
        pair,
        run["method"],
        run["preset"],
        settings,
        fields,
        run["seed"],
        result["stop_reason"],
        result["detail"],
        result["steps"],
        result["seconds"],
        result["compile_seconds"],
        store.history(directory),
    )


def _pair(directory: Path, config: dict[str, Any]) -> Pair:
    name = config["run"]["problem"]
    if name in CARDS:
        return CARDS[name].build(config["run"]["dim"], **config.get("options", {}))
    if (directory / SAMPLES).is_file():
        with np.load(directory / SAMPLES, allow_pickle=False) as arrays:
            if {"source", "target"} <= set(arrays):
                return Pair(arrays["source"], arrays["target"], name=name)
    raise InputError("pde: the measures of this run were your own; give them as npdg.load(path, pde=npdg.Pair(...)).")

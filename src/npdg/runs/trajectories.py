"""Saved marches: the arrays of u at every kept time, and what was measured at every step."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from npdg import methods
from npdg.errors import InputError
from npdg.marching import TimeStep
from npdg.problems import CARDS
from npdg.runs import store
from npdg.runs.files import append_rows, plain, read_rows, write_json
from npdg.settings import Settings, parse

if TYPE_CHECKING:
    from npdg.evolution import Evolution
    from npdg.trajectory import Trajectory

COLUMNS: tuple[str, ...] = (
    "number",
    "time",
    "seconds",
    "rmse",
    "energy",
    "residual",
    "steps",
    "compile_seconds",
    "rollbacks",
    "stop_reason",
)


def metrics_file(directory: Path) -> Callable[[int, TimeStep], None]:
    """A metrics.csv with one line a time step, complete after every line."""
    return lambda number, step: append_rows(directory / store.METRICS, COLUMNS, [_row(step)])


def _row(step: TimeStep) -> dict[str, Any]:
    return {
        "number": step.number,
        "time": repr(step.time),
        "seconds": f"{step.seconds:.6f}",
        "rmse": "" if step.rmse is None else repr(step.rmse),
        "energy": "" if step.energy is None else repr(step.energy),
        "residual": repr(step.residual),
        "steps": step.steps,
        "compile_seconds": f"{step.compile_seconds:.6f}",
        "rollbacks": step.rollbacks,
        "stop_reason": step.stop_reason,
    }


def _step(row: dict[str, str]) -> TimeStep:
    number = lambda key: float(row[key]) if row[key] else None
    return TimeStep(
        int(row["number"]),
        float(row["time"]),
        float(row["residual"]),
        row["stop_reason"],
        "",
        float(row["seconds"]),
        float(row["compile_seconds"]),
        [],
        number("rmse"),
        number("energy"),
        int(row["steps"]),
        int(row.get("rollbacks") or 0),
    )


def save(trajectory: Trajectory, path: Path) -> Path:
    """Write a trajectory to a new directory."""
    directory = store.new_directory(path, "")
    write_config(directory, trajectory)
    write = metrics_file(directory)
    for step in trajectory.steps:
        write(step.number, step)
    write_result(directory, trajectory)
    return directory


def write_config(directory: Path, trajectory: Trajectory) -> None:
    """The resolved configuration of a march."""
    evolution = trajectory.evolution
    store.write_config(directory, evolution, trajectory.method, trajectory.preset, trajectory.seed, trajectory.settings)


def write_result(directory: Path, trajectory: Trajectory) -> dict[str, Any]:
    """The arrays of u at the kept times and the result of the march; returns the result."""
    arrays = {"times": trajectory.times, "fields": trajectory.fields}
    store.write_arrays(directory, arrays)
    result = plain(result_of(trajectory, directory))
    write_json(directory / store.RESULT, result)
    return result


def result_of(trajectory: Trajectory, directory: Path) -> dict[str, Any]:
    """The figures of a march under the names the command line promises."""
    return {
        "problem": trajectory.evolution.name,
        "dim": trajectory.evolution.dim,
        "method": trajectory.method,
        "preset": trajectory.preset,
        "seed": trajectory.seed,
        "precision": trajectory.precision,
        "steps": sum(step.steps for step in trajectory.steps),
        "time_steps": len(trajectory.steps) - 1,
        "seconds": trajectory.seconds,
        "compile_seconds": trajectory.compile_seconds,
        "rel_l2": None,
        "rel_h1": None,
        "rmse": {f"{time:.6g}": error for time, error in trajectory.rmse.items()} or None,
        "energy": {f"{time:.6g}": energy for time, energy in trajectory.energy.items()} or None,
        "error_estimate": None,
        "stop_reason": trajectory.stop_reason,
        "detail": trajectory.detail,
        "run_dir": str(directory),
    }


def load(directory: Path, evolution: Evolution | None) -> Trajectory:
    """Read a trajectory back."""
    from npdg.trajectory import Trajectory, precision

    config = tomllib.loads((directory / store.CONFIG).read_text())
    settings, run = parse(Settings, config["settings"]), config["run"]
    if evolution is None:
        if run["problem"] not in CARDS:
            raise InputError(f"pde: {run['problem']!r} is your own equation; give it as npdg.load(path, pde=...).")
        evolution = CARDS[run["problem"]].build(run["dim"], **config["options"])
    assert evolution is not None
    steps = [_step(row) for row in read_rows(directory / store.METRICS)[1]]
    with precision(settings.precision):
        template = methods.primal(evolution.first, settings, jax.random.key(0))
        count = store.count_arrays(directory, "['times']")
        fields = store.fill({"fields": [template] * count}, directory / store.ARRAYS)["fields"]
    with precision("float64"):  # a time rounded to float32 may be past the last one
        found = store.fill({"times": [0.0] * count}, directory / store.ARRAYS)["times"]
    times = [float(time) for time in found]
    return Trajectory(evolution, run["method"], run["preset"], settings, run["seed"], steps, times, fields)

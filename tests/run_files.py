"""Run directories written by hand: what a report reads, without anything having been solved."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from npdg.runs.export.grids import Slices
from npdg.runs.request import to_toml

ENVIRONMENT = {"started": "2026-01-02T03:04:05+0000", "cores": 2, "devices": ["cpu:0"], "packages": {"jax": "0.8"}}
TIMING = {"sampling": 1e-3, "gradients": 2e-3, "solves": 7e-3, "step": 1e-2, "evaluation": 0.1}


def solved_run(directory: Path, method: str = "npdg", seed: int = 0, **changes: Any) -> Path:
    """A run of 2-D Poisson with three measurements of two players, and maps of u, the exact solution and the error."""
    run = {"problem": "poisson", "dim": 2, "method": method, "preset": "default", "seed": seed} | changes
    rows = [
        {"step": 10**k, "seconds": 0.5 * k + 0.1, "rel_l2": 0.1**k, "rel_h1": 0.2**k, "term pairing": -(0.3**k)}
        | {"iterations u": 5 + k, "iterations phi": 4, "residual u": 0.01, "residual phi": 0.02}
        for k in range(3)
    ]
    result = {"steps": 100, "seconds": 1.1, "compile_seconds": 3.0, "rel_l2": 1e-2, "rel_h1": 4e-2, "detail": ""}
    _write(directory, run, {"solution": "sines"}, rows, result | {"stop_reason": "steps", "precision": "float64"})
    axis = np.linspace(0, 1, 11)
    exact = np.sin(np.pi / 2 * axis)[:, None] + np.sin(np.pi / 2 * axis)[None, :]
    u = exact + 0.01
    u[0, 0] = np.nan
    Slices((0, 1), (axis, axis), None, u, exact).write(directory / "figures" / "slices.npz")
    return directory


def marched_run(directory: Path) -> Path:
    """A march of the one-dimensional Allen–Cahn equation in two time steps."""
    run = {"problem": "allen-cahn-1d", "dim": 1, "method": "npdg", "preset": "default", "seed": 0}
    rows = [
        {"number": k, "time": k / 2, "seconds": 2.0, "rmse": 0.1**k, "energy": 9.0 - k, "residual": 1e-4, "steps": 7}
        | {"compile_seconds": 0.0, "stop_reason": "tolerance"}
        for k in range(3)
    ]
    result = {"steps": 21, "time_steps": 2, "seconds": 6.0, "compile_seconds": 1.0, "stop_reason": "done"}
    measured = {"rmse": {"0": 1.0, "0.5": 0.1, "1": 0.01}, "energy": {"0": 9.0, "0.5": 8.0, "1": 7.0}}
    _write(directory, run, {"epsilon": 0.1, "until": 1.0, "time_steps": 2}, rows, result | measured)
    x = np.linspace(0, 2, 21)
    u = np.stack([np.cos(np.pi * x * k) for k in range(3)])
    Slices((0,), (x,), np.array([0.0, 0.5, 1.0]), u, u + 0.1).write(directory / "figures" / "slices.npz")
    return directory


def _write(
    directory: Path,
    run: dict[str, Any],
    options: dict[str, Any],
    rows: list[dict[str, Any]],
    result: dict[str, Any],
) -> None:
    (directory / "figures").mkdir(parents=True)
    tables = {"run": run, "options": options, "settings": {"width": 48, "tau_u": 0.5}}
    (directory / "config.toml").write_text(to_toml(tables))
    (directory / "env.json").write_text(json.dumps(ENVIRONMENT))
    (directory / "result.json").write_text(json.dumps(result))
    (directory / "report.json").write_text(json.dumps({"command": "npdg solve poisson --dim 2", "timing": TIMING}))
    with (directory / "metrics.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)

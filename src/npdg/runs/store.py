"""Run directories and saved solutions: plain text and arrays, no pickle, never overwritten."""

from __future__ import annotations

import io
import json
import os
import platform
import subprocess
import time
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import jax
import numpy as np

from npdg import methods
from npdg.errors import InputError
from npdg.loop import Record
from npdg.problems import CARDS
from npdg.runs.config import to_toml
from npdg.runs.files import add_columns, append_rows, plain, read_rows, write_json, write_whole
from npdg.runs.reading import CONFIG, ENVIRONMENT, METRICS, RESULT
from npdg.settings import Settings, parse
from npdg.transport_settings import TransportSettings

if TYPE_CHECKING:
    from npdg.evolution import Evolution
    from npdg.pair import Pair
    from npdg.pde import PDE
from npdg.polish import as_float64
from npdg.solution import Solution

ARRAYS = "solution.npz"


NOT_ERRORS = ("step", "seconds", "term", "iterations", "residual")  # the first words of the other columns


def new_directory(path: Path | None, stem: str) -> Path:
    """Make a directory that did not exist: `path`, or the first free runs/STEM-N."""
    if path is not None:
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            raise InputError(f"out: {str(path)!r} exists already and is never overwritten; give a new name.") from None
        return path
    number = 1
    while True:
        candidate = Path("runs") / f"{stem}-{number}"
        try:
            candidate.mkdir(parents=True)
            return candidate
        except FileExistsError:
            number += 1


class MetricsFile:
    """A metrics.csv that grows line by line and is complete after every line."""

    def __init__(self, directory: Path):
        self.path = directory / METRICS
        self.columns: list[str] = []

    def __call__(self, step: int, record: Record) -> None:
        row = _row(record)
        if not row.keys() <= set(self.columns):  # the stages of a run may report different terms
            self.columns = add_columns(self.path, list(row))
        append_rows(self.path, self.columns, [row])


def history(directory: Path) -> list[Record]:
    """The records that a run has written so far."""
    return [read_record(row) for row in read_rows(directory / METRICS)[1]]


def _row(record: Record) -> dict[str, Any]:
    return {
        "step": record.step,
        "seconds": f"{record.seconds:.6f}",
        **{name: repr(value) for name, value in record.errors.items()},
        **{f"term {name}": repr(value) for name, value in record.terms.items()},
        **{f"iterations {name}": value for name, value in record.iterations.items()},
        **{f"residual {name}": repr(value) for name, value in record.residuals.items()},
    }


def read_record(row: dict[str, str]) -> Record:
    """A line of metrics.csv."""
    part = lambda prefix: {k.removeprefix(prefix): v for k, v in row.items() if k.startswith(prefix) and v}
    return Record(
        step=int(row["step"]),
        seconds=float(row["seconds"]),
        terms={k: float(v) for k, v in part("term ").items()},
        iterations={k: int(v) for k, v in part("iterations ").items()},
        residuals={k: float(v) for k, v in part("residual ").items()},
        errors={k: float(v) for k, v in row.items() if v and k.split(" ")[0] not in NOT_ERRORS},
    )


def save(solution: Solution, path: Path) -> Path:
    """Write a solution to a new directory."""
    directory = new_directory(path, "")
    write_config(directory, solution.pde, solution.method, solution.preset, solution.seed, solution.settings)
    metrics = MetricsFile(directory)
    for record in solution.history:
        if record.errors or solution.pde.exact is None:
            metrics(record.step, record)
    write_solution(directory, solution)
    return directory


def write_solution(directory: Path, solution: Solution) -> dict[str, Any]:
    """The arrays of u and the result of the run; returns the result."""
    write_arrays(directory, solution.u)
    result = plain(result_of(solution, directory))
    write_json(directory / RESULT, result)
    return result


def write_arrays(directory: Path, tree: Any) -> None:
    """The arrays of a tree by their places in it."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    write_npz(directory / ARRAYS, {jax.tree_util.keystr(where): np.asarray(leaf) for where, leaf in leaves})


def write_npz(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Named arrays, whole or not at all."""
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    write_whole(path, content.getvalue())


def count_arrays(directory: Path, beginning: str) -> int:
    """How many saved arrays have names that begin like this."""
    with np.load(directory / ARRAYS, allow_pickle=False) as arrays:
        return sum(name.startswith(beginning) for name in arrays)


def result_of(solution: Solution, directory: Path) -> dict[str, Any]:
    """The figures of a run under the names the command line promises."""
    errors = solution.error() if solution.pde.exact is not None else None
    return {
        "problem": solution.pde.name,
        "dim": solution.pde.dim,
        "method": solution.method,
        "preset": solution.preset,
        "seed": solution.seed,
        "precision": solution.precision,
        "steps": solution.steps,
        "seconds": solution.seconds,
        "compile_seconds": solution.compile_seconds,
        "rel_l2": errors.rel_l2 if errors else None,
        "rel_h1": errors.rel_h1 if errors else None,
        "error_estimate": solution.error_estimate() if solution.stop_reason != "diverged" else None,
        "stop_reason": solution.stop_reason,
        "detail": solution.detail,
        "tried": list(solution.tried),
        "polished": solution.polished,
        "run_dir": str(directory),
    }


def write_config(
    directory: Path,
    pde: PDE | Evolution | Pair,
    method: str,
    preset: str,
    seed: int,
    settings: Settings | TransportSettings,
) -> None:
    """The resolved configuration of a solution, and the machine it is on."""
    run = {"problem": pde.name, "dim": pde.dim, "method": method, "preset": preset, "seed": seed}
    tables = {"run": run, "options": dict(pde.options), "settings": settings.model_dump()}
    write_whole(directory / CONFIG, to_toml(tables))
    write_environment(directory, settings.precision)


def write_environment(directory: Path, precision: str) -> None:
    """The machine and the versions that a run is about to use."""
    write_json(directory / ENVIRONMENT, {**environment(), "precision": precision})


def environment() -> dict[str, Any]:
    """Versions and devices: what else a result depends on."""
    packages = ("npdg", "jax", "jaxlib", "equinox", "optax", "numpy", "scipy")
    return {
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "devices": [str(device) for device in jax.devices()],
        "commit": _commit(),
        "packages": {name: _version(name) for name in packages},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _commit() -> str | None:
    """The commit of the source this runs from; none for an installed package."""
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True, timeout=5).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def kind_of(directory: Path) -> Literal["solution", "march", "transport"]:
    """What a directory of a run holds; an `InputError` if it holds none."""
    missing = [name for name in (ARRAYS, CONFIG, RESULT) if not (directory / name).is_file()]
    if missing:
        raise InputError(f"load: {str(directory)!r} holds no saved solution: {', '.join(missing)} is missing.")
    result = json.loads((directory / RESULT).read_text())
    return "march" if "time_steps" in result else "transport" if "map_l2" in result else "solution"


def load(directory: Path, pde: PDE | None) -> Solution:
    """Read a solution back; its arrays are laid into a network built from its configuration."""
    from npdg.fields import Linearised
    from npdg.solution import precision

    config = tomllib.loads((directory / CONFIG).read_text())
    settings, run = parse(Settings, config["settings"]), config["run"]
    if pde is None:
        if run["problem"] not in CARDS:
            raise InputError(f"pde: {run['problem']!r} is your own equation; give it as npdg.load(path, pde=...).")
        pde = CARDS[run["problem"]].build(run["dim"], **config.get("options", {}))
    assert pde is not None
    result = json.loads((directory / RESULT).read_text())
    with precision(settings.precision):
        template = methods.primal(pde, settings, jax.random.key(0))
    with precision(result["precision"]):  # of the stage that came last
        if result["precision"] == "float64":
            template = as_float64(template)
        if spaces := _coefficients(directory / ARRAYS):
            template = Linearised.at(template, (template,) * spaces)
        u = fill(template, directory / ARRAYS)
    return Solution(
        pde,
        u,
        run["method"],
        run["preset"],
        settings,
        run["seed"],
        result["stop_reason"],
        result["detail"],
        result["steps"],
        result["seconds"],
        result["compile_seconds"],
        history(directory),
        tuple(result["tried"]),
    )


def _coefficients(path: Path) -> int:
    """In how many tangent spaces a saved solution was corrected."""
    with np.load(path, allow_pickle=False) as arrays:
        return sum(key.startswith(".coefficients") for key in arrays)


def fill(template: Any, path: Path) -> Any:
    """A tree like the template with the saved arrays in place of its own."""
    with np.load(path, allow_pickle=False) as arrays:
        leaves, structure = jax.tree_util.tree_flatten_with_path(template)
        filled = []
        for where, leaf in leaves:
            key = jax.tree_util.keystr(where)
            if key not in arrays or arrays[key].shape != np.shape(leaf):
                raise InputError(f"load: {path} does not fit its config.toml: {key} is missing or of another shape.")
            filled.append(jax.numpy.asarray(arrays[key], dtype=jax.numpy.result_type(leaf)))
    return jax.tree_util.tree_unflatten(structure, filled)

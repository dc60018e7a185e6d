"""Where a run lives: its directory with configuration, environment and checkpoints, new or taken up again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npdg.errors import InputError
from npdg.runs import store
from npdg.runs.checkpoint import Checkpoint, Folder
from npdg.runs.config import Request, Target, digest, to_toml
from npdg.runs.files import keep_rows, write_whole
from npdg.runs.snapshots import FOLDER, Writer

if TYPE_CHECKING:
    from pydantic import BaseModel

    from npdg.evolution import Evolution
    from npdg.pair import Pair
    from npdg.pde import PDE

UNDECIDED = "# Several networks are being tried: these are the settings that were given, the others follow.\n"


@dataclass(frozen=True)
class Place:
    """A run's directory while its lock is held, and the checkpoint to go on from, if any."""

    directory: Path
    request: Request
    target: Target
    problem: PDE | Evolution | Pair
    past: Checkpoint | None = None
    folder: Folder = field(default_factory=lambda: Folder(Path(FOLDER)))

    @property
    def identity(self) -> dict[str, Any]:
        """What a checkpoint is of: it fits no run in which one of these is different."""
        request = self.request
        named = {"problem": self.problem.name, "sha256": self._sha256(), "dim": self.problem.dim}
        return {**named, "method": request.method, "seed": request.seed, **self.problem.options}

    def write_config(self, settings: BaseModel | None) -> None:
        """config.toml, from which `npdg solve --config` repeats the run; without settings, while they are undecided."""
        request = self.request
        run = {
            "problem": request.problem,
            "sha256": self._sha256(),
            "dim": self.problem.dim,
            "method": request.method,
            "preset": request.preset,
            "seconds": request.seconds,
            "steps": request.steps,
            "until": request.until,
            "seed": request.seed,
            "rollbacks": request.rollbacks,
            "checkpoint_seconds": request.checkpoint_seconds,
        }
        if self.target.file is not None:
            path, name = self.target.file
            run["problem"] = f"{path.resolve()}:{name}"
        if self.target.samples is not None:
            run["problem"] = ",".join(str(path.resolve()) for path in self.target.samples)
        numbers = request.settings if settings is None else settings.model_dump()
        text = to_toml({"run": run, "options": dict(self.problem.options), "settings": numbers})
        write_whole(self.directory / store.CONFIG, text if settings is not None else UNDECIDED + text)

    def write_environment(self, precision: str) -> None:
        """env.json of a new run; one that is there already is left as it is."""
        if not (self.directory / store.ENVIRONMENT).exists():
            store.write_environment(self.directory, precision)

    def changed(self, settings: BaseModel) -> list[str]:
        """Settings that are not those that the checkpoint was written with."""
        was = {} if self.past is None else self.past.facts.get("settings", {})
        now = settings.model_dump()
        return [key for key in was if was[key] != now.get(key)]

    def writer(self) -> Writer:
        """What writes the run's checkpoints."""
        spent = None if self.past is None else float(self.past.facts.get("seconds", 0))
        return Writer(self.folder, self.request.checkpoint_seconds, {"run": self.identity}, spent)

    def about(self, settings: BaseModel) -> dict[str, Any]:
        """What a tracking service shows as the parameters of a run."""
        return {**self.identity, "preset": self.request.preset, **settings.model_dump()}

    def _sha256(self) -> str | None:
        target = self.target
        if target.samples is not None:
            return digest(*target.samples)
        return None if target.file is None else digest(target.file[0])


def new(directory: Path, request: Request, target: Target, problem: PDE | Evolution | Pair) -> Place:
    """The place of a run that begins."""
    return Place(directory, request, target, problem, folder=Folder(directory / FOLDER))


def reopen(
    directory: Path, request: Request, target: Target, problem: PDE | Evolution | Pair, warn: Callable[[str], None]
) -> Place:
    """The place of a run that goes on, from its newest checkpoint that is whole; what came after that is dropped."""
    folder = Folder(directory / FOLDER)
    past, complaints = folder.newest()
    for complaint in complaints:
        warn(complaint)
    place = Place(directory, request, target, problem, past, folder)
    for difference in _differences(directory):
        warn(difference)
    column = "number" if hasattr(problem, "steps") else "step"
    reached = -1 if past is None else int(past.facts["step"])
    if past is None:
        warn("there is no checkpoint; the run starts anew from its config.toml")
    else:
        for key, value in json.loads(json.dumps(place.identity)).items():
            if (was := past.facts.get("run", {}).get(key)) != value:
                raise InputError(
                    f"{key}: config.toml says {value!r}, and the checkpoint was written with {was!r}; restore it, or "
                    "start another run with npdg solve --config."
                )
        warn(f"going on from {past.path.name}")
    keep_rows(directory / store.METRICS, lambda row: int(row[column]) <= reached)
    return place


def _differences(directory: Path) -> list[str]:
    """A sentence if platform or versions are not those that the run began with."""
    try:
        before = json.loads((directory / store.ENVIRONMENT).read_text())
    except (OSError, ValueError):
        return ["env.json is missing or damaged: whether the platform is the same is not known"]
    now = store.environment()
    keys = [key for key in ("python", "platform", "cpu", "cores", "devices", "packages") if before.get(key) != now[key]]
    if not keys:
        return []
    return [f"{', '.join(keys)} differ from env.json: the run goes on, but not bit for bit"]

"""The directory of a run while it goes on: configuration, environment and checkpoints, new or taken up again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from npdg.catalogue.user import neighbours
from npdg.errors import InputError
from npdg.methods.base import Plan
from npdg.runs.checkpoint import Checkpoint, Folder
from npdg.runs.environment import COMPARED, environment
from npdg.runs.files import write_json, write_whole
from npdg.runs.reading import ARRAYS, CONFIG, ENVIRONMENT, METRICS, RESULT
from npdg.runs.request import Request, Target, code_digest, digest, to_toml
from npdg.runs.snapshots import FOLDER, Writer, keep
from npdg.runs.tables import keep_rows, read_metrics
from npdg.runs.trust import trust
from npdg.runs.untrusted import read_json
from npdg.training.progress import Checkpoints
from npdg.training.records import Record
from npdg.training.stopping import StopReason

UNDECIDED = "# Several networks are being tried: these are the settings that were given, the others follow.\n"
INDEX = ("step", "number")  # the column that counts: training steps, or time steps


@dataclass(frozen=True)
class RunDirectory:
    """A run's directory while its lock is held, and the checkpoint to go on from, if any."""

    path: Path
    request: Request
    target: Target
    plan: Plan
    past: Checkpoint | None = None
    folder: Folder = field(default_factory=lambda: Folder(Path(FOLDER)))

    @classmethod
    def new(cls, path: Path, request: Request, target: Target, plan: Plan) -> RunDirectory:
        """The directory of a run that begins."""
        directory = cls(path, request, target, plan, folder=Folder(path / FOLDER))
        directory.trust_file()
        directory.write_config(plan.settings if plan.decided else None)
        write_json(path / ENVIRONMENT, {**environment(), "precision": plan.settings.precision})
        return directory

    @classmethod
    def reopened(
        cls, path: Path, request: Request, target: Target, plan: Plan, warn: Callable[[str], None]
    ) -> RunDirectory:
        """The directory of a run that goes on, from its newest checkpoint that is whole; what came after is dropped."""
        folder = Folder(path / FOLDER)
        past, complaints = folder.newest()
        directory = cls(path, request, target, plan, past, folder)
        directory.trust_file()
        for sentence in (*complaints, *_differences(path)):
            warn(sentence)
        if past is None and os.path.lexists(path / ARRAYS):
            raise InputError(
                f"run: {str(path)!r} has a solution and no checkpoint to go on from; start another run with "
                f"npdg solve --config {path / CONFIG}."
            )
        if past is None:
            warn("there is no checkpoint; the run starts anew from its config.toml")
        else:
            directory._check_identity(past)
            warn(f"going on from {past.path.name}")
        reached = -1 if past is None else int(past.facts["step"])
        keep_rows(path / METRICS, lambda row: int(next(row[key] for key in INDEX if key in row)) <= reached)
        if changed := directory._changed_settings():
            warn(f"{', '.join(changed)} in config.toml is not what the checkpoint had; the run goes on with it")
        if plan.decided:
            directory.write_config(plan.settings)
        return directory

    @property
    def identity(self) -> dict[str, Any]:
        """What a checkpoint is of: it fits no run in which one of these is different."""
        problem, request = self.plan.problem, self.request
        named = {"problem": problem.name, "sha256": self._sha256(), "dim": problem.dim}
        return {**named, "method": request.method, "seed": request.seed, **problem.options}

    def trust_file(self) -> None:
        """Remember that the user's file was named at the terminal, or had been before: it may be run again."""
        if self.target.file is not None:
            trust(self.target.file[0], str(self._sha256()))

    def write_config(self, settings: Any) -> None:
        """config.toml, from which `npdg solve --config` repeats the run; without settings, while they are undecided."""
        request, problem = self.request, self.plan.problem
        run = {
            "problem": self.target.absolute(request.problem),
            "kind": problem.kind,
            "sha256": self._sha256(),
            "imports": self._imports() or None,
            "dim": problem.dim,
            **{key: getattr(request, key) for key in ("method", "preset")},
            "seconds": self.plan.budget.seconds,
            **{key: getattr(request, key) for key in ("steps", "until", "seed", "rollbacks", "checkpoint_seconds")},
        }
        numbers = self.plan.method.changes if settings is None else settings.flat()
        text = to_toml({"run": run, "options": dict(problem.options), "settings": numbers})
        write_whole(self.path / CONFIG, text if settings is not None else UNDECIDED + text)

    def chosen(self, writer: Writer) -> Callable[[Any], None]:
        """What to do with the settings of the run once they are decided."""

        def write(settings: Any) -> None:
            if not self.plan.decided:
                self.write_config(settings)
            writer.facts["settings"] = settings.flat()

        return write

    def last_words(self, writer: Writer, reason: str) -> None:
        """Leave what is known of a run that is left in the middle of something: its newest state, and result.json."""
        writer.flush()
        progress, plan = writer.latest, self.plan
        none = dict.fromkeys(("rel_l2", "rel_h1", "error_estimate"))
        errors = {} if progress is None or not progress.history else progress.history[-1].errors
        known = {"method": self.request.method, "preset": self.request.preset, "seed": self.request.seed}
        figures = {
            "problem": plan.problem.name,
            "dim": plan.problem.dim,
            **known,
            "precision": plan.settings.precision,
            "steps": 0 if progress is None else int(progress.state.step),
            "seconds": 0.0 if progress is None else progress.seconds,
            "compile_seconds": 0.0 if progress is None else progress.compile_seconds,
            **none,
            **errors,
            "stop_reason": reason,
            "advice": [StopReason(reason).advice],
            "detail": "it was left in the middle of a computation",
            "run_dir": str(self.path),
        }
        write_json(self.path / RESULT, figures)

    def writer(self) -> Writer:
        """What writes the run's checkpoints."""
        spent = None if self.past is None else float(self.past.facts.get("seconds", 0))
        return Writer(self.folder, self.request.checkpoint_seconds, {"run": self.identity}, spent)

    def checkpoints(self, writer: Writer) -> Checkpoints:
        """Where the states of the run go, and the one to go on from."""
        rows = read_metrics(self.path / METRICS)[1] if self.past is not None else []
        history = [Record.from_row(row) for row in rows if "step" in row]
        return keep(writer, self.past, self.plan.method.told_apart(history, self.plan.settings))

    def about(self) -> dict[str, Any]:
        """What a tracking service shows as the parameters of a run."""
        return {**self.identity, "preset": self.request.preset, **self.plan.settings.flat()}

    def _sha256(self) -> str | None:
        if self.target.file is not None:
            return code_digest(self.target.file[0], self._imports())
        return digest(*self.target.files) if self.target.files else None

    def _imports(self) -> list[str]:
        """What the user's file imports from its own directory."""
        return [] if self.target.file is None else neighbours(self.target.file[0])

    def _check_identity(self, past: Checkpoint) -> None:
        for key, value in json.loads(json.dumps(self.identity)).items():
            if (was := past.facts.get("run", {}).get(key)) != value:
                raise InputError(
                    f"{key}: config.toml says {value!r}, and the checkpoint was written with {was!r}; restore it, or "
                    "start another run with npdg solve --config."
                )

    def _changed_settings(self) -> list[str]:
        was = {} if self.past is None else self.past.facts.get("settings", {})
        now = self.plan.settings.flat()
        return [key for key in was if was[key] != now.get(key)]


def _differences(path: Path) -> list[str]:
    """A sentence if platform or versions are not those that the run began with."""
    try:
        before = read_json(path / ENVIRONMENT)
    except (OSError, InputError):
        before = {}
    if not before:
        return ["env.json is missing or damaged: whether the platform is the same is not known"]
    now = environment()
    keys = [key for key in COMPARED if key in before and before[key] != now[key]]
    if not keys:
        return []
    return [f"{', '.join(keys)} differ from env.json: the run goes on, but not bit for bit"]

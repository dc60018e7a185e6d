"""What a run reports as it goes on: a record a training step, a report a time step. Importable without jax.

Both have a `number`, are a row of metrics.csv and are read back from one, and give their numbers by name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

GROUPS = ("term", "iterations", "residual", "status")  # first words of the columns that belong to a player or a term
PLAIN = ("step", "seconds", "stage", "rms_residual")


@runtime_checkable
class Report(Protocol):
    """What callbacks, trackers and metrics.csv get."""

    @property
    def number(self) -> int: ...

    def row(self) -> dict[str, Any]: ...

    def scalars(self) -> dict[str, float]: ...

    def shown(self) -> Record: ...

    @classmethod
    def from_row(cls, row: dict[str, str]) -> Self: ...


class Record(NamedTuple):
    """A training step: the training seconds so far, the terms of L, the linear solves of each player, and errors where
    they were measured. `rms_residual` is the root mean square residual, where the functional has one."""

    step: int
    seconds: float
    terms: dict[str, float]
    iterations: dict[str, int]
    residuals: dict[str, float]
    errors: dict[str, float]
    rms_residual: float | None = None
    stage: str = ""
    statuses: dict[str, int] = {}  # noqa: RUF012 (a tuple's default is shared, and never changed)

    @property
    def number(self) -> int:
        return self.step

    def row(self) -> dict[str, Any]:
        """A line of metrics.csv."""
        return {
            "step": self.step,
            "seconds": f"{self.seconds:.6f}",
            **{name: repr(value) for name, value in self.errors.items()},
            **({} if self.rms_residual is None else {"rms_residual": repr(self.rms_residual)}),
            **({"stage": self.stage} if self.stage else {}),
            **{f"term {name}": repr(value) for name, value in self.terms.items()},
            **{f"iterations {name}": value for name, value in self.iterations.items()},
            **{f"residual {name}": repr(value) for name, value in self.residuals.items()},
            **{f"status {name}": value for name, value in self.statuses.items()},
        }

    @classmethod
    def from_row(cls, row: dict[str, str]) -> Record:
        """Read back from a line of metrics.csv."""
        part = lambda word: {k.removeprefix(f"{word} "): v for k, v in row.items() if k.startswith(f"{word} ") and v}
        rms = row.get("rms_residual")
        return cls(
            step=int(row["step"]),
            seconds=float(row["seconds"]),
            terms={k: float(v) for k, v in part("term").items()},
            iterations={k: int(v) for k, v in part("iterations").items()},
            residuals={k: float(v) for k, v in part("residual").items()},
            errors={k: float(v) for k, v in row.items() if v and k.split(" ")[0] not in (*PLAIN, *GROUPS)},
            rms_residual=float(rms) if rms else None,
            stage=row.get("stage") or "",
            statuses={k: int(v) for k, v in part("status").items()},
        )

    def scalars(self) -> dict[str, float]:
        """The numbers by name; those of a group share the part before a slash."""
        groups = {"": self.errors, "term/": self.terms, "iterations/": self.iterations, "residual/": self.residuals}
        named = {f"{group}{name}": float(value) for group, values in groups.items() for name, value in values.items()}
        return {"seconds": self.seconds, **named}

    def shown(self) -> Record:
        """What a display shows."""
        return self


@dataclass(frozen=True)
class TimeStep:
    """One step of a march: its number and time, how it was solved, why solving stopped, and what was measured then.

    `residual` is the root mean square one at the end, `rmse` the error against the truth where one is known, `steps`
    the number of training steps, of which a saved march keeps no history, `rollbacks` how often the march has gone back
    so far, `spent` the training seconds of the march so far.
    """

    number: int
    time: float
    residual: float
    stop_reason: str
    detail: str
    seconds: float
    compile_seconds: float
    history: list[Record] = field(default_factory=list)
    rmse: float | None = None
    energy: float | None = None
    steps: int = 0
    rollbacks: int = 0
    spent: float = 0.0

    @property
    def complete(self) -> bool:
        """Whether the march goes on from it."""
        return self.stop_reason not in ("diverged", "interrupted", "terminated", "stopped")

    def row(self) -> dict[str, Any]:
        """A line of metrics.csv."""
        known = lambda value: "" if value is None else repr(value)
        return {
            "number": self.number,
            "time": repr(self.time),
            "seconds": f"{self.seconds:.6f}",
            "rmse": known(self.rmse),
            "energy": known(self.energy),
            "residual": repr(self.residual),
            "steps": self.steps,
            "compile_seconds": f"{self.compile_seconds:.6f}",
            "rollbacks": self.rollbacks,
            "stop_reason": str(self.stop_reason),
        }

    @classmethod
    def from_row(cls, row: dict[str, str]) -> TimeStep:
        """Read back from a line of metrics.csv."""
        known = lambda key: float(row[key]) if row[key] else None
        return cls(
            number=int(row["number"]),
            time=float(row["time"]),
            residual=float(row["residual"]),
            stop_reason=row["stop_reason"],
            detail="",
            seconds=float(row["seconds"]),
            compile_seconds=float(row["compile_seconds"]),
            rmse=known("rmse"),
            energy=known("energy"),
            steps=int(row["steps"]),
            rollbacks=int(row.get("rollbacks") or 0),
        )

    def _measured(self) -> dict[str, float]:
        measured = {"rmse": self.rmse, "energy": self.energy}
        return {name: value for name, value in measured.items() if value is not None}

    def scalars(self) -> dict[str, float]:
        """The numbers by name."""
        return {"seconds": self.seconds, "time": self.time, "residual": self.residual, **self._measured()}

    def shown(self) -> Record:
        """What a display shows."""
        return Record(
            self.number, self.spent, {"t": self.time}, {"u": self.steps}, {"u": self.residual}, self._measured()
        )

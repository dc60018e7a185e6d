"""What every result has, whatever the kind of its problem: how the run went, what is saved, shown and exported."""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Num

from npdg.compilation import jit
from npdg.errors import InputError
from npdg.fields.base import Field
from npdg.fields.wrappers import Gradient
from npdg.geometry.domain import Domain
from npdg.linalg.result import Status
from npdg.precision import precision
from npdg.problem.base import Problem
from npdg.problem.evolution import ReferenceValues
from npdg.services import service
from npdg.training.records import Record, Report
from npdg.training.stopping import StopReason

UNSOLVED = 0.1  # relative residual of a Gram system above which its solver's advice is passed on


class Moment(NamedTuple):
    """u at one time, or of an equation without time: functions of one point, and a name for its files."""

    name: str
    time: float | None
    u: Callable[[Array], Array]
    exact: Callable[[Array], Array] | None


@dataclass(frozen=True)
class Saved:
    """What a run or `save` left: the tables of its configuration, its result, rows of metrics and arrays."""

    path: Path
    run: Mapping[str, Any]
    result: Mapping[str, Any]
    rows: Sequence[dict[str, str]]
    arrays: Mapping[str, np.ndarray]


@dataclass(kw_only=True)
class Result(abc.ABC):
    """What came out of a run, and how it went."""

    problem: Any
    method: str
    preset: str
    settings: Any
    seed: int
    stop_reason: StopReason
    detail: str = ""
    seconds: float = 0.0
    compile_seconds: float = 0.0
    history: list[Record] = field(default_factory=list)
    tried: tuple[str, ...] = ()
    trainer: Any = field(default=None, repr=False, compare=False)

    @property
    @abc.abstractmethod
    def precision(self) -> str:
        """float32 or float64, as the numbers of the result are."""

    @property
    @abc.abstractmethod
    def training_steps(self) -> int:
        """How many training steps were taken in all."""

    @property
    def domain(self) -> Domain | None:
        """Where the result is a function of the point; none for the whole space."""
        return None

    @property
    def advice(self) -> list[str]:
        """What a user may do about how the run ended, and about linear systems that were not solved."""
        last = self.history[-1] if self.history else None
        statuses = {} if last is None else {n: s for n, s in last.statuses.items() if last.residuals[n] > UNSOLVED}
        solvers = [f"Gram systems of {name}: {Status(s).advice}" for name, s in statuses.items() if s]
        return [self.stop_reason.advice, *solvers]

    @abc.abstractmethod
    def measured(self) -> dict[str, Any]:
        """The figures of result.json that are of this kind of problem."""

    def measured_so_far(self) -> dict[str, Any]:
        """The figures that were measured as the run went on, where there is no time for others."""
        measured = [record.errors for record in self.history if record.errors]
        return dict(measured[-1]) if measured else {}

    @abc.abstractmethod
    def arrays(self) -> Any:
        """The tree of arrays that is saved."""

    @abc.abstractmethod
    def errors(self) -> dict[str, float]:
        """Errors by which runs are compared, the most important first."""

    def reports(self) -> Sequence[Report]:
        """What was reported as the run went on, of which errors were measured where they could be."""
        measured = any(record.errors for record in self.history)
        return [record for record in self.history if record.errors or not measured]

    def reference(self) -> ReferenceValues | None:
        """Known values at some points and all times, if the problem has them."""
        return None

    def evaluate(self, function: Callable[[Array], Array], x: Any) -> np.ndarray:
        """Any function of one point at points; only of results that are functions on a domain."""
        raise TypeError(f"a {type(self).__name__} is no function on a domain")

    def curve(self, key: str) -> tuple[list[float], list[float]]:
        """Training seconds and one of the errors, where they were measured."""
        rows = [record for record in self.history if key in record.errors]
        return [record.seconds for record in rows], [record.errors[key] for record in rows]

    def rows(self) -> list[dict[str, Any]]:
        """Steps, training seconds and errors, where these were measured."""
        measured = [record for record in self.history if record.errors]
        return [{"step": record.step, "seconds": record.seconds, **record.errors} for record in measured]

    @abc.abstractmethod
    def headlines(self, figures: Mapping[str, Any]) -> list[str]:
        """The figures that matter, in words."""

    @abc.abstractmethod
    def final_fields(self) -> dict[str, Any]:
        """The fields at the end, as a state has them."""

    def final_data(self) -> dict[str, Any]:
        """The data of the equation at the end, as a state has them."""
        return {}

    def step_seconds(self) -> float:
        """Seconds of a training step; of those before another stage with steps of another kind."""
        first = [record for record in self.history if record.stage == self.history[0].stage]
        return first[-1].seconds / first[-1].step if first else self.seconds / max(self.training_steps, 1)

    def moments(self) -> list[Moment]:
        """The solution at its times, for slices and exports; none for what is no function on a domain."""
        return []

    @abc.abstractmethod
    def values(self, points: np.ndarray, time: float | None, gradient: bool) -> tuple[np.ndarray, list[str]]:
        """The result at points `(n, d)`, one row each, and names of the columns."""

    def figures(self, *, brief: bool = False) -> dict[str, Any]:
        """The figures of a run under the names the command line promises; `brief` ones take no time to measure."""
        none = dict.fromkeys(("rel_l2", "rel_h1", "error_estimate"))
        return {
            "problem": self.problem.name,
            "dim": self.problem.dim,
            "method": self.method,
            "preset": self.preset,
            "seed": self.seed,
            "precision": self.precision,
            "steps": self.training_steps,
            "seconds": self.seconds,
            "compile_seconds": self.compile_seconds,
            **none,
            **(self.measured_so_far() if brief else self.measured()),
            "stop_reason": str(self.stop_reason),
            "advice": self.advice,
            "detail": self.detail,
        }

    def plot(self, path: str | Path | None = None, **how: Any) -> Any:
        """A figure of the result, beside the truth where that is known; written to `path` if given."""
        return service("plot")(self, path, **how)

    def plot_history(self, path: str | Path | None = None) -> Any:
        """A figure of what was measured against seconds and against steps; written to `path` if given."""
        return service("plot_history")(self, path)

    def save(self, path: str | Path) -> Path:
        """Write the result to a new directory, from which `npdg.load` reads it back."""
        return service("save")(self, Path(path))


def _values(u: Field, x: Array) -> Array:
    """u at points, by a program that is made once for fields of one shape."""
    return _value_program()(u, x)


@functools.cache
def _value_program() -> Callable[[Field, Array], Array]:
    return jit(lambda u, x: jax.vmap(u)(x))


@dataclass(kw_only=True)
class FieldResult(Result):
    """A result that is a function on a domain."""

    def evaluate(self, function: Callable[[Array], Array], x: Any) -> Num[np.ndarray, ...]:
        """Any function of one point at the points `x (n, d)`, or at one point `(d,)`, in the precision of u."""
        points = np.asarray(x, dtype=self.precision)
        if points.ndim not in (1, 2) or points.shape[-1] != self.problem.dim:
            raise InputError(f"x: shape {points.shape} is not allowed; give points of shape (n, {self.problem.dim}).")
        with precision(self.precision):
            batch = jnp.asarray(np.atleast_2d(points))
            program = _values if isinstance(function, eqx.Module) else lambda f, x: jit(jax.vmap(f))(x)
            values = np.asarray(program(function, batch))
            return values[0, ...] if points.ndim == 1 else values  # an array also where that is one number

    @property
    def domain(self) -> Domain:
        return self.problem.domain

    def with_gradient(
        self, u: Callable[[Array], Array], points: np.ndarray, gradient: bool
    ) -> tuple[np.ndarray, list[str]]:
        """Values of u `(n,)`, or with its derivatives `(n, 1 + d)`, and the names of these columns."""
        values = self.evaluate(u, points)
        if not gradient:
            return values, ["u"]
        slopes = self.evaluate(Gradient(u), points)
        names = ["u", *(f"du{k}" for k in range(1, self.problem.dim + 1))]
        return np.concatenate([values[:, None], slopes], axis=1), names


def common(problem: Problem, method: Any, progress: Any, seed: int) -> dict[str, Any]:
    """What every result takes from the progress of its run."""
    return {
        "problem": problem,
        "method": method.name,
        "trainer": method,
        "preset": method.preset,
        "settings": progress.settings,
        "seed": seed,
        "stop_reason": progress.stop,
        "detail": progress.detail,
        "seconds": progress.seconds,
        "compile_seconds": progress.compile_seconds,
        "history": progress.history,
        "tried": progress.tried,
    }


def common_saved(problem: Problem, method: Any, settings: Any, saved: Saved) -> dict[str, Any]:
    """What every result takes from what was saved."""
    run, result = saved.run, saved.result
    return {
        "problem": problem,
        "method": method.name,
        "trainer": method,
        "preset": run["preset"],
        "settings": settings,
        "seed": run["seed"],
        "stop_reason": StopReason(result["stop_reason"]),
        "detail": result["detail"],
        "seconds": result["seconds"],
        "compile_seconds": result["compile_seconds"],
        "tried": tuple(result.get("tried", ())),
    }

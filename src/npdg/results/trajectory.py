"""An equation solved in time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from npdg.errors import InputError
from npdg.fields.base import Field
from npdg.precision import precision
from npdg.problem.evolution import Evolution, ReferenceValues
from npdg.results.arrays import filled
from npdg.results.base import FieldResult, Moment, Saved, common, common_saved
from npdg.training.records import TimeStep
from npdg.training.stopping import StopReason


@dataclass(kw_only=True)
class Trajectory(FieldResult):
    """An equation solved in time. Call it as `trajectory(t, x)` on points `(n, d)`.

    `steps` reports on every time, number 0 being the fit of the start; `fields` are the solutions at the kept `times`.
    """

    steps: list[TimeStep] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)

    @classmethod
    def of(cls, problem: Evolution, method: Any, progress: Any, seed: int) -> Trajectory:
        """What a march has come to."""
        taken = common(problem, method, progress, seed)
        steps = list(progress.trail)
        times, fields = [time for time, _ in progress.kept], [u for _, u in progress.kept]
        return cls(steps=steps, times=times, fields=fields, **{**taken, **_ending(problem, steps)})

    @classmethod
    def restored(cls, problem: Evolution, method: Any, settings: Any, saved: Saved) -> Trajectory:
        """Read back; its arrays are laid into networks built from its configuration."""
        count = sum(name.startswith("['times']") for name in saved.arrays)
        with precision(settings.precision):
            template = method.inner.start(problem, settings)(jax.random.key(0))["u"]
            fields = filled({"fields": [template] * count}, saved.arrays, saved.path)["fields"]
        # Times stay in double precision: one that is rounded may be past the last.
        times = [float(saved.arrays[f"['times'][{k}]"]) for k in range(count)]
        steps = [TimeStep.from_row(row) for row in saved.rows]
        return cls(steps=steps, times=times, fields=fields, **common_saved(problem, method, settings, saved))

    def __call__(self, t: float, x: Any) -> Float[np.ndarray, "*n"]:
        """u at time t and the points `x (n, d)`, or one point `(d,)`; linear in t between two kept times."""
        return self.evaluate(self.at(t), x)

    def at(self, t: float) -> Callable[[Array], Array]:
        """u at time t as a function of one point."""
        first, last = self.times[0], self.times[-1]
        slack = 1e-9 * max(abs(last), 1e-300)
        if not first - slack <= t <= last + slack:
            raise InputError(f"t: {t!r} is not allowed; this march kept times from {first:g} to {last:g}.")
        right = min(bisect_right(self.times, t - slack), len(self.times) - 1)
        left = max(right - 1, 0)
        if abs(self.times[right] - t) <= slack or left == right:
            return self.fields[right]
        share = (t - self.times[left]) / (self.times[right] - self.times[left])
        return lambda x: (1 - share) * self.fields[left](x) + share * self.fields[right](x)

    @property
    def evolution(self) -> Evolution:
        return self.problem

    @property
    def rmse(self) -> dict[float, float]:
        """Root mean square error at every time, where a truth is known."""
        return {step.time: step.rmse for step in self.steps if step.rmse is not None}

    @property
    def energy(self) -> dict[float, float]:
        """The energy at every time, where the evolution has one."""
        return {step.time: step.energy for step in self.steps if step.energy is not None}

    @property
    def precision(self) -> str:
        return str(jax.tree.leaves(self.fields[0])[0].dtype)

    @property
    def training_steps(self) -> int:
        return sum(step.steps for step in self.steps)

    def errors(self) -> dict[str, float]:
        return {"rmse": max(self.rmse.values())} if self.rmse else {}

    def measured(self) -> dict[str, Any]:
        return {
            "time_steps": len(self.steps) - 1,
            "rmse": {f"{time:.6g}": error for time, error in self.rmse.items()} or None,
            "energy": {f"{time:.6g}": energy for time, energy in self.energy.items()} or None,
        }

    def measured_so_far(self) -> dict[str, Any]:
        return self.measured()

    def headlines(self, figures: Mapping[str, Any]) -> list[str]:
        errors = {time: error for time, error in (figures["rmse"] or {}).items() if error is not None}
        if not errors:
            return []
        worst = max(errors, key=lambda time: errors[time])
        return [f"root mean square error at most {errors[worst]:.2e}, at t = {worst}"]

    def final_fields(self) -> dict[str, Field]:
        return {"u": self.fields[-1]}

    def final_data(self) -> dict[str, Any]:
        return {"before": self.fields[-1], "time": jnp.asarray(self.steps[-1].time)}

    def step_seconds(self) -> float:
        """Of the steps within time steps, the fit of the start left out."""
        marched = self.steps[1:] or self.steps
        return sum(step.seconds for step in marched) / max(sum(step.steps for step in marched), 1)

    def reference(self) -> ReferenceValues | None:
        known = self.evolution.reference
        return None if known is None else known()

    def curve(self, key: str) -> tuple[list[float], list[float]]:
        rows = [row for row in self.rows() if key in row]
        return [row["seconds"] for row in rows], [row[key] for row in rows]

    def rows(self) -> list[dict[str, Any]]:
        spent = np.cumsum([step.seconds for step in self.steps])
        return [
            {"step": step.number, "seconds": float(seconds), "rmse": step.rmse}
            for step, seconds in zip(self.steps, spent, strict=True)
            if step.rmse is not None
        ]

    def arrays(self) -> Any:
        return {"times": [np.asarray(time) for time in self.times], "fields": self.fields}

    def reports(self) -> Sequence[TimeStep]:
        return self.steps

    def moments(self) -> list[Moment]:
        kept = enumerate(zip(self.times, self.fields, strict=True))
        return [Moment(f"slice-{k:04d}", time, u, self.exact_at(time)) for k, (time, u) in kept]

    def exact_at(self, time: float) -> Callable[[Array], Array] | None:
        """The exact solution at one time, if it is known there."""
        return self.evolution.start if time == 0 else self.evolution.at(jnp.asarray(time)).exact

    def values(self, points: np.ndarray, time: float | None, gradient: bool) -> tuple[np.ndarray, list[str]]:
        if time is None:
            first, last = self.times[0], self.times[-1]
            raise InputError(f"time: this is a march; give --time T, from {first:g} to {last:g}.")
        return self.with_gradient(self.at(time), points, gradient)


def _ending(evolution: Evolution, steps: Sequence[TimeStep]) -> dict[str, Any]:
    """Why a march ended, and what happened on the way: roll-backs, a fault, or where the seconds were used up."""
    last = steps[-1]
    if not last.complete:
        stop = StopReason(last.stop_reason)
    else:
        stop = StopReason.DONE if last.number == evolution.steps else StopReason.SECONDS
    told = []
    for before, step in zip([None, *steps], steps, strict=False):
        if step.detail and (step is last or step.rollbacks > (before.rollbacks if before else 0)):
            told.append(f"time step {step.number}: {step.detail}")
    if stop is StopReason.SECONDS:
        told.append(f"the seconds were used up at t = {last.time:g}; give more, or fewer time steps")
    return {"stop_reason": stop, "detail": "; ".join(told)}

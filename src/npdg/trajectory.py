"""The public face of time: `march` an equation and look at the `Trajectory`."""

import warnings
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from npdg import methods
from npdg.errors import InputError
from npdg.evolution import Evolution, implicit_step
from npdg.fields import Field
from npdg.hooks import Hooks
from npdg.loop import State
from npdg.marching import Limits, Reached, TimeStep, first_state, steepness, time_steps
from npdg.presets import choose
from npdg.rollback import check_rollbacks
from npdg.settings import Settings
from npdg.sizes import check_memory
from npdg.solution import check_budget
from npdg.stages import precision

QUADRATURE = 2**14  # points of the energy
EXACT_POINTS = 10_000


@dataclass
class Trajectory:
    """An equation solved in time. Call it as `trajectory(t, x)` on points `(n, d)`.

    `steps` reports on every time, number 0 being the fit of the start; `fields` are the solutions at the kept `times`.
    """

    evolution: Evolution
    method: str
    preset: str
    settings: Settings
    seed: int
    steps: list[TimeStep] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)

    def __call__(self, t: float, x: Any) -> np.ndarray:
        """u at time t and the points `x (n, d)`, or one point `(d,)`; linear in t between two kept times."""
        return self.evaluate(self.at(t), x)

    def evaluate(self, function: Callable[[Array], Array], x: Any) -> np.ndarray:
        """Any function of one point at the points `x (n, d)`, or at one point `(d,)`, in the precision of u."""
        points = np.asarray(x, dtype=self.precision)
        if points.ndim not in (1, 2) or points.shape[-1] != self.evolution.dim:
            raise InputError(f"x: shape {points.shape} is not allowed; give points of shape (n, {self.evolution.dim}).")
        with precision(self.precision):
            batch = jnp.asarray(points)
            return np.asarray(function(batch) if batch.ndim == 1 else jax.vmap(function)(batch))

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
    def rmse(self) -> dict[float, float]:
        """Root mean square error at every time, where a truth is known."""
        return {step.time: step.rmse for step in self.steps if step.rmse is not None}

    @property
    def energy(self) -> dict[float, float]:
        """The energy at every time, where the evolution has one."""
        return {step.time: step.energy for step in self.steps if step.energy is not None}

    @property
    def seconds(self) -> float:
        """Training seconds, without compilation and evaluation."""
        return sum(step.seconds for step in self.steps)

    @property
    def compile_seconds(self) -> float:
        return sum(step.compile_seconds for step in self.steps)

    @property
    def stop_reason(self) -> str:
        """done, or why the march ended before its last time."""
        last = self.steps[-1]
        if not last.complete:
            return last.stop_reason
        return "done" if last.number == self.evolution.steps else "seconds"

    @property
    def detail(self) -> str:
        """What happened on the way: roll-backs, the fault of the last step, or where the seconds were used up."""
        told, last = [], self.steps[-1]
        for before, step in zip([None, *self.steps], self.steps, strict=False):
            if step.detail and (step is last or step.rollbacks > (before.rollbacks if before else 0)):
                told.append(f"time step {step.number}: {step.detail}")
        if self.stop_reason == "seconds":
            told.append(f"the seconds were used up at t = {last.time:g}; give more, or fewer time steps")
        return "; ".join(told)

    @property
    def precision(self) -> str:
        """float32 or float64, as the numbers of u are."""
        return str(jax.tree.leaves(self.fields[0])[0].dtype)

    def plot(self, path: str | Path | None = None) -> Any:
        """A figure of u at some times, with the truth where known, the energy and the errors."""
        from npdg.runs import plots, time_plots

        return plots.finish(time_plots.trajectory_figure(self), path)

    def save(self, path: str | Path) -> Path:
        """Write the trajectory to a new directory, from which `npdg.load` reads it back."""
        from npdg.runs import trajectories

        return trajectories.save(self, Path(path))


@dataclass(frozen=True)
class MarchKeep:
    """Where the states of a march go, and the one to go on from: nowhere and none unless the caller says so.

    `restore(trajectory, template)` fills in the steps, times and fields so far and gives the state, in the shape of
    the template, or nothing; `after` sees them after every complete time step, `ended` at the end.
    """

    restore: Callable[[Trajectory, State], State | None] = lambda trajectory, template: None
    after: Callable[[Trajectory, State], None] = lambda trajectory, state: None
    ended: Callable[[], None] = lambda: None


KEEP_NOTHING = MarchKeep()


def march(
    evolution: Evolution,
    method: str = "npdg",
    *,
    seconds: float | None = None,
    steps: int | None = None,
    times: Sequence[float] | None = None,
    seed: int = 0,
    preset: str = "default",
    rollbacks: int = 0,
    callbacks: Sequence[Callable[[int, TimeStep], None]] = (),
    on_note: Callable[[str], None] = lambda note: None,
    should_stop: Callable[[], str | None] = lambda: None,
    keep: MarchKeep = KEEP_NOTHING,
    **settings: Any,
) -> Trajectory:
    """March an `Evolution` by implicit Euler and return a `Trajectory` with the solutions at `times` (all by default).

    A time step ends when its residual is below `tolerance`, when that no longer falls, after `steps` training steps,
    or with its part of the training `seconds`, if given; where none are left, the march ends. One that diverges goes
    back and on more carefully up to `rollbacks` times; then it ends there, with a warning. After every time step every
    callback is called as `callback(number, step)`.
    """
    if not isinstance(evolution, Evolution):
        raise InputError(f"evolution: {type(evolution).__name__} is not allowed; give an npdg.Evolution.")
    check_budget(seconds, steps, seed)
    check_rollbacks(rollbacks)
    chosen = marching_settings(evolution, method, preset, settings)
    check_memory(chosen, evolution.dim)
    kept = _numbers(evolution, times)
    recipe = methods.recipe(implicit_step(evolution), method, chosen)  # refuses what the method cannot take at once
    trajectory = Trajectory(evolution, method, preset, chosen, seed)
    limits = Limits(chosen.tolerance, chosen.patience, chosen.step_max if steps is None else steps, seconds, rollbacks)
    with precision(chosen.precision):
        error, energy = error_meter(evolution), energy_meter(evolution)
        reached, restored = None, keep.restore(trajectory, first_state(recipe, seed))
        if restored is not None:
            last = trajectory.steps[-1]
            reached = Reached(last.number, restored, trajectory.seconds, last.rollbacks)
        hooks = Hooks(lambda record: None, should_stop=should_stop, on_note=on_note)
        for step, state in time_steps(evolution, method, chosen, seed, limits, error, hooks, reached):
            u = state.fields["u"]
            step = replace(step, rmse=error(step.number, u), energy=energy(u))
            trajectory.steps.append(step)
            if step.number in kept:
                trajectory.times.append(step.time)
                trajectory.fields.append(u)
            for callback in callbacks:
                callback(step.number, step)
            if step.complete:
                keep.after(trajectory, state)
        keep.ended()
    if trajectory.stop_reason == "diverged":
        warnings.warn(f"diverged: {trajectory.detail}", RuntimeWarning, stacklevel=2)
    return trajectory


def marching_settings(evolution: Evolution, method: str, preset: str, overrides: dict[str, Any]) -> Settings:
    """The settings of a march; the steepness of the network's first layer is taken from the equation."""
    settings = choose(evolution.name, evolution.dim, method, preset, overrides, evolution.options)
    if preset == "default" and "steepness" not in overrides:
        settings = settings.model_copy(update={"steepness": steepness(evolution)})
    return settings


def error_meter(evolution: Evolution) -> Callable[[int, Field], float | None]:
    """A function that measures u at the time of some number: its root mean square error, if a truth is known."""
    truth = None if evolution.reference is None else evolution.reference()
    domain = evolution.domain
    points = jnp.asarray(domain.sample_interior(jax.random.key(1), EXACT_POINTS).x if truth is None else truth.points)
    values = jax.jit(lambda u: jax.vmap(u)(points))

    @cache
    def known(number: int) -> np.ndarray | None:
        if truth is not None:
            return truth.values[number]
        exact = evolution.start if number == 0 else evolution.at(jnp.asarray(evolution.times[number])).exact
        return None if exact is None else np.asarray(jax.vmap(exact)(points))

    def error(number: int, u: Field) -> float | None:
        at_points = known(number)
        return None if at_points is None else float(np.sqrt(np.mean((np.asarray(values(u)) - at_points) ** 2)))

    return error


def energy_meter(evolution: Evolution) -> Callable[[Field], float | None]:
    """A function that integrates the energy of u, if the evolution has one."""
    density = evolution.energy
    if density is None:
        return lambda u: None
    domain = evolution.domain
    nodes = jnp.asarray(domain.spread(QUADRATURE))
    integral = jax.jit(lambda u: jnp.mean(jax.vmap(lambda x: density(u, x))(nodes)) * domain.volume)
    return lambda u: float(integral(u))


def _numbers(evolution: Evolution, times: Sequence[float] | None) -> set[int]:
    """Which steps are kept: those at the given times, which must be times of the march."""
    if times is None:
        return set(range(evolution.steps + 1))
    kept = set()
    for time in times:
        number = round(time / evolution.step)
        if not (0 <= number <= evolution.steps and abs(number * evolution.step - time) < 1e-6 * evolution.step):
            raise InputError(
                f"times: {time!r} is not a time of this march; give multiples of {evolution.step:g} up to "
                f"{evolution.until:g}."
            )
        kept.add(number)
    return kept

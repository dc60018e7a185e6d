"""The public face: `solve` an equation, look at the `Solution`, `load` a saved one."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import Array

from npdg import methods
from npdg.errors import InputError
from npdg.evaluation import Errors, error_meter
from npdg.fields import Field
from npdg.loop import Outcome, Record, initial, run
from npdg.pde import PDE
from npdg.presets import choose
from npdg.settings import Settings

LIVE_POINTS, FINAL_POINTS = 10_000, 100_000


@dataclass
class Solution:
    """A solved equation. Call it on points `(n, d)`; `.u` is the same as a one-point jax function."""

    pde: PDE
    u: Field
    method: str
    preset: str
    settings: Settings
    seed: int
    stop_reason: str
    detail: str = ""
    steps: int = 0
    seconds: float = 0.0
    compile_seconds: float = 0.0
    history: list[Record] = field(default_factory=list)

    def __call__(self, x: Any) -> np.ndarray:
        """u at the points `x (n, d)`, or at one point `(d,)`."""
        return self._evaluate(self.u, x)

    def gradient(self, x: Any) -> np.ndarray:
        """∇u at the points `x (n, d)`, or at one point `(d,)`."""
        return self._evaluate(jax.grad(self.u), x)

    def _evaluate(self, function: Callable[[Array], Array], x: Any) -> np.ndarray:
        points = np.asarray(x, dtype=self.settings.precision)
        if points.ndim not in (1, 2) or points.shape[-1] != self.pde.dim:
            raise InputError(f"x: shape {points.shape} is not allowed; give points of shape (n, {self.pde.dim}).")
        with precision(self.settings.precision):
            batch = jax.numpy.asarray(points)
            return np.asarray(function(batch) if batch.ndim == 1 else jax.vmap(function)(batch))

    def error(self, n: int = FINAL_POINTS, seed: int = 1) -> Errors:
        """Relative L² and H¹-seminorm errors against the exact solution, on n fresh points."""
        if self.pde.exact is None:
            raise InputError("error: this equation has no exact solution to compare with; give PDE(exact=...).")
        with precision(self.settings.precision):
            return error_meter(self.pde, n, seed)(self.u)

    def plot(self, path: str | Path | None = None) -> Any:
        """A figure of a 2-D slice of u, the exact solution and the error; written to `path` if given."""
        from npdg.runs import plots

        return plots.finish(plots.slice_figure(self), path)

    def plot_history(self, path: str | Path | None = None) -> Any:
        """A figure of the errors against seconds and against steps; written to `path` if given."""
        from npdg.runs import plots

        return plots.finish(plots.history_figure([self]), path)

    def save(self, path: str | Path) -> Path:
        """Write the solution to a new directory, from which `npdg.load` reads it back."""
        from npdg.runs import store

        return store.save(self, Path(path))


def solve(
    pde: PDE,
    method: str = "npdg",
    *,
    seconds: float | None = None,
    steps: int | None = None,
    seed: int = 0,
    preset: str = "default",
    callbacks: Sequence[Callable[[Record], None]] = (),
    on_compiled: Callable[[float], None] = lambda seconds: None,
    should_stop: Callable[[], str | None] = lambda: None,
    **settings: Any,
) -> Solution:
    """Solve a PDE for some training `seconds` (60 unless `steps` is given) and return a `Solution`.

    Every number is chosen for you; keyword arguments such as `width=128` or `precision="float64"` change one.
    A run that diverges ends with `stop_reason == "diverged"`, a warning, and the last finite field.
    """
    if not isinstance(pde, PDE):
        raise InputError(f"pde: {type(pde).__name__} is not allowed; give an npdg.PDE.")
    chosen = choose(pde.name, pde.dim, method, preset, settings)
    _check_budget(seconds, steps, seed)
    if seconds is None and steps is None:
        seconds = 60.0
    with precision(chosen.precision):
        recipe = methods.recipe(pde, method, chosen)
        meter = error_meter(pde, LIVE_POINTS) if pde.exact is not None else None
        outcome: Outcome = run(
            recipe,
            initial(recipe, seed),
            seconds=seconds,
            steps=steps,
            evaluate=lambda state: vars(meter(state.fields["u"])) if meter else {},
            on_compiled=on_compiled,
            on_record=lambda record: _call(callbacks, record),
            should_stop=should_stop,
        )
    if outcome.stop_reason == "diverged":
        warnings.warn(f"diverged: {outcome.detail}", RuntimeWarning, stacklevel=2)
    return Solution(
        pde,
        outcome.state.fields["u"],
        method,
        preset,
        chosen,
        seed,
        outcome.stop_reason,
        outcome.detail,
        int(outcome.state.step),
        outcome.seconds,
        outcome.compile_seconds,
        outcome.history,
    )


def load(path: str | Path, pde: PDE | None = None) -> Solution:
    """Read a solution written by `Solution.save` or by a run; `pde` is needed when it was your own equation."""
    from npdg.runs import store

    return store.load(Path(path), pde)


def precision(name: str):
    """The context in which jax computes in float32 or float64; the user's own mode comes back after it."""
    return jax.enable_x64(name == "float64")


def _call(callbacks: Sequence[Callable[[Record], None]], record: Record) -> None:
    for callback in callbacks:
        callback(record)


def _check_budget(seconds: float | None, steps: int | None, seed: int) -> None:
    if seconds is not None and not (np.isfinite(seconds) and seconds > 0):
        raise InputError(f"seconds: {seconds!r} is not allowed; give a positive number.")
    if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int) or steps < 1):
        raise InputError(f"steps: {steps!r} is not allowed; give a whole number of at least 1.")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise InputError(f"seed: {seed!r} is not allowed; give a whole number from 0 to 4294967295.")

"""The public face: `solve` an equation, look at the `Solution`, `load` a saved one."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import Array

from npdg.certificate import affordable, error_estimate
from npdg.errors import InputError
from npdg.evaluation import Errors, error_meter
from npdg.fields import Field, Linearised
from npdg.hooks import KEEP_NOTHING, Hooks, Keep
from npdg.loop import Record
from npdg.pde import PDE
from npdg.presets import candidates
from npdg.rollback import check_rollbacks
from npdg.settings import Settings
from npdg.sizes import check_memory
from npdg.stages import precision, train
from npdg.stopping import read_until, stopping_rule

FINAL_POINTS = 100_000


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
    tried: tuple[str, ...] = ()
    _estimates: dict[int, float] = field(default_factory=dict, repr=False)

    def __call__(self, x: Any) -> np.ndarray:
        """u at the points `x (n, d)`, or at one point `(d,)`."""
        return self.evaluate(self.u, x)

    def gradient(self, x: Any) -> np.ndarray:
        """∇u at the points `x (n, d)`, or at one point `(d,)`."""
        return self.evaluate(jax.grad(self.u), x)

    def evaluate(self, function: Callable[[Array], Array], x: Any) -> np.ndarray:
        """Any function of one point at the points `x (n, d)`, or at one point `(d,)`, in the precision of u."""
        points = np.asarray(x, dtype=self.precision)
        if points.ndim not in (1, 2) or points.shape[-1] != self.pde.dim:
            raise InputError(f"x: shape {points.shape} is not allowed; give points of shape (n, {self.pde.dim}).")
        with precision(self.precision):
            batch = jax.numpy.asarray(points)
            return np.asarray(function(batch) if batch.ndim == 1 else jax.vmap(function)(batch))

    @property
    def polished(self) -> bool:
        """Whether u is a network with a linear correction in its tangent space."""
        return isinstance(self.u, Linearised)

    @property
    def precision(self) -> str:
        """float32 or float64, as the numbers of u are."""
        return str(jax.tree.leaves(self.u)[0].dtype)

    def error_estimate(self, seed: int = 0) -> float | None:
        """The certificate: an estimate of the relative H¹-seminorm error that does not look at the exact solution.

        None where u has no second derivatives (PReLU), which the residual needs.
        """
        if self.settings.activation == "prelu":
            return None
        if seed not in self._estimates:
            with precision("float64" if affordable(self.u) else self.precision):
                self._estimates[seed] = error_estimate(self.pde, self.u, seed)
        return self._estimates[seed]

    def error(self, n: int = FINAL_POINTS, seed: int = 1) -> Errors:
        """Relative L² and H¹-seminorm errors against the exact solution, on n fresh points."""
        if self.pde.exact is None:
            raise InputError("error: this equation has no exact solution to compare with; give PDE(exact=...).")
        with precision(self.precision):
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
    until: str | None = None,
    rollbacks: int = 0,
    callbacks: Sequence[Callable[[int, Record], None]] = (),
    on_compiled: Callable[[float], None] = lambda seconds: None,
    on_chosen: Callable[[Settings], None] = lambda settings: None,
    on_note: Callable[[str], None] = lambda note: None,
    should_stop: Callable[[], str | None] = lambda: None,
    keep: Keep = KEEP_NOTHING,
    **settings: Any,
) -> Solution:
    """Solve a PDE for some training `seconds` (60 unless `steps` is given) and return a `Solution`.

    Every number is chosen for you; keyword arguments such as `width=128` or `precision="float64"` change one.
    `until="rel_l2=1e-3"` (also rel_h1, residual, or "plateau") ends it earlier. About once a second every callback is
    called as `callback(step, record)`. A run that diverges goes back to its last good state and on with more damping up
    to `rollbacks` times; then it ends with `stop_reason == "diverged"`, a warning, and the last finite field.
    """
    if not isinstance(pde, PDE):
        raise InputError(f"pde: {type(pde).__name__} is not allowed; give an npdg.PDE.")
    options = candidates(pde.name, pde.dim, method, preset, settings)
    check_budget(seconds, steps, seed)
    check_rollbacks(rollbacks)
    for option in options:
        check_memory(option, pde.dim)
    if seconds is None and steps is None:
        seconds = 60.0
    hooks = Hooks(lambda record: call_all(callbacks, record), on_compiled, on_chosen, should_stop, on_note=on_note)
    if until is not None:
        hooks = replace(hooks, enough=stopping_rule(read_until(until), method, exact=pde.exact is not None))
    hooks = replace(hooks, keep=keep)
    trained = train(pde, method, options, seconds=seconds, steps=steps, seed=seed, rollbacks=rollbacks, hooks=hooks)
    outcome = trained.outcome
    if outcome.stop_reason == "diverged":
        warnings.warn(f"diverged: {outcome.detail}", RuntimeWarning, stacklevel=2)
    return Solution(
        pde,
        outcome.state.fields["u"],
        method,
        preset,
        trained.settings,
        seed,
        outcome.stop_reason,
        outcome.detail,
        int(outcome.state.step),
        outcome.seconds,
        outcome.compile_seconds,
        outcome.history,
        tuple(str(trial) for trial in trained.tried),
    )


def load(path: str | Path, pde: Any = None) -> Any:
    """Read the `Solution`, `Trajectory` or `TransportSolution` of a run or of `save`.

    `pde` is needed when the equation, evolution or pair of measures was your own.
    """
    from npdg.runs import store, trajectories, transports

    readers = {"solution": store.load, "march": trajectories.load, "transport": transports.load}
    return readers[store.kind_of(Path(path))](Path(path), pde)


def call_all(callbacks: Sequence[Callable[[int, Record], None]], record: Record) -> None:
    """Tell every callback the step and its record."""
    for callback in callbacks:
        callback(record.step, record)


def check_budget(seconds: float | None, steps: int | None, seed: int) -> None:
    """Refuse a budget or a seed that is none."""
    if seconds is not None and not (np.isfinite(seconds) and seconds > 0):
        raise InputError(f"seconds: {seconds!r} is not allowed; give a positive number.")
    if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int) or steps < 1):
        raise InputError(f"steps: {steps!r} is not allowed; give a whole number of at least 1.")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise InputError(f"seed: {seed!r} is not allowed; give a whole number from 0 to 4294967295.")

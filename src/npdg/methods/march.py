"""Marching in time: every method for equations solves the steps of implicit Euler."""

from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from npdg.errors import InputError
from npdg.formulations.metrics import least_conductivity
from npdg.methods.base import Method
from npdg.methods.equation import EquationMethod
from npdg.methods.pinn import NaturalPINN
from npdg.methods.settings import Settings
from npdg.results.error import MarchMeasure
from npdg.results.trajectory import Trajectory
from npdg.training.progress import Budget, Evaluate, Progress, RecipeAfter
from npdg.training.stages.base import Stage
from npdg.training.stages.march import FitStart, MarchStep
from npdg.training.step import Recipe
from npdg.training.stopping import Until

GENTLEST, STEEPEST = 6.0, 200.0
STEEPNESS_POINTS = 256


class March(Method):
    """A march whose time steps are solved by a method for equations.

    Arguments:
        inner: the method of the time steps.
        times: the times at which solutions are kept; all if not given.
    """

    kind: ClassVar[str] = "evolution"
    model = Settings
    default_seconds: ClassVar[float | None] = None  # it goes to its tolerance

    def __init__(self, inner: EquationMethod, times: Sequence[float] | None = None):
        self.inner, self.times = inner, times
        self.name = inner.name  # pyright: ignore[reportAttributeAccessIssue]
        self.preset, self.network, self.changes = inner.preset, inner.network, inner.changes
        self._measures: dict[bool, MarchMeasure] = {}
        self._kept: set[int] | None = None

    def keeping(self, times: Sequence[float] | None) -> "March":
        """The same, with solutions kept at these times alone."""
        return March(self.inner, times)

    def candidates(self, problem: Any) -> Sequence[Settings]:
        inner = self.inner
        self._kept = _numbers(problem, self.times)
        if self.preset == "paper":
            chosen = inner.resolved(inner.paper_settings(problem))
        else:
            chosen = inner.resolved(inner.marching(problem.dim))
            if "steepness" not in self.changes:
                chosen = chosen.changed(steepness=steepness(problem))
        inner.check_size(chosen, problem.dim)
        return [chosen]

    def recipe(self, problem: Any, settings: Settings) -> Recipe:
        return self.inner.recipe(problem, settings)

    def careful(self, settings: Settings, times: int) -> tuple[Settings, str]:
        return self.inner.careful(settings, times)

    def counts(self, settings: Settings, dim: int) -> dict[str, int]:
        return self.inner.counts(settings, dim)

    def memory(self, settings: Settings, dim: int) -> int:
        return self.inner.memory(settings, dim)

    def headline(self, problem: Any, settings: Settings) -> str:
        return f"{problem.name}, {problem.steps} time steps to t = {problem.until:g}, {self.name}"

    def count(self, problem: Any, budget: Budget) -> int | None:
        return problem.steps

    def check_comparable(self, problem: Any) -> None:
        if problem.reference is None and problem.first.exact is None:
            raise InputError("exact: this evolution has no exact solution to compare with; give PDE(exact=...).")

    def check_until(self, problem: Any, until: Until) -> None:
        raise InputError("until: a march ends at its last time; set tolerance=1e-4, say, for each of its steps.")

    def stages(self, problem: Any, settings: Settings) -> Sequence[Stage]:
        return (FitStart(), *(MarchStep(number) for number in range(1, problem.steps + 1)))

    def meter(self, problem: Any, settings: Settings) -> Evaluate:
        return lambda state: {}

    def fit(self, problem: Any, settings: Settings) -> tuple[Settings, RecipeAfter]:
        """Settings and recipe of the fit of the start, by Gauss and Newton's method whatever the march itself uses."""
        kind = settings.solver.kind
        own = settings.changed(
            damping=settings.solver.damping or 1e-3, solver="cg" if kind == "minres" else kind, dual="none"
        )
        fitter, start = NaturalPINN(network=self.network), problem.initial_fit()

        def after(times: int) -> tuple[Recipe, str]:
            changed, words = fitter.careful(own, times)
            return fitter.recipe(start, changed), words

        return own, after

    def measure(self, problem: Any) -> MarchMeasure:
        """What is measured at every time; made once for each precision."""
        wide = bool(jax.config.read("jax_enable_x64"))
        if wide not in self._measures:
            self._measures[wide] = MarchMeasure(problem)
        return self._measures[wide]

    def keeps(self, number: int) -> bool:
        """Whether the solution after a time step is kept."""
        return self._kept is None or number in self._kept

    def result(self, problem: Any, progress: Progress, seed: int) -> Any:
        return Trajectory.of(problem, self, progress, seed)

    def restored(self, problem: Any, settings: Settings, saved: Any) -> Any:
        return Trajectory.restored(problem, self, settings, saved)


def steepness(evolution: Any) -> float:
    """How steep layers may become, relative to half the size of the domain: diffusion against reaction at the start."""

    pde = evolution.first
    x = jnp.asarray(pde.domain.spread(STEEPNESS_POINTS))
    one = lambda y: jnp.ones((), y.dtype)
    kappa = jax.vmap(least_conductivity(pde, evolution.start))(x)
    slope = jnp.abs(jax.vmap(lambda y: pde.reaction_slope(evolution.start, one, y))(x))
    lower, upper = pde.domain.bounds()
    length = float(jnp.sqrt(jnp.min(kappa) / jnp.max(slope))) if float(jnp.max(slope)) > 0 else np.inf
    return float(np.clip(np.max(upper - lower) / 2 / (4 * length), GENTLEST, STEEPEST))


def _numbers(evolution: Any, times: Sequence[float] | None) -> set[int] | None:
    """Which steps are kept: those at the given times, which must be times of the march."""
    if times is None:
        return None
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

"""What a method is: a value that turns a problem into recipes and stages.

A method holds what its user asked for: a preset, changed settings, a network of one's own. `candidates(problem)` are
the settings that this means for a problem, in the order in which they are tried; everything else of a run follows from
the problem, the method and those settings.
"""

import abc
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from npdg.errors import InputError, unknown
from npdg.methods.flat import FlatSettings
from npdg.methods.registry import ADAPTERS, PRESETS, SOLVED_BY, found, make_method
from npdg.problem.base import Problem
from npdg.training.progress import Budget, Evaluate, Progress
from npdg.training.records import Record
from npdg.training.stages.base import Stage
from npdg.training.step import Recipe
from npdg.training.stopping import Until

STEP_SIZES = ("tau_u", "tau_phi", "tau_psi")
BYTES = {"float32": 4, "float64": 8}


class Method(abc.ABC):
    """How problems of one kind are solved.

    Arguments:
        preset: a name from `npdg list`.
        network: the user's own network for u, any callable pytree of one point.
        settings: settings that are changed, under flat (`width`) or nested (`network.width`) names.
    """

    name: ClassVar[str]
    title: ClassVar[str] = ""
    kind: ClassVar[str]
    model: ClassVar[type[FlatSettings]]
    in_paper: ClassVar[bool] = True
    damped: ClassVar[bool] = False  # whether its steps become more careful by damping
    default_seconds: ClassVar[float | None] = 60.0  # of a run that is given neither seconds nor steps

    def __init__(self, *, preset: str = "default", network: Any = None, **settings: Any):
        if preset not in PRESETS:
            raise unknown("preset", preset, PRESETS)
        self.preset, self.network = preset, network
        self.changes = self.model.flat_names(settings)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self.changes.items())})"

    def adapted(self, kind: str) -> "Method":
        """This method for a kind of problem, or an `InputError`."""
        if kind == self.kind:
            return self
        if SOLVED_BY.get(kind) == self.kind:
            return found(ADAPTERS[kind])(self)
        return make_method(kind, self.name, preset=self.preset, network=self.network, **self.changes)

    def keeping(self, times: Sequence[float] | None) -> Self:
        """The same, with solutions kept at some times alone; only for what is marched in time."""
        raise InputError(f"times: {self.name} has no times; leave it out.")

    @abc.abstractmethod
    def candidates(self, problem: Any) -> Sequence[Any]:
        """The settings a run may use, in the order in which they are tried, or an `InputError` if there are none."""

    @abc.abstractmethod
    def recipe(self, problem: Any, settings: Any) -> Recipe:
        """All that training needs."""

    @abc.abstractmethod
    def stages(self, problem: Any, settings: Any) -> Sequence[Stage]:
        """The parts of a run."""

    @abc.abstractmethod
    def meter(self, problem: Any, settings: Any) -> Evaluate:
        """What is measured of a state as training goes on."""

    @abc.abstractmethod
    def result(self, problem: Any, progress: Progress, seed: int) -> Any:
        """What comes out of a run."""

    @abc.abstractmethod
    def restored(self, problem: Any, settings: Any, saved: Any) -> Any:
        """A result read back from what a run or `save` left."""

    @abc.abstractmethod
    def check_until(self, problem: Any, until: Until) -> None:
        """Refuse to wait for what a run will never report."""

    @abc.abstractmethod
    def counts(self, settings: Any, dim: int) -> dict[str, int]:
        """Trained numbers of every network."""

    @abc.abstractmethod
    def memory(self, settings: Any, dim: int) -> int:
        """Bytes of the largest intermediate results of a step."""

    def headline(self, problem: Any, settings: Any) -> str:
        """The title of a run's display."""
        return f"{problem.name} {problem.dim}-D, {self.name}, {settings.precision}"

    def count(self, problem: Any, budget: Budget) -> int | None:
        """How many reports with an index a run has in all, if that is known."""
        return budget.steps

    def check_comparable(self, problem: Any) -> None:
        """Refuse a problem on which methods cannot be compared, for want of anything to measure."""
        return

    def told_apart(self, history: list[Record], settings: Any) -> list[Record]:
        """Records of an earlier version, which did not name their stages, with these names."""
        return history

    def paper_settings(self, problem: Problem) -> Mapping[str, Any]:
        """The settings of the preset `paper`, or an `InputError` if the paper has no such experiment."""
        origin = problem.origin
        presets = {} if origin is None else origin.presets
        if "paper" not in presets or not self.in_paper:
            missing = problem.name if "paper" not in presets else self.name
            raise InputError(f"preset: 'paper' is not allowed for {missing}, which is not in the paper; give default.")
        return presets["paper"](self.name)

    def careful(self, settings: Any, times: int) -> tuple[Any, str]:
        """The settings after so many roll-backs: ten times the damping each, or half the steps where there is none."""
        if self.damped and settings.solver.damping > 0:
            changed = settings.changed(damping=settings.solver.damping * 10**times) if times else settings
            return changed, f"damping={changed.solver.damping:g}"
        sizes = [key for key in STEP_SIZES if key in self.model.paths()]
        changed = settings.changed(**{key: settings[key] / 2**times for key in sizes}) if times else settings
        return changed, f"tau_u={changed.steps.u:g}"


@dataclass(frozen=True)
class Plan:
    """A run that has been checked and not begun: the settings it may use are resolved here, once.

    `recipe` is that of the first of them.
    """

    problem: Any
    method: Method
    candidates: Sequence[Any]
    recipe: Recipe
    budget: Budget
    seed: int = 0

    @property
    def settings(self) -> Any:
        """The settings that are tried first."""
        return self.candidates[0]

    @property
    def decided(self) -> bool:
        """Whether these are the settings of the run, whatever comes: there is no choice, or no time to try."""
        return len(self.candidates) == 1 or self.budget.steps is not None


def parameters(dim: int, width: int, depth: int, last_bias: bool) -> int:
    """Trained numbers of MLP(dim, width, 1, depth)."""
    sizes = [dim, *[width] * (depth - 1), 1]
    count = sum((n_in + 1) * n_out for n_in, n_out in zip(sizes[:-1], sizes[1:], strict=True))
    return count if last_bias else count - 1


def hidden_units(network: Any) -> int:
    """Units of all hidden layers of a network."""
    return network.width * max(network.depth - 1, 1)


def check_memory(needed: int, size: int, *, dense: bool) -> None:
    """Refuse a run that this machine cannot hold, before it is killed for it."""
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > there:
        instead = ", or set solver=cg" if dense else ""
        raise InputError(
            f"width: a network of {size} parameters needs about {needed / 2**30:.0f} GB a step like this, and "
            f"this machine has {there / 2**30:.0f}; give a smaller width, depth or n_interior{instead}."
        )

"""Equations in time: ∂u/∂t = div flux(u) − reaction(u) + source, and the elliptic one that a step of implicit Euler is.

u − h (div flux(u) − reaction(u) + source) = u_before
"""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from npdg.calculus import Scalar
from npdg.errors import InputError
from npdg.geometry.domain import Domain
from npdg.problem.base import Origin
from npdg.problem.conditions import Neumann, Rescaled
from npdg.problem.pde import PDE, check_function


class ReferenceValues(NamedTuple):
    """Known values at some points `(n, d)`, one array `(n,)` for every time of a march from 0 on."""

    points: np.ndarray
    values: list[np.ndarray]


@dataclass(frozen=True)
class Evolution:
    """∂u/∂t − div flux(u) + reaction(u) = source from `start` at time 0 to `until`, in `steps` steps of implicit Euler.

    Arguments:
        equation: a `PDE`, or a function of the time that returns one, with its `exact` solution at that time if known.
        start: u at time 0, a function of one point.
        until: the last time.
        steps: how many time steps there are.
        energy: `energy(u, x)`, a density at one point, which is integrated at every time.
        reference: a function that gives `ReferenceValues` to compare with.
        name, options: recorded with a run.
    """

    equation: PDE | Callable[[Array], PDE]
    start: Scalar
    until: float
    steps: int
    energy: Callable[[Scalar, Array], Array] | None = None
    reference: Callable[[], ReferenceValues] | None = None
    name: str = "evolution"
    options: Mapping[str, Any] = field(default_factory=dict)
    origin: Origin | None = field(default=None, init=False, compare=False)
    kind: ClassVar[str] = "evolution"
    written: ClassVar[str] = "∂u/∂t −div flux(u) + reaction(u) = source"

    def __post_init__(self) -> None:
        until = self.until
        if isinstance(until, bool) or not (isinstance(until, (int, float)) and np.isfinite(until) and until > 0):
            raise InputError(f"until: {until!r} is not allowed; give a positive number.")
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 1:
            raise InputError(f"steps: {self.steps!r} is not allowed; give a whole number of at least 1.")
        if not isinstance(self.first, PDE):
            given = type(self.first).__name__
            raise InputError(f"equation: {given} is not allowed; give an npdg.PDE or a function of time.")
        check_function("start", self.start, self.dim, ())

    @property
    def first(self) -> PDE:
        """The equation at time 0."""
        return self.at(jnp.zeros(()))

    @property
    def domain(self) -> Domain:
        return self.first.domain

    @property
    def dim(self) -> int:
        return self.first.dim

    @property
    def step(self) -> float:
        """The length h of a time step."""
        return self.until / self.steps

    @property
    def times(self) -> np.ndarray:
        """0, h, 2h, …, until."""
        return np.linspace(0, self.until, self.steps + 1)

    def at(self, time: Array) -> PDE:
        """The equation at one time."""
        return self.equation if isinstance(self.equation, PDE) else self.equation(time)

    def implicit_step(self, before: Scalar, time: Array) -> PDE:
        """The equation of the time step that leads from `before` to `time`."""
        pde, h = self.at(time), self.step
        reaction = pde.reaction

        def mass(u: Scalar, x: Array) -> Array:
            return u(x) if reaction is None else u(x) + h * reaction(u, x)

        return PDE(
            pde.domain,
            flux=lambda u, x: h * pde.flux(u, x),
            source=lambda x: before(x) + h * pde.source(x),
            reaction=mass,
            boundary=Rescaled(pde.boundary, pde.flux, h),  # the same condition, whatever the length of the step
            sampling=pde.sampling,
            name=self.name,
        )

    def bound(self, data: Mapping[str, Any]) -> PDE:
        """The equation of a time step, with the solution before it and the time as data."""
        return self.implicit_step(data["before"], data["time"])

    def representative(self) -> PDE:
        """The equation of a time step from the start, by which its structure can be told."""
        return self.implicit_step(self.start, jnp.zeros(()))

    def initial_fit(self) -> PDE:
        """The equation u = start, whose solution in the space of networks a march starts from."""
        pde = self.first
        return PDE(
            pde.domain,
            flux=lambda u, x: jnp.zeros_like(x),
            reaction=lambda u, x: u(x),
            source=self.start,
            boundary=Neumann(0.0),  # of no flux at all: nothing is asked on the boundary
            exact=self.start,
            sampling=pde.sampling,
            name=f"{self.name}, start",
        )

    def from_catalogue(self, origin: Origin) -> "Evolution":
        """The same, known to be the catalogue's; one that is changed by `replace` is so no longer."""
        same = copy(self)
        object.__setattr__(same, "origin", origin)
        return same

    def named(self, name: str) -> "Evolution":
        """The same evolution under another name."""
        return replace(self, name=name)

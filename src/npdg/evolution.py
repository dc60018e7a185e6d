"""Equations in time: ∂u/∂t = div flux(u) − reaction(u) + source, and the elliptic one that a step of implicit Euler is.

    u − h (div flux(u) − reaction(u) + source) = u_before

The previous solution and the time are fields of the state, which integrands read, so that nothing is compiled anew
from one time to the next.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from npdg.calculus import Scalar
from npdg.domains import Domain
from npdg.errors import InputError
from npdg.measures import Points
from npdg.pde import PDE, Neumann, Trace


class Truth(NamedTuple):
    """Known values at some points `(n, d)`, one array `(n,)` for every time of a march from 0 on."""

    points: np.ndarray
    values: list[np.ndarray]


@dataclass(frozen=True)
class Evolution:
    """∂u/∂t − div flux(u) + reaction(u) = source from `start` at time 0 to `until`, in `steps` steps of implicit Euler.

    `equation` is a `PDE`, or a function of the time that returns one, with its `exact` solution at that time if known.
    `energy(u, x)`, a density at one point, is integrated at every time. `reference` gives a `Truth` to compare with.
    """

    equation: PDE | Callable[[Array], PDE]
    start: Scalar
    until: float
    steps: int
    energy: Callable[[Scalar, Array], Array] | None = None
    reference: Callable[[], Truth] | None = None
    name: str = "evolution"
    options: Mapping[str, Any] = dataclass_field(default_factory=dict)

    def __post_init__(self) -> None:
        _positive("until", self.until)
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 1:
            raise InputError(f"steps: {self.steps!r} is not allowed; give a whole number of at least 1.")
        pde = self.first
        if not isinstance(pde, PDE):
            raise InputError(f"equation: {type(pde).__name__} is not allowed; give an npdg.PDE or a function of time.")
        point = jax.ShapeDtypeStruct((pde.dim,), jnp.float32)
        if (shape := jax.eval_shape(lambda x: jnp.asarray(self.start(x)), point).shape) != ():
            raise InputError(f"start: returned shape {shape} at one point; it must return a number (shape ()).")

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

    def named(self, name: str) -> "Evolution":
        """The same evolution under another name."""
        return replace(self, name=name)


class Clock(eqx.Module):
    """The time as a field of the state."""

    now: Array


@dataclass(frozen=True)
class _Step(PDE):
    """A step with everything known, of an equation that was checked."""

    origin: PDE | None = None

    def __post_init__(self) -> None:
        pass

    def mismatch(self, u: Scalar, point: Points, trace: Trace) -> Array:
        # The condition is the equation's own, whatever the length of the step.
        assert self.origin is not None
        return self.origin.mismatch(u, point, trace)


@dataclass(frozen=True)
class ImplicitStep(PDE):
    """The equation of every step of a march, for the fields "before" and "time"."""

    evolution: Evolution | None = None

    def __post_init__(self) -> None:
        pass

    def at(self, fields: Mapping[str, Any]) -> PDE:
        assert self.evolution is not None
        pde, before, h = self.evolution.at(fields["time"].now), fields["before"], self.evolution.step
        reaction = pde.reaction

        def mass(u: Scalar, x: Array) -> Array:
            return u(x) if reaction is None else u(x) + h * reaction(u, x)

        return _Step(
            pde.domain,
            flux=lambda u, x: h * pde.flux(u, x),
            source=lambda x: before(x) + h * pde.source(x),
            reaction=mass,
            boundary=Neumann(lambda x: h * pde.boundary.data(x)) if isinstance(pde.boundary, Neumann) else pde.boundary,
            sampling=pde.sampling,
            origin=pde,
        )


def implicit_step(evolution: Evolution) -> ImplicitStep:
    """The equation of every step of a march."""
    pde = evolution.first
    return ImplicitStep(
        pde.domain,
        flux=pde.flux,
        boundary=pde.boundary,
        sampling=pde.sampling,
        name=evolution.name,
        evolution=evolution,
    )


def fitting(evolution: Evolution) -> PDE:
    """The equation u = start, whose solution in the space of networks a march starts from."""
    pde = evolution.first
    return PDE(
        pde.domain,
        flux=lambda u, x: jnp.zeros_like(x),
        reaction=lambda u, x: u(x),
        source=evolution.start,
        boundary=Neumann(0.0),  # of no flux at all: nothing is asked on the boundary
        exact=evolution.start,
        sampling=pde.sampling,
        name=f"{evolution.name}, start",
    )


def _positive(key: str, value: float) -> None:
    if isinstance(value, bool) or not (isinstance(value, (int, float)) and np.isfinite(value) and value > 0):
        raise InputError(f"{key}: {value!r} is not allowed; give a positive number.")

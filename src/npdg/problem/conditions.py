"""Conditions on the boundary of a domain: what of a function is compared there, and with what."""

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from npdg.calculus import Number, Point, Scalar
from npdg.measures.points import Points

Rows = Float[Array, " rows"]
Trace = Callable[[Scalar, Points], Rows]  # what of a function is compared on the boundary
Flux = Callable[[Scalar, Point], Point]


class Condition(abc.ABC):
    """What holds on the boundary.

    `essential` conditions fix values of u; the others are conditions that the weak form has of its own, by its `work`.
    `rows` is how many numbers `mismatch` has at a point where the trace is a value and one derivative.
    """

    essential: ClassVar[bool]
    rows: ClassVar[int]

    @abc.abstractmethod
    def data(self, x: Point) -> Number:
        """The number that is given at one point."""

    @abc.abstractmethod
    def mismatch(self, flux: Flux, u: Scalar, point: Points, trace: Trace) -> Rows:
        """How far u, whose flux is `flux(u, x)`, is from the condition at a boundary point."""

    @abc.abstractmethod
    def tested(self, psi: Scalar, point: Points, trace: Trace) -> Rows:
        """What of a boundary test function ψ the mismatch is paired with."""

    def work(self, u: Scalar, phi: Scalar, point: Points) -> Number:
        """What the weak form has at a boundary point so that its solutions meet the condition; none if essential."""
        raise TypeError(f"{type(self).__name__} is an essential condition, which the weak form does not have")


@dataclass(frozen=True)
class Dirichlet(Condition):
    """u = value on the boundary.

    Arguments:
        value: a number, or a function of one point.
    """

    value: Scalar | float = 0.0
    essential: ClassVar[bool] = True
    rows: ClassVar[int] = 2

    def data(self, x: Point) -> Number:
        return _value_at(self.value, x)

    def mismatch(self, flux: Flux, u: Scalar, point: Points, trace: Trace) -> Rows:
        return trace(lambda y: u(y) - self.data(y), point)

    def tested(self, psi: Scalar, point: Points, trace: Trace) -> Rows:
        return trace(psi, point)


@dataclass(frozen=True)
class Neumann(Condition):
    """flux(u)·n = value on the boundary, n being the outward normal.

    Arguments:
        value: a number, or a function of one point.
    """

    value: Scalar | float = 0.0
    essential: ClassVar[bool] = False
    rows: ClassVar[int] = 1

    def data(self, x: Point) -> Number:
        return _value_at(self.value, x)

    def mismatch(self, flux: Flux, u: Scalar, point: Points, trace: Trace) -> Rows:
        """A flux has no other trace than its value."""
        assert point.normal is not None
        return (jnp.vdot(flux(u, point.x), point.normal) - self.data(point.x))[None]

    def tested(self, psi: Scalar, point: Points, trace: Trace) -> Rows:
        return psi(point.x)[None]

    def work(self, u: Scalar, phi: Scalar, point: Points) -> Number:
        return -self.data(point.x) * phi(point.x)


@dataclass(frozen=True)
class Rescaled(Condition):
    """The condition of an equation with the flux `flux`, for an equation whose flux is `weight` times that."""

    condition: Condition
    flux: Flux
    weight: float

    @property
    def essential(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.condition.essential

    @property
    def rows(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.condition.rows

    def data(self, x: Point) -> Number:
        return self.condition.data(x)

    def mismatch(self, flux: Flux, u: Scalar, point: Points, trace: Trace) -> Rows:
        return self.condition.mismatch(self.flux, u, point, trace)

    def tested(self, psi: Scalar, point: Points, trace: Trace) -> Rows:
        return self.condition.tested(psi, point, trace)

    def work(self, u: Scalar, phi: Scalar, point: Points) -> Number:
        return self.weight * self.condition.work(u, phi, point)


def _value_at(value: Scalar | float, x: Point) -> Number:
    return jnp.asarray(value(x) if callable(value) else value, dtype=x.dtype)

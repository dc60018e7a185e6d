"""A partial differential equation in divergence form, written for one point.

−div flux(u) + reaction(u) = source   in the domain,   B u = g   on its boundary
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from npdg.calculus import Scalar, div, grad
from npdg.domains import Domain
from npdg.errors import InputError
from npdg.measures import Measure, Points

Trace = Callable[[Scalar, Points], Array]  # what of a function is compared on the boundary


@dataclass(frozen=True)
class Dirichlet:
    """u = value on the boundary; `value` is a function of the point or a number."""

    value: Scalar | float = 0.0

    def data(self, x: Array) -> Array:
        """g at one point."""
        return _value(self.value, x)

    def mismatch(self, pde: "PDE", u: Scalar, point: Points, trace: Trace) -> Array:
        """How far u is from the condition at a boundary point."""
        del pde
        return trace(lambda y: u(y) - self.data(y), point)

    def tested(self, psi: Scalar, point: Points, trace: Trace) -> Array:
        """What of a boundary test function ψ the mismatch is paired with."""
        return trace(psi, point)


@dataclass(frozen=True)
class Neumann:
    """flux(u)·n = value on the boundary, n the outward normal; `value` is a function of the point or a number."""

    value: Scalar | float = 0.0

    def data(self, x: Array) -> Array:
        """g at one point."""
        return _value(self.value, x)

    def mismatch(self, pde: "PDE", u: Scalar, point: Points, trace: Trace) -> Array:
        """How far u is from the condition at a boundary point; a flux has no other trace than its value."""
        del trace
        assert point.normal is not None
        return (jnp.vdot(pde.flux(u, point.x), point.normal) - self.data(point.x))[None]

    def tested(self, psi: Scalar, point: Points, trace: Trace) -> Array:
        """The value of ψ."""
        del trace
        return psi(point.x)[None]


def _value(value: Scalar | float, x: Array) -> Array:
    return jnp.asarray(value(x) if callable(value) else value, dtype=x.dtype)


@dataclass(frozen=True)
class PDE:
    """−div flux(u) + reaction(u) = source, with its boundary condition.

    `flux(u, x) -> (d,)` and `reaction(u, x) -> ()` take the field and one point; `source(x) -> ()`.
    `exact`, when known, is only used to measure errors; `sampling` is where points of the interior are drawn from,
    uniformly unless given; `name` and `options` are recorded with a run.
    """

    domain: Domain
    flux: Callable[[Scalar, Array], Array]
    source: Callable[[Array], Array] = lambda x: jnp.zeros((), x.dtype)
    reaction: Callable[[Scalar, Array], Array] | None = None
    boundary: Dirichlet | Neumann = Dirichlet()
    exact: Scalar | None = None
    sampling: Measure | None = None
    name: str = "pde"
    options: Mapping[str, str] = dataclass_field(default_factory=dict)

    def __post_init__(self) -> None:
        check(self)

    @property
    def dim(self) -> int:
        return self.domain.dim

    @property
    def interior(self) -> Measure:
        """The measure that expectations inside the domain are taken over."""
        return self.domain.interior if self.sampling is None else self.sampling

    def lower_order(self, u: Scalar, x: Array) -> Array:
        """reaction(u) − source at one point: what multiplies φ itself in the weak form."""
        source = self.source(x)
        return -source if self.reaction is None else self.reaction(u, x) - source

    def residual(self, u: Scalar, x: Array) -> Array:
        """The strong residual −div flux(u) + reaction(u) − source at one point."""
        return -div(lambda y: self.flux(u, y))(x) + self.lower_order(u, x)

    def weak(self, u: Scalar, phi: Scalar, x: Array) -> Array:
        """The weak form at one point: flux(u)·∇φ + (reaction(u) − source) φ."""
        return jnp.vdot(self.flux(u, x), grad(phi)(x)) + self.lower_order(u, x) * phi(x)

    def mismatch(self, u: Scalar, point: Points, trace: Trace) -> Array:
        """How far u is from the boundary condition at one point of the boundary."""
        return self.boundary.mismatch(self, u, point, trace)

    def at(self, fields: Mapping[str, Any]) -> "PDE":
        """The equation as it is for given fields: itself, unless it is a step of a march."""
        del fields
        return self

    def conductivity(self, u: Scalar, x: Array) -> Array:
        """∂flux₁/∂(∂₁u) at one point: κ where the flux is κ(x)∇u."""
        tilted = lambda s: self.flux(lambda y: u(y) + s * (y[0] - x[0]), x)[0]
        return jax.jvp(tilted, (jnp.zeros((), x.dtype),), (jnp.ones((), x.dtype),))[1]

    def reaction_slope(self, u: Scalar, v: Scalar, x: Array) -> Array:
        """The derivative of reaction(u) in the direction v, at one point; zero without a reaction."""
        along = lambda s: self.lower_order(lambda y: u(y) + s * v(y), x)
        return jax.jvp(along, (jnp.zeros((), x.dtype),), (jnp.ones((), x.dtype),))[1]

    def named(self, name: str) -> "PDE":
        """The same equation under another name."""
        return replace(self, name=name)


def check(pde: PDE) -> None:
    """Refuse an equation whose functions do not return one number or one vector per point."""
    if not isinstance(pde.domain, Domain):
        raise InputError(f"domain: {pde.domain!r} is not a domain; give npdg.Box(...) or npdg.Ball(...).")
    if not isinstance(pde.boundary, (Dirichlet, Neumann)):
        raise InputError(f"boundary: {pde.boundary!r} is not allowed; give npdg.Dirichlet(g) or npdg.Neumann(g).")
    dim = pde.domain.dim
    point = jax.ShapeDtypeStruct((dim,), jnp.float32)
    probe = lambda x: jnp.sum(jnp.sin(x))
    functions: dict[str, tuple[Callable[[Array], Array] | None, tuple[int, ...]]] = {
        "flux": (lambda x: pde.flux(probe, x), (dim,)),
        "reaction": (None if pde.reaction is None else lambda x: pde.reaction(probe, x), ()),  # pyright: ignore[reportOptionalCall]
        "source": (pde.source, ()),
        "boundary": (pde.boundary.data, ()),
        "exact": (pde.exact, ()),
    }
    for name, (function, shape) in functions.items():
        if function is None:
            continue
        try:
            result = jax.eval_shape(lambda x, f=function: jnp.asarray(f(x)), point)
        except InputError:
            raise
        except Exception as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else ""
            raise InputError(
                f"{name}: calling it at one point x of shape ({dim},) failed: {type(error).__name__}: {reason}"
            ) from error
        if result.shape != shape:
            wanted = "a number (shape ())" if shape == () else f"a vector of shape {shape}"
            raise InputError(
                f"{name}: returned shape {result.shape} at one point x of shape ({dim},); it must return {wanted}."
            )
        if not (jnp.issubdtype(result.dtype, jnp.floating) or jnp.issubdtype(result.dtype, jnp.integer)):
            raise InputError(f"{name}: returned {result.dtype}; it must return real numbers.")

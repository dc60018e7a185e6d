"""A partial differential equation in divergence form, written for one point.

−div flux(u) + reaction(u) = source   in the domain,   B u = g   on its boundary
"""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Num

from npdg.calculus import Number, Point, Scalar, div, grad
from npdg.errors import InputError
from npdg.geometry.domain import Domain
from npdg.measures.points import Measure, Points
from npdg.problem.base import Origin
from npdg.problem.conditions import Condition, Dirichlet, Trace


@dataclass(frozen=True)
class PDE:
    """−div flux(u) + reaction(u) = source in a domain, with its boundary condition.

    Arguments:
        domain: where the equation holds.
        flux: `flux(u, x) -> (d,)`, a function of the field and of one point.
        source: `source(x) -> ()`; zero if not given.
        reaction: `reaction(u, x) -> ()`; none if not given.
        boundary: the condition on the whole boundary; u = 0 if not given.
        exact: the solution, if known; it is only used to measure errors.
        sampling: the measure that points of the interior are drawn from; uniform if not given.
        name, options: recorded with a run.
    """

    domain: Domain
    flux: Callable[[Scalar, Point], Point]
    source: Scalar = lambda x: jnp.zeros((), x.dtype)
    reaction: Callable[[Scalar, Point], Number] | None = None
    boundary: Condition = field(default_factory=Dirichlet)
    exact: Scalar | None = None
    sampling: Measure | None = None
    name: str = "pde"
    options: Mapping[str, Any] = field(default_factory=dict)
    origin: Origin | None = field(default=None, init=False, compare=False)
    kind: ClassVar[str] = "equation"
    written: ClassVar[str] = "−div flux(u) + reaction(u) = source"

    def __post_init__(self) -> None:
        _check_parts(self)
        _check_shapes(self)

    @property
    def dim(self) -> int:
        return self.domain.dim

    @property
    def interior(self) -> Measure:
        """The measure that expectations inside the domain are taken over."""
        return self.domain.interior if self.sampling is None else self.sampling

    def lower_order(self, u: Scalar, x: Point) -> Num[Array, ""]:
        """reaction(u) − source at one point: what multiplies φ itself in the weak form."""
        source = self.source(x)
        return -source if self.reaction is None else self.reaction(u, x) - source

    def residual(self, u: Scalar, x: Point) -> Number:
        """The strong residual −div flux(u) + reaction(u) − source at one point."""
        return -div(lambda y: self.flux(u, y))(x) + self.lower_order(u, x)

    def weak(self, u: Scalar, phi: Scalar, x: Point) -> Number:
        """The weak form at one point: flux(u)·∇φ + (reaction(u) − source) φ."""
        return jnp.vdot(self.flux(u, x), grad(phi)(x)) + self.lower_order(u, x) * phi(x)

    def mismatch(self, u: Scalar, point: Points, trace: Trace) -> Float[Array, " rows"]:
        """How far u is from the boundary condition at one point of the boundary."""
        return self.boundary.mismatch(self.flux, u, point, trace)

    def conductivity(self, u: Scalar, x: Float[Array, " d"]) -> Float[Array, "d d"]:
        """The tensor ∂flux/∂∇u at one point: κ(x) times the identity where the flux is κ(x)∇u."""
        tilted = lambda slope: self.flux(lambda y: u(y) + jnp.vdot(slope, y - x), x)
        return jax.jacfwd(tilted)(jnp.zeros_like(x))

    def first_conductivity(self, u: Scalar, x: Point) -> Number:
        """Its first entry ∂flux₁/∂(∂₁u), which is all of it where it is a multiple of the identity."""
        tilted = lambda s: self.flux(lambda y: u(y) + s * (y[0] - x[0]), x)[0]
        return jax.jvp(tilted, (jnp.zeros((), x.dtype),), (jnp.ones((), x.dtype),))[1]

    def reaction_slope(self, u: Scalar, v: Scalar, x: Point) -> Number:
        """The derivative of reaction(u) in the direction v, at one point; zero without a reaction."""
        along = lambda s: self.lower_order(lambda y: u(y) + s * v(y), x)
        return jax.jvp(along, (jnp.zeros((), x.dtype),), (jnp.ones((), x.dtype),))[1]

    def bound(self, data: Mapping[str, Any]) -> "PDE":
        """The equation with its data: itself, which has none."""
        return self

    def representative(self) -> "PDE":
        """The equation with some data, by which its structure can be told."""
        return self

    def from_catalogue(self, origin: Origin) -> "PDE":
        """The same, known to be the catalogue's; an equation that is changed by `replace` is so no longer."""
        same = copy(self)
        object.__setattr__(same, "origin", origin)
        return same

    def named(self, name: str) -> "PDE":
        """The same equation under another name."""
        return replace(self, name=name)


def _check_parts(pde: PDE) -> None:
    if not isinstance(pde.domain, Domain):
        raise InputError(f"domain: {pde.domain!r} is not a domain; give npdg.Box(...) or npdg.Ball(...).")
    if not isinstance(pde.boundary, Condition):
        raise InputError(f"boundary: {pde.boundary!r} is not allowed; give npdg.Dirichlet(g) or npdg.Neumann(g).")


def _check_shapes(pde: PDE) -> None:
    """Refuse an equation whose functions do not return one number or one vector per point."""
    dim, reaction = pde.domain.dim, pde.reaction
    probe = lambda x: jnp.sum(jnp.sin(x))
    functions: dict[str, tuple[Callable[[Array], Array] | None, tuple[int, ...]]] = {
        "flux": (lambda x: pde.flux(probe, x), (dim,)),
        "reaction": (None if reaction is None else lambda x: reaction(probe, x), ()),
        "source": (pde.source, ()),
        "boundary": (pde.boundary.data, ()),
        "exact": (pde.exact, ()),
    }
    for name, (function, shape) in functions.items():
        if function is not None:
            check_function(name, function, dim, shape)


def check_function(name: str, function: Callable[[Array], Array], dim: int, shape: tuple[int, ...]) -> None:
    """Refuse a function that does not return real numbers of this shape at one point of R^dim."""
    point = jax.ShapeDtypeStruct((dim,), jnp.float32)
    try:
        result = jax.eval_shape(lambda x: jnp.asarray(function(x)), point)
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

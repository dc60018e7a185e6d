"""A partial differential equation in divergence form, written for one point.

−div flux(u) + reaction(u) = source   in the domain,   B u = g   on its boundary
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field

import jax
import jax.numpy as jnp
from jax import Array

from npdg.calculus import Scalar, div, grad
from npdg.domains import Domain
from npdg.errors import InputError


@dataclass(frozen=True)
class Dirichlet:
    """u = value on the boundary; `value` is a function of the point or a number."""

    value: Scalar | float = 0.0

    def data(self, x: Array) -> Array:
        """g at one point."""
        return jnp.asarray(self.value(x) if callable(self.value) else self.value, dtype=x.dtype)


@dataclass(frozen=True)
class PDE:
    """−div flux(u) + reaction(u) = source, with its boundary condition.

    `flux(u, x) -> (d,)` and `reaction(u, x) -> ()` take the field and one point; `source(x) -> ()`.
    `exact`, when known, is only used to measure errors; `name` and `options` are recorded with a run.
    """

    domain: Domain
    flux: Callable[[Scalar, Array], Array]
    source: Callable[[Array], Array] = lambda x: jnp.zeros((), x.dtype)
    reaction: Callable[[Scalar, Array], Array] | None = None
    boundary: Dirichlet = Dirichlet()
    exact: Scalar | None = None
    name: str = "pde"
    options: Mapping[str, str] = dataclass_field(default_factory=dict)

    def __post_init__(self) -> None:
        check(self)

    @property
    def dim(self) -> int:
        return self.domain.dim

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

    def conductivity(self, u: Scalar, x: Array) -> Array:
        """∂flux₁/∂(∂₁u) at one point: κ where the flux is κ(x)∇u."""
        tilted = lambda s: self.flux(lambda y: u(y) + s * (y[0] - x[0]), x)[0]
        return jax.jvp(tilted, (jnp.zeros((), x.dtype),), (jnp.ones((), x.dtype),))[1]

    def named(self, name: str) -> "PDE":
        """The same equation under another name."""
        return replace(self, name=name)


def check(pde: PDE) -> None:
    """Refuse an equation whose functions do not return one number or one vector per point."""
    if not isinstance(pde.domain, Domain):
        raise InputError(f"domain: {pde.domain!r} is not a domain; give npdg.Box(...) or npdg.Ball(...).")
    if not isinstance(pde.boundary, Dirichlet):
        raise InputError(f"boundary: {pde.boundary!r} is not allowed; give npdg.Dirichlet(g).")
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

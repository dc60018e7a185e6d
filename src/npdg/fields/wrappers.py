"""Fields made of other fields: cut off, centred, extrapolated."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from npdg.fields.base import Field
from npdg.geometry.domain import Domain


class CutOff(eqx.Module):
    """ζ·net: a field that vanishes on the boundary of a domain."""

    domain: Domain = eqx.field(static=True)
    net: Field

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "..."]:
        return self.domain.cutoff(x) * self.net(x)


class Centred(eqx.Module):
    """A network that sees its domain's bounding box as [−1, 1]^d."""

    domain: Domain = eqx.field(static=True)
    net: Field

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "..."]:
        lower, upper = (jnp.asarray(corner, x.dtype) for corner in self.domain.bounds())
        return self.net((2 * x - lower - upper) / (upper - lower))


class Extrapolated(eqx.Module):
    """new + ω (new − old), in function space."""

    new: Field
    old: Field
    omega: float = eqx.field(static=True)

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "..."]:
        new = self.new(x)
        return new + self.omega * (new - self.old(x))


class Gradient(eqx.Module):
    """∇u of a field u."""

    field: Field

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, " d"]:
        return jax.grad(self.field)(x)


class WithConstants(eqx.Module):
    """A field with parts that are no arrays, such as an activation: those are constants of a compiled program."""

    arrays: Field
    rest: Any = eqx.field(static=True)

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "..."]:
        return eqx.combine(self.arrays, self.rest)(x)

"""Sums of random features, whose coefficients alone are trained: what linear least squares can find in a second."""

from typing import Literal, get_args

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from npdg.fields.base import Frozen
from npdg.fields.wrappers import Centred
from npdg.geometry.domain import Domain

FeatureKind = Literal["waves", "ridges", "bumps"]
KINDS: tuple[FeatureKind, ...] = get_args(FeatureKind)
BEYOND = 1.1  # Bends and centres lie in a cube so much larger than the domain's.
FLATTEST = 0.2  # The flattest ridge and the widest bump, relative to the steepest and the narrowest.


class Features(eqx.Module):
    """sin(w·x + b), tanh(w·x + b) or exp(−b²|x − w|²), one number for each w and b.

    A layer of no kind has the one that a number says, so that one program serves them all.
    """

    weight: Array
    bias: Array
    number: Array
    kind: FeatureKind | None = eqx.field(static=True)

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, " units"]:
        functions = {"waves": self._waves, "ridges": self._ridges, "bumps": self._bumps}
        if self.kind is not None:
            return functions[self.kind](x)
        return jnp.select([self.number == k for k in range(len(KINDS))], [functions[kind](x) for kind in KINDS])

    def _waves(self, x: Array) -> Array:
        return jnp.sin(self.weight @ x + self.bias)

    def _ridges(self, x: Array) -> Array:
        return jnp.tanh(self.weight @ x + self.bias)

    def _bumps(self, x: Array) -> Array:
        return jnp.exp(-(self.bias**2) * jnp.sum((x[None] - self.weight) ** 2, axis=1))


class FeatureSum(eqx.Module):
    """c₀ + Σ c_j feature_j(x), of which the coefficients are trained."""

    features: Frozen
    coefficients: Array

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, ""]:
        return jnp.vdot(self.features.field(x), self.coefficients[1:]) + self.coefficients[0]


def feature_sum(domain: Domain, features: Features) -> Centred:
    """The field that is zero, with room for any sum of the features; the domain is seen as [−1, 1]^d."""
    return Centred(domain, FeatureSum(Frozen(features), jnp.zeros(len(features.bias) + 1, features.bias.dtype)))


def random_features(
    kind: FeatureKind, dim: int, units: int, scale: float, seed: int | list[int], centres: np.ndarray | None = None
) -> Features:
    """Features of a scale: waves of all frequencies up to it, ridges up to so steep, bumps as narrow as its inverse.

    Bends are spread over the domain, and so are the centres of bumps unless they are given.
    """
    random = np.random.default_rng(seed)  # jax would compile every one of these operations
    direction = random.normal(size=(units, dim))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    part = random.uniform(size=(units, 1))
    place = random.uniform(-BEYOND, BEYOND, size=(units, dim))
    steepness = scale * (FLATTEST + (1 - FLATTEST) * part)
    if kind == "waves":
        weight = scale * part ** (1 / dim) * direction
        bias = random.uniform(0, 2 * np.pi, units)
    elif kind == "ridges":
        weight = steepness * direction
        bias = -np.sum(weight * place, axis=1)
    else:
        weight, bias = place if centres is None else centres, steepness[:, 0]
    return Features(jnp.asarray(weight), jnp.asarray(bias), jnp.asarray(KINDS.index(kind)), kind)

"""Measures one can sample: what an expectation is taken over."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax

from npdg.errors import InputError


class Points(eqx.Module):
    """Sample points `x (n, d)`; on a boundary also unit outward normals and random tangent vectors.

    A tangent t has E[t tᵀ] = I − n nᵀ, so that E[(t·∇u)²] is the squared tangential gradient: one number a point
    where the gradient itself has d. After `vmap`, one point.
    """

    x: Array
    normal: Array | None = None
    tangent: Array | None = None


def boundary_points(key: Array, x: Array, normal: Array) -> Points:
    """Points of a boundary, with a random tangent each."""

    def tangent(gauss: Array, normal: Array) -> Array:
        along = gauss - jnp.vdot(gauss, normal) * normal
        length = jnp.linalg.norm(along)
        # In one dimension there is no tangent: the vector is zero.
        return along * ((normal.size - 1) ** 0.5 / jnp.where(length > 0, length, 1))

    return Points(x, normal, jax.vmap(tangent)(jax.random.normal(key, x.shape), normal))


class Measure(Protocol):
    """A probability measure: `sample(key, n)` gives n independent points."""

    def sample(self, key: Array, n: int) -> Points: ...


@dataclass(frozen=True)
class Mixture:
    """Σ weight_k · part_k: more points where a solution needs them. The n points are shared out by the weights."""

    parts: Sequence[Measure]
    weights: Sequence[float]

    def __post_init__(self) -> None:
        if len(self.parts) != len(self.weights) or not self.parts:
            raise InputError(f"Mixture: {len(self.parts)} parts and {len(self.weights)} weights; give as many of each.")
        if not all(weight > 0 for weight in self.weights) or abs(sum(self.weights) - 1) > 1e-9:
            raise InputError(f"weights: {tuple(self.weights)} is not allowed; give positive numbers of sum 1.")

    def sample(self, key: Array, n: int) -> Points:
        # Rounding the running sum keeps the total at n.
        ends = [round(n * sum(self.weights[: k + 1])) for k in range(len(self.weights))]
        counts = [end - begin for begin, end in zip([0, *ends[:-1]], ends, strict=True)]
        keys = jax.random.split(key, len(counts))
        drawn = [part.sample(k, count) for part, k, count in zip(self.parts, keys, counts, strict=True)]
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *drawn)


@dataclass(frozen=True)
class Sought:
    """Points of `measure` where `density`, a function of one point, is large.

    Of `tries` times as many as asked for, those are taken that a draw with probabilities proportional to it chooses.
    """

    measure: Measure
    density: Callable[[Points], Array]
    tries: int = 20

    def sample(self, key: Array, n: int) -> Points:
        draw, choose = jax.random.split(key)
        points = self.measure.sample(draw, self.tries * n)
        if n == 0:
            return points
        weights = lax.map(self.density, points, batch_size=min(self.tries * n, 1000))
        whole = jnp.sum(weights)
        share = jnp.where(whole > 0, weights / jnp.where(whole > 0, whole, 1), 1 / weights.size)
        chosen = jax.random.choice(choose, weights.size, (n,), replace=False, p=share)
        return jax.tree.map(lambda leaf: leaf[chosen], points)

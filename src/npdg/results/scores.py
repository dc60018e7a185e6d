"""How good a transport map is: against the true map where it is known, against the target where it is not."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from npdg.problem.transport import Transport

DIRECTIONS, PAIRS = 128, 2048  # of the sliced distance; points of the energy distance


def map_errors(computed: np.ndarray, true: np.ndarray, source: np.ndarray, variance: float) -> dict[str, float]:
    """Root mean square error over the vector, L²-UVP in percent, and the cosine between the displacements."""
    square = float(np.mean(np.sum((computed - true) ** 2, axis=1)))
    moved, should = computed - source, true - source
    lengths = float(np.sqrt(np.mean(np.sum(moved**2, axis=1)) * np.mean(np.sum(should**2, axis=1))))
    cosine = float(np.mean(np.sum(moved * should, axis=1))) / lengths if lengths > 0 else 1.0
    return {"map_l2": square**0.5, "uvp": 100 * square / variance, "cos": cosine}


def sliced_w2(first: np.ndarray, second: np.ndarray, seed: int = 0) -> float:
    """The root of the mean squared W₂ distance of one-dimensional projections of two samples of the same size."""
    directions = np.random.default_rng(seed).normal(size=(first.shape[1], DIRECTIONS))
    directions /= np.linalg.norm(directions, axis=0)
    gaps = np.sort(first @ directions, axis=0) - np.sort(second @ directions, axis=0)
    return float(np.sqrt(np.mean(gaps**2)))


def energy_distance(first: np.ndarray, second: np.ndarray) -> float:
    """√(2 E|X − Y| − E|X − X'| − E|Y − Y'|) of the empirical measures of some of the points; never negative."""
    from scipy.spatial.distance import cdist

    a, b = first[:PAIRS], second[:PAIRS]
    return float(np.sqrt(max(2 * cdist(a, b).mean() - cdist(a, a).mean() - cdist(b, b).mean(), 0.0)))


def mode_masses(points: np.ndarray, means: np.ndarray) -> np.ndarray:
    """The share of the points that is nearest to each mean."""
    from scipy.spatial import KDTree

    nearest = KDTree(means).query(points)[1]
    return np.bincount(nearest, minlength=len(means)) / len(points)


def monge_ampere(pair: Transport) -> Callable[..., Array] | None:
    """A function of φ, points and their images: the root mean square of log ρ₁(T) + log det ∇T − log ρ₀; None where a
    density is not known.

    Where T(x) minimises ½|x − y|² + φ(y), its derivative is (I + D²φ(T))⁻¹.
    """
    source, target, origin = pair.source, pair.target, jnp.zeros(pair.dim)
    if source.log_density(origin) is None or target.log_density(origin) is None:
        return None

    @jax.jit
    def residual(phi: Callable[[Array], Array], x: Array, pushed: Array) -> Array:
        def one(point: Array, reached: Array) -> Array:
            logdet = -jnp.linalg.slogdet(jnp.eye(point.size) + jax.hessian(phi)(reached))[1]
            ahead, behind = target.log_density(reached), source.log_density(point)
            assert ahead is not None
            assert behind is not None
            return ahead + logdet - behind

        return jnp.sqrt(jnp.mean(jax.vmap(one)(x, pushed) ** 2))

    return residual

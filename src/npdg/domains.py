"""Domains: uniform interior and boundary measures, normals, and a cut-off ζ that vanishes on the boundary."""

import abc
import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from npdg.errors import InputError
from npdg.measures import Measure, Points, boundary_points


class Domain(abc.ABC):
    """A bounded domain of R^dim. Hashable and immutable, so that a field may carry one as a constant."""

    dim: int

    @abc.abstractmethod
    def sample_interior(self, key: Array, n: int) -> Points:
        """n points uniform in the interior."""

    @abc.abstractmethod
    def sample_boundary(self, key: Array, n: int) -> Points:
        """n points uniform on the boundary, with their unit outward normals."""

    @abc.abstractmethod
    def cutoff(self, x: Array) -> Array:
        """ζ(x): zero on the boundary, positive inside, of the order of the distance to the boundary."""

    @abc.abstractmethod
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The corners of the smallest box around the domain."""

    @property
    @abc.abstractmethod
    def volume(self) -> float:
        """|Ω|."""

    @property
    @abc.abstractmethod
    def surface_ratio(self) -> float:
        """|∂Ω|/|Ω|, by which a mean over the boundary becomes one over the volume."""

    def spread(self, n: int) -> np.ndarray:
        """n points for a quadrature with equal weights; always the same."""
        return np.asarray(self.sample_interior(jax.random.key(0), n).x)

    @property
    def interior(self) -> Measure:
        """The uniform probability measure on the domain."""
        return Interior(self)

    @property
    def boundary(self) -> Measure:
        """The uniform probability measure on the boundary."""
        return Boundary(self)


@dataclass(frozen=True)
class Interior:
    """The uniform measure inside a domain."""

    domain: Domain

    def sample(self, key: Array, n: int) -> Points:
        return self.domain.sample_interior(key, n)


@dataclass(frozen=True)
class Boundary:
    """The uniform measure on the boundary of a domain."""

    domain: Domain

    def sample(self, key: Array, n: int) -> Points:
        return self.domain.sample_boundary(key, n)


@dataclass(frozen=True, init=False)
class Box(Domain):
    """The box [lower₁, upper₁] × … × [lower_d, upper_d]; numbers with `dim`, or one entry per coordinate."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]

    def __init__(self, lower: float | Sequence[float], upper: float | Sequence[float], dim: int | None = None):
        low, high = _corner("lower", lower, dim), _corner("upper", upper, dim)
        if len(low) != len(high):
            raise InputError(f"Box: lower has {len(low)} entries and upper {len(high)}; give as many of each.")
        if not all(a < b for a, b in zip(low, high, strict=True)):
            raise InputError(f"Box: every lower bound must be below its upper bound, got {lower} and {upper}.")
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)

    @property
    def dim(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.lower)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self.lower), np.array(self.upper)

    @property
    def volume(self) -> float:
        return math.prod(high - low for low, high in zip(self.lower, self.upper, strict=True))

    @property
    def surface_ratio(self) -> float:
        return 2 * sum(1 / (high - low) for low, high in zip(self.lower, self.upper, strict=True))

    def spread(self, n: int) -> np.ndarray:
        """Sobol's points, moved by half a step: in one dimension the midpoint rule, where n is a power of two."""
        from scipy.stats import qmc  # slow to import, and rarely needed

        unit = qmc.Sobol(self.dim, scramble=False).random(n) + 0.5 / n
        return np.array(self.lower) + (np.array(self.upper) - np.array(self.lower)) * unit

    def sample_interior(self, key: Array, n: int) -> Points:
        lower, upper = jnp.array(self.lower), jnp.array(self.upper)
        place = jax.vmap(lambda t: lower + (upper - lower) * t)
        return Points(place(jax.random.uniform(key, (n, self.dim))))

    def sample_boundary(self, key: Array, n: int) -> Points:
        """Faces in proportion to their area: one random shift spreads the n points evenly over them."""
        place, shift, turn = jax.random.split(key, 3)
        x = self.sample_interior(place, n).x
        # A face across coordinate k has area |Ω|/(upper_k − lower_k); each coordinate has two.
        area = np.repeat(1.0 / (np.array(self.upper) - np.array(self.lower)), 2)
        edges = jnp.array(np.cumsum(area) / np.sum(area))
        position = (jnp.arange(n) + jax.random.uniform(shift)) / n
        face = jnp.minimum(jnp.searchsorted(edges, position, side="right"), 2 * self.dim - 1)
        lower, upper = jnp.array(self.lower), jnp.array(self.upper)

        def onto_face(x: Array, face: Array) -> tuple[Array, Array]:
            axis = jax.nn.one_hot(face // 2, self.dim, dtype=x.dtype)
            wall, sign = jnp.where(face % 2 == 0, lower, upper), jnp.where(face % 2 == 0, -1.0, 1.0)
            return jnp.where(axis > 0, wall, x), sign * axis

        return boundary_points(turn, *jax.vmap(onto_face)(x, face))

    def cutoff(self, x: Array) -> Array:
        return jnp.min(jnp.minimum(x - jnp.array(self.lower), jnp.array(self.upper) - x))


@dataclass(frozen=True, init=False)
class Ball(Domain):
    """The ball of `radius` around `center` (the origin by default) in R^dim."""

    radius: float
    center: tuple[float, ...]

    def __init__(self, radius: float, dim: int | None = None, center: Sequence[float] | None = None):
        if not (math.isfinite(radius) and radius > 0):
            raise InputError(f"Ball: radius must be a positive number, got {radius}.")
        if center is None and dim is None:
            raise InputError("Ball: give dim, or the center with one entry per coordinate.")
        middle = _corner("center", 0.0 if center is None else center, dim)
        object.__setattr__(self, "radius", float(radius))
        object.__setattr__(self, "center", middle)

    @property
    def dim(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.center)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        center = np.array(self.center)
        return center - self.radius, center + self.radius

    @property
    def volume(self) -> float:
        return math.pi ** (self.dim / 2) / math.gamma(self.dim / 2 + 1) * self.radius**self.dim

    @property
    def surface_ratio(self) -> float:
        return self.dim / self.radius

    def sample_interior(self, key: Array, n: int) -> Points:
        direction, distance = jax.random.split(key)
        # P(|x| ≤ ρ) = (ρ/R)^d, hence ρ = R·U^{1/d}.
        rho = self.radius * jax.random.uniform(distance, (n,)) ** (1.0 / self.dim)
        return Points(self._at(rho, _unit_vectors(direction, n, self.dim)))

    def sample_boundary(self, key: Array, n: int) -> Points:
        place, turn = jax.random.split(key)
        normal = _unit_vectors(place, n, self.dim)
        return boundary_points(turn, self._at(jnp.full((n,), self.radius), normal), normal)

    def _at(self, rho: Array, direction: Array) -> Array:
        center = jnp.array(self.center)
        return jax.vmap(lambda r, e: center + r * e)(rho, direction)

    def cutoff(self, x: Array) -> Array:
        """(R² − |x|²)/2R: the distance to the sphere to first order, and smooth at the centre."""
        offset = x - jnp.array(self.center)
        return (self.radius**2 - jnp.vdot(offset, offset)) / (2 * self.radius)


def _unit_vectors(key: Array, n: int, dim: int) -> Array:
    gauss = jax.random.normal(key, (n, dim))
    return gauss / jnp.linalg.norm(gauss, axis=1, keepdims=True)


def _corner(name: str, value: float | Sequence[float], dim: int | None) -> tuple[float, ...]:
    entries = np.atleast_1d(np.asarray(value, dtype=float))
    if dim is not None:
        if isinstance(dim, bool) or not isinstance(dim, (int, np.integer)) or dim < 1:
            raise InputError(f"dim: {dim!r} is not allowed; give a whole number of at least 1.")
        if entries.size not in (1, dim):
            raise InputError(f"{name}: {entries.size} entries for dim {dim}; give one number or {dim} of them.")
        entries = np.broadcast_to(entries, (dim,))
    if entries.ndim != 1 or not np.all(np.isfinite(entries)):
        raise InputError(f"{name}: {value!r} is not allowed; give finite numbers, one per coordinate.")
    return tuple(float(entry) for entry in entries)

"""What every domain has: uniform interior and boundary measures, normals, a cut-off ζ that vanishes on the boundary."""

import abc
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np
from jax import Array

from npdg.errors import InputError
from npdg.measures.points import Measure, Points


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


def entries(name: str, value: float | Sequence[float], dim: int | None) -> tuple[float, ...]:
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

"""A transport problem: two measures, and the true map between them where it is known."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import jax
import numpy as np

from npdg.errors import InputError
from npdg.measures.empirical import Empirical
from npdg.measures.points import Distribution
from npdg.problem.base import Origin

Map = Callable[[np.ndarray], np.ndarray]
KnownMap = Callable[[int], tuple[np.ndarray, np.ndarray]]  # how many: points of the source and where they are carried


class Transport:
    """The optimal transport of one measure to another.

    Arguments:
        source, target: each a distribution, or an array of samples `(n, d)`.
        true_map: the optimal map, if known, as a function of points `(n, d)`.
        truth: a map that is known at certain points only.
        name, options: recorded with a run.
        origin: set by the catalogue for its own problems.
    """

    kind: ClassVar[str] = "transport"
    written: ClassVar[str] = "the map T that carries ρ₀ to ρ₁ at the least cost E₀|x − T(x)|²/2"

    def __init__(
        self,
        source: Any,
        target: Any,
        true_map: Map | None = None,
        *,
        truth: KnownMap | None = None,
        name: str = "transport",
        options: Mapping[str, Any] | None = None,
        origin: Origin | None = None,
    ):
        self.source, self.target = _measure("source", source), _measure("target", target)
        if self.source.dim != self.target.dim:
            raise InputError(
                f"target: dimension {self.target.dim} is not that of the source, {self.source.dim}; give equal ones."
            )
        self.truth = _at_samples(self.source, true_map) if truth is None and true_map is not None else truth
        self.name, self.options, self.origin = name, dict(options or {}), origin

    @property
    def dim(self) -> int:
        return self.source.dim

    @property
    def variance(self) -> float:
        """The variance of the target, which L²-UVP is relative to."""
        return float(np.trace(self.target.covariance))

    def from_catalogue(self, origin: Origin) -> "Transport":
        """The same, known to be the catalogue's."""
        return self._copy(origin=origin)

    def named(self, name: str) -> "Transport":
        """The same problem under another name."""
        return self._copy(name=name)

    def _copy(self, **changes: Any) -> "Transport":
        kept = {"truth": self.truth, "name": self.name, "options": self.options, "origin": self.origin}
        return Transport(self.source, self.target, **{**kept, **changes})


Pair = Transport  # its name in earlier versions


def _at_samples(source: Distribution, true_map: Map) -> KnownMap:
    def truth(n: int) -> tuple[np.ndarray, np.ndarray]:
        x = np.asarray(source.sample(jax.random.key(99), n).x)
        return x, np.asarray(true_map(x))

    return truth


def _measure(name: str, given: Any) -> Distribution:
    if hasattr(given, "sample") and hasattr(given, "covariance"):
        return given
    return Empirical(given, name)

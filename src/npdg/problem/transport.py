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
LARGEST = 1e100  # Numbers beyond this have squares that overflow in sums of products.
FARTHEST = 1e10  # Spreads between a measure and zero that leave six digits of a point.
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
    known = hasattr(given, "sample") and hasattr(given, "covariance")
    measure = given if known else Empirical(given, name)
    _check_size(name, measure)
    return measure


def _check_size(name: str, measure: Distribution) -> None:
    """Refuse numbers whose squares, or whose differences, double precision does not hold."""
    mean, covariance = np.asarray(measure.mean), np.asarray(measure.covariance)
    distance = float(np.max(np.abs(mean)))
    if not (np.all(np.isfinite(covariance)) and np.trace(covariance) < LARGEST**2 and distance < LARGEST):
        raise InputError(f"{name}: its numbers are above {LARGEST:.0e}; measure them in a larger unit.")
    spread = float(np.sqrt(np.max(np.diag(covariance))))
    if spread == 0 and isinstance(measure, Empirical):  # of points that are equal, or of squares that vanish
        spread = float(np.max(np.ptp(measure.points, axis=0)))
    if 0 < spread < 1 / LARGEST:
        raise InputError(f"{name}: its spread is {spread:.0e}; measure it in a smaller unit.")
    if 0 < spread < distance / FARTHEST:
        raise InputError(
            f"{name}: its mean is {distance / spread:.0e} times farther from zero than it is wide, which leaves few "
            "digits of what is moved; subtract its mean."
        )

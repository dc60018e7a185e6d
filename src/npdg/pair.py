"""A transport problem: two measures, and the true map between them where it is known."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from npdg.distributions import Distribution, Samples
from npdg.errors import InputError

Map = Callable[[np.ndarray], np.ndarray]
Truth = Callable[[int], tuple[np.ndarray, np.ndarray]]  # how many: points of the source and where they are carried


class Pair:
    """From `source` to `target`, each a distribution or an array of samples `(n, d)`.

    `true_map` takes points `(n, d)`; a map that is known at certain points only is given as a `truth` instead.
    """

    def __init__(
        self,
        source: Any,
        target: Any,
        true_map: Map | None = None,
        *,
        truth: Truth | None = None,
        name: str = "transport",
        options: Mapping[str, Any] | None = None,
    ):
        self.source, self.target = _measure("source", source), _measure("target", target)
        if self.source.dim != self.target.dim:
            raise InputError(
                f"target: dimension {self.target.dim} is not that of the source, {self.source.dim}; give equal ones."
            )
        self.truth = _at_samples(self.source, true_map) if truth is None and true_map is not None else truth
        self.name, self.options = name, dict(options or {})

    @property
    def dim(self) -> int:
        return self.source.dim

    @property
    def variance(self) -> float:
        """Of the target: what L²-UVP is relative to."""
        return float(np.trace(self.target.covariance))

    def named(self, name: str) -> "Pair":
        """The same problem under another name."""
        return Pair(self.source, self.target, truth=self.truth, name=name, options=self.options)


def _at_samples(source: Distribution, true_map: Map) -> Truth:
    def truth(n: int) -> tuple[np.ndarray, np.ndarray]:
        x = np.asarray(source.sample(jax.random.key(99), n).x)
        return x, np.asarray(true_map(x))

    return truth


def _measure(name: str, given: Any) -> Distribution:
    if hasattr(given, "sample") and hasattr(given, "covariance"):
        return given
    return Samples(given, name)

"""The coordinates in which a map is trained: nothing else in a transport run knows how large its numbers are.

With x = a + s·x̃ for the source and y = b + s·ỹ for the target, T(x) = b + s·T̃(x̃) and φ(y) = s²·φ̃(ỹ) + (a − b)·y are the
optimal map and potential if T̃ and φ̃ are, and ∇T is ∇T̃.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from npdg.measures.empirical import Empirical
from npdg.measures.points import Distribution, Points
from npdg.problem.transport import Transport

BASE = 8.0  # the scale is a power of it, by which numbers are multiplied without rounding


@dataclass(frozen=True)
class Units:
    """Lengths are measured in `scale`, from `source` for points of the source and from `target` for the others."""

    scale: float
    source: np.ndarray
    target: np.ndarray

    @classmethod
    def of(cls, pair: Transport, *, translate: bool) -> "Units":
        """Such that spreads are about 1 and means 0; that of the target only if it may be moved by itself."""
        variance = np.trace(pair.source.covariance + pair.target.covariance) / (2 * pair.dim)
        power = round(float(np.log(variance)) / (2 * float(np.log(BASE)))) if variance > 0 else 0
        return cls(BASE**power, pair.source.mean, pair.target.mean if translate else pair.source.mean)

    def inside(self, pair: Transport) -> Transport:
        """The problem in these coordinates, without its truth."""
        source = _moved(pair.source, self.source, self.scale)
        return Transport(source, _moved(pair.target, self.target, self.scale), name=pair.name, options=pair.options)


class Moved:
    """A measure in other coordinates: that of (x − centre)/scale."""

    def __init__(self, measure: Distribution, centre: np.ndarray, scale: float):
        self.measure, self.centre, self.scale, self.dim = measure, centre, scale, measure.dim
        self.mean, self.covariance = (measure.mean - centre) / scale, measure.covariance / scale**2

    def sample(self, key: Array, n: int) -> Points:
        centre = jnp.asarray(self.centre)
        return Points(jax.vmap(lambda x: (x - centre) / self.scale)(self.measure.sample(key, n).x))

    def log_density(self, x: Array) -> Array | None:
        found = self.measure.log_density(jnp.asarray(self.centre) + self.scale * x)
        return None if found is None else found + self.dim * float(np.log(self.scale))


def _moved(measure: Distribution, centre: np.ndarray, scale: float) -> Distribution:
    if scale == 1 and not np.any(centre):
        return measure
    if isinstance(measure, Empirical):  # before they are rounded to float32
        return Empirical((measure.given - centre) / scale)
    return Moved(measure, centre, scale)

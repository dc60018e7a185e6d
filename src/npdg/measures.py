"""Measures one can sample: what an expectation is taken over."""

from typing import Protocol

import equinox as eqx
from jax import Array


class Points(eqx.Module):
    """Sample points `x (n, d)` and, on a boundary, the unit outward normals; one point after `vmap`."""

    x: Array
    normal: Array | None = None


class Measure(Protocol):
    """A probability measure: `sample(key, n)` gives n independent points."""

    def sample(self, key: Array, n: int) -> Points: ...

"""Importance sampling: points where a density is large."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array, lax

from npdg.measures.points import Measure, Points

BATCH = 1024  # Candidates whose densities are computed at once.


@dataclass(frozen=True)
class ImportanceSampled:
    """Points of `measure`, a share of which is where a density is large, for each of several.

    Arguments:
        measure: where the points come from.
        densities: a function of one point that gives their values, one for each share.
        shares: the part of the points that each density chooses; the rest are as they come.
        tries: candidates for each point that is asked for, among which a density chooses by a draw with probabilities
            proportional to it.
    """

    measure: Measure
    densities: Callable[[Points], Array]
    shares: Sequence[float] = (1.0,)
    tries: int = 20

    def sample(self, key: Array, n: int) -> Points:
        if n == 0:
            return self.measure.sample(key, 0)
        draw, choose = jax.random.split(key)
        batches = -(-self.tries * n // BATCH)
        count = batches * BATCH if batches > 1 else self.tries * n  # a whole number of batches, for one program
        candidates = self.measure.sample(draw, count)
        densities = lax.map(self.densities, candidates, batch_size=min(count, BATCH)).reshape(count, -1)
        ends = [round(n * sum(self.shares[: k + 1])) for k in range(len(self.shares))]
        sizes = [end - begin for begin, end in zip([0, *ends[:-1]], ends, strict=True)]
        # The largest of log density + Gumbel's noise are a draw without replacement.
        known = jnp.where(densities > 0, densities, jnp.finfo(densities.dtype).tiny)  # also for one that is not finite
        scores = jnp.log(known) + jax.random.gumbel(choose, known.shape, known.dtype)
        chosen = [lax.top_k(scores[:, k], size)[1] for k, size in enumerate(sizes)]
        places = jnp.concatenate([jnp.arange(n - ends[-1]), *chosen])
        return jax.tree.map(lambda leaf: leaf[places], candidates)

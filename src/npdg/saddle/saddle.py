"""The noun in the middle: every problem lowers to a `Saddle`, every method is a rule per player.

One functional L of the players' fields is a combination of integrals over named measures. Players with
sense −1 descend, players with sense +1 ascend. Each carries a metric: the features whose Jacobian with
respect to its parameters makes its Gram matrix.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from npdg.fields.base import Field
from npdg.measures.points import Measure, Points

Fields = Mapping[str, Field]
Batch = Mapping[str, Points]
OnePoint = Callable[[Fields, Points], Array]


@dataclass(frozen=True)
class Integral:
    """weight · E[integrand(fields, point)] over the measure named `over`.

    `seen_by` restricts whose gradient it enters: two unbiased integrands of the same integral may serve
    different players (the strong pairing for φ, the weak one for u).
    """

    name: str
    over: str
    integrand: OnePoint
    weight: float = 1.0
    seen_by: tuple[str, ...] | None = None

    def mean(self, fields: Fields, samples: Batch) -> Float[Array, ""]:
        """The weighted sample mean."""
        values = jax.vmap(lambda point: self.integrand(fields, point))(samples[self.over])
        return self.weight * jnp.mean(values)


@dataclass(frozen=True)
class Feature:
    """One block of a metric: weight · E[|∂ feature · v|²] over the measure named `over`."""

    over: str
    feature: OnePoint
    weight: float = 1.0

    def scaled(self, fields: Fields, samples: Batch) -> Float[Array, "n features"]:
        """The features at all samples, scaled so that their squared length is the weighted mean."""
        values = jax.vmap(lambda point: self.feature(fields, point))(samples[self.over])
        return values * self._scale(samples)

    def jacobian(
        self, fields_at: Callable[[Array], Fields], vector: Float[Array, " p"], samples: Batch
    ) -> Float[Array, "rows p"]:
        """The derivatives of the scaled features by the parameters `vector`, one row a feature."""
        one = jax.jacrev(lambda v, point: self.feature(fields_at(v), point))
        blocks = jax.vmap(lambda point: one(vector, point))(samples[self.over])
        return jnp.reshape(blocks, (-1, vector.size)) * self._scale(samples)

    def _scale(self, samples: Batch) -> float:
        return (self.weight / samples[self.over].x.shape[0]) ** 0.5


@dataclass(frozen=True)
class Player:
    """Who moves: a field's name, its sense (−1 descends, +1 ascends) and its metric.

    A player with `fresh` carries no field of its own: every step starts it anew from the others' fields.
    """

    name: str
    sense: int
    metric: tuple[Feature, ...]
    fresh: Callable[[Fields], Field] | None = None


def total(terms: Mapping[str, Float[Array, ""]]) -> Float[Array, ""]:
    """The plain sum: how integrals combine unless a formulation says otherwise."""
    return jnp.sum(jnp.stack(list(terms.values())))


@dataclass(frozen=True)
class Residual:
    """Which integral tells how far a problem is from being solved: √|scale · integral| is a root mean square."""

    integral: str
    scale: float = 1.0

    def of(self, terms: Mapping[str, float]) -> float:
        """The root mean square residual that the terms of a step report."""
        return abs(self.scale * terms[self.integral]) ** 0.5


@dataclass(frozen=True)
class Saddle:
    """inf over the descending players, sup over the ascending ones, of `combine` of the integrals.

    `residual` names the integral by which progress is seen, if there is one. `given` are functions of a point that are
    data of the problem, by name, each with the measure it is read on: a fault is traced to them.
    """

    measures: Mapping[str, Measure]
    players: tuple[Player, ...]
    integrals: tuple[Integral, ...]
    combine: Callable[[Mapping[str, Array]], Array] = total
    residual: Residual | None = None
    given: Mapping[str, tuple[str, OnePoint]] = field(default_factory=dict)

    def sample(self, key: Array, sizes: Mapping[str, int]) -> Batch:
        """Fresh points of every measure, as many as `sizes` says."""
        keys = jax.random.split(key, len(self.measures))
        return {
            name: measure.sample(k, sizes[name])
            for k, (name, measure) in zip(keys, sorted(self.measures.items()), strict=True)
        }

    def terms(self, fields: Fields, samples: Batch, player: str | None = None) -> dict[str, Array]:
        """The integrals by name: all of them, or those that one player sees."""
        seen = (i for i in self.integrals if player is None or i.seen_by is None or player in i.seen_by)
        return {integral.name: integral.mean(fields, samples) for integral in seen}

    def value(self, fields: Fields, samples: Batch, player: str) -> Float[Array, ""]:
        """L as one player sees it."""
        return self.combine(self.terms(fields, samples, player))

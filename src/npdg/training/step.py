"""One step of the method: what it needs, what it carries, and what it reports."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from npdg.compilation import jit
from npdg.fields.base import Field, split
from npdg.fields.wrappers import Extrapolated
from npdg.rules.base import Move, Rule, View
from npdg.saddle.gram import gram
from npdg.saddle.saddle import Batch, Fields, Player, Saddle, total

Data = Mapping[str, Any]  # arrays and fields that the equation is made of, and that nothing trains


@dataclass(frozen=True)
class Recipe:
    """All that training needs: the saddle, starting fields, a rule per player, batch sizes, extrapolation ω.

    `lower(data)` is the saddle of a problem whose data are carried in the state, so that nothing is compiled anew when
    they change; `data` are those at the start. With `resample` off, every step sees the same samples. `repeats`: how
    often a player moves in a step, if not once.
    """

    lower: Callable[[Data], Saddle]
    start: Callable[[Array], Fields]
    rules: Mapping[str, Rule]
    sizes: Mapping[str, int]
    omega: float = 0.0
    resample: bool = True
    repeats: Mapping[str, int] = field(default_factory=dict)
    data: Data = field(default_factory=dict)


class State(eqx.Module):
    """What is carried from step to step; the samples of step n come from fold_in(key, n), or always n = 0."""

    fields: dict[str, Field]
    rules: dict[str, Any]
    key: Array
    step: Array
    data: dict[str, Any] = eqx.field(default_factory=dict)


class Info(NamedTuple):
    """What a step reports and never reads: the terms of L by name, how each player moved, and whether what the step
    was given (samples, source, boundary data) was finite."""

    terms: dict[str, Array]
    moves: dict[str, Move]
    sound: dict[str, Array]


def initial(recipe: Recipe, seed: int) -> State:
    """The state before the first step."""
    start, key = jax.random.split(jax.random.key(seed))
    fields = dict(jit(recipe.start)(start))
    rules = {name: recipe.rules[name].init(f) for name, f in fields.items() if name in recipe.rules}
    # Types that do not depend on how a number was made, so that a state read from a file compiles to the same program.
    strong = jax.tree.map(lambda leaf: lax.convert_element_type(leaf, np.dtype(leaf.dtype)), rules)
    return State(fields, strong, key, jnp.zeros((), int), dict(recipe.data))


def step(recipe: Recipe, state: State) -> tuple[State, Info]:
    """One NPDG step (Algorithm 2): the duals ascend, are extrapolated, then the primal player descends."""
    saddle = recipe.lower(state.data)
    samples = saddle.sample(jax.random.fold_in(state.key, state.step if recipe.resample else 0), recipe.sizes)
    turn = _Turn(recipe, saddle, samples, dict(state.rules))
    # All duals read the old fields, so that their order does not matter.
    old = with_fresh(saddle, state.fields)
    duals = {p.name: turn.moves_of(p, old) for p in saddle.players if p.sense > 0}
    ahead = {name: _ahead(new, old[name], recipe.omega) for name, new in duals.items()}
    for player in saddle.players:
        if player.fresh:  # it started at zero: what its terms say, they say where it has arrived
            turn.terms.update(saddle.terms({**old, **duals}, samples, player.name))
    supremum = lambda: total({name: saddle.value({**old, **duals}, samples, name) for name in duals})
    primals = {p.name: turn.moves_of(p, {**old, **ahead}, supremum) for p in saddle.players if p.sense < 0}
    for integral in saddle.integrals:
        if integral.seen_by == ():  # which nobody moves by, and which is only reported
            turn.terms[integral.name] = integral.mean(old, samples)
    moved = {name: field for name, field in {**old, **duals, **primals}.items() if name in state.fields}
    new = State(moved, turn.rules, state.key, state.step + 1, state.data)
    return new, Info(turn.terms, turn.moves, _sound(saddle, state.fields, samples))


def with_fresh(saddle: Saddle, fields: Fields) -> dict[str, Field]:
    """The fields, and those of the players that every step starts anew."""
    return {**fields, **{p.name: p.fresh(fields) for p in saddle.players if p.fresh}}


@dataclass
class _Turn:
    """The moves of the players in one step, and what they report."""

    recipe: Recipe
    saddle: Saddle
    samples: Batch
    rules: dict[str, Any]
    moves: dict[str, Move] = field(default_factory=dict)
    terms: dict[str, Array] = field(default_factory=dict)

    def moves_of(self, player: Player, fields: Fields, supremum: Callable[[], Array] | None = None) -> Field:
        """The player's field after as many moves as it has in a step."""
        for _ in range(self.recipe.repeats.get(player.name, 1)):
            fields = {**fields, player.name: self._move(player, fields, supremum)}
        return fields[player.name]

    def _move(self, player: Player, fields: Fields, supremum: Callable[[], Array] | None) -> Field:
        vector, build = split(fields[player.name])

        def seen(v: Array) -> tuple[Array, dict[str, Array]]:
            values = self.saddle.terms({**fields, player.name: build(v)}, self.samples, player.name)
            return self.saddle.combine(values), values

        rule = self.recipe.rules[player.name]
        gradient, values = jax.grad(seen, has_aux=True)(vector) if rule.sees_gradient else (None, seen(vector)[1])
        self.terms.update({name: value for name, value in values.items() if name not in self.terms})
        view = View(
            fields[player.name],
            cast(Array, gradient),
            player.sense,
            value=lambda field: self.saddle.value({**fields, player.name: field}, self.samples, player.name),
            gram=partial(gram, player, fields, self.samples),
            supremum=supremum,
        )
        rule_state = self.rules.get(player.name)
        moved, rule_state, self.moves[player.name] = rule.step(view, rule_state)
        if player.name in self.rules:
            self.rules[player.name] = rule_state
        return moved


def _ahead(new: Field, old: Field, omega: float) -> Field:
    return new if omega == 0 else Extrapolated(new, old, omega)


def _sound(saddle: Saddle, fields: Fields, samples: Batch) -> dict[str, Array]:
    """By name, whether the samples and the data of the problem on them are finite."""
    named = {f"a sample of the {name}": points for name, points in samples.items()}
    given = {
        name: jax.vmap(lambda point, function=function: function(fields, point))(samples[over])
        for name, (over, function) in saddle.given.items()
        if over in samples
    }
    return {name: finite(values) for name, values in {**named, **given}.items()}


def finite(tree: Any) -> Array:
    """Whether every number of a tree is finite."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    return jnp.all(jnp.asarray([jnp.all(jnp.isfinite(leaf)) for leaf in leaves], bool))

"""The one training loop, and the only place that compiles a step.

One `jit` holds as many steps as the host asks for; between such chunks the host keeps the clock, evaluates,
calls back, and looks whether to stop. A step whose result is not finite is not taken.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from npdg.directions import View
from npdg.fields import Extrapolated, Field, split
from npdg.gram import gram
from npdg.krylov import Status
from npdg.rules import Move, Rule
from npdg.saddle import Fields, OnePoint, Player, Saddle, Samples, total

CAPACITY = 256  # steps that one chunk may report


@dataclass(frozen=True)
class Recipe:
    """All that a run needs: the saddle, starting fields, a rule per player, batch sizes, extrapolation ω.

    With `resample` off, every step sees the same samples. `repeats`: how often a player moves in a step, if not once.
    `given`: functions of a point that are data of the problem, by name, each with the measure it is read on; a fault
    is traced to them.
    """

    saddle: Saddle
    start: Callable[[Array], Fields]
    rules: Mapping[str, Rule]
    sizes: Mapping[str, int]
    omega: float = 0.0
    resample: bool = True
    repeats: Mapping[str, int] = field(default_factory=dict)
    given: Mapping[str, tuple[str, OnePoint]] = field(default_factory=dict)


class State(eqx.Module):
    """What is carried from step to step; the samples of step n come from fold_in(key, n), or always n = 0.

    A field that is no player is data that integrands read.
    """

    fields: dict[str, Field]
    rules: dict[str, Any]
    key: Array
    step: Array


class Info(NamedTuple):
    """What a step reports and never reads: the terms of L by name, how each player moved, and whether what the step
    was given (samples, source, boundary data) was finite."""

    terms: dict[str, Array]
    moves: dict[str, Move]
    sound: dict[str, Array]


def initial(recipe: Recipe, seed: int) -> State:
    """The state before the first step."""
    start, key = jax.random.split(jax.random.key(seed))
    fields = dict(recipe.start(start))
    rules = {name: recipe.rules[name].init(f) for name, f in fields.items() if name in recipe.rules}
    # Types that do not depend on how a number was made, so that a state read from a file compiles to the same program.
    strong = jax.tree.map(lambda leaf: lax.convert_element_type(leaf, np.dtype(leaf.dtype)), rules)
    return State(fields, strong, key, jnp.zeros((), int))


def step(recipe: Recipe, state: State) -> tuple[State, Info]:
    """One NPDG step (Algorithm 2): the duals ascend, are extrapolated, then the primal player descends."""
    saddle = recipe.saddle
    samples = saddle.sample(jax.random.fold_in(state.key, state.step if recipe.resample else 0), recipe.sizes)
    rules, moves, terms = dict(state.rules), {}, {}

    def moves_of(player: Player, fields: Fields, supremum: Callable[[], Array] | None = None) -> Field:
        for _ in range(recipe.repeats.get(player.name, 1)):
            fields = {**fields, player.name: move(player, fields, supremum)}
        return fields[player.name]

    def move(player: Player, fields: Fields, supremum: Callable[[], Array] | None) -> Field:
        vector, build = split(fields[player.name])

        def seen(v: Array) -> tuple[Array, dict[str, Array]]:
            values = saddle.terms({**fields, player.name: build(v)}, samples, player.name)
            return saddle.combine(values), values

        gradient, values = jax.grad(seen, has_aux=True)(vector)
        terms.update({name: value for name, value in values.items() if name not in terms})
        view = View(
            fields[player.name],
            gradient,
            player.sense,
            value=lambda field: saddle.value({**fields, player.name: field}, samples, player.name),
            gram=lambda: gram(player, fields, samples),
            supremum=supremum,
        )
        rule_state = rules.get(player.name)
        moved, rule_state, moves[player.name] = recipe.rules[player.name].step(view, rule_state)
        if player.name in rules:
            rules[player.name] = rule_state
        return moved

    # All duals read the old fields, so that their order does not matter.
    old = {**state.fields, **{p.name: p.fresh(state.fields) for p in saddle.players if p.fresh}}
    duals = {p.name: moves_of(p, old) for p in saddle.players if p.sense > 0}
    ahead = {name: _ahead(new, old[name], recipe.omega) for name, new in duals.items()}
    for player in saddle.players:
        if player.fresh:  # it started at zero: what its terms say, they say where it has arrived
            terms.update(saddle.terms({**old, **duals}, samples, player.name))
    supremum = lambda: total({name: saddle.value({**old, **duals}, samples, name) for name in duals})
    primals = {p.name: moves_of(p, {**old, **ahead}, supremum) for p in saddle.players if p.sense < 0}
    moved = {name: field for name, field in {**old, **duals, **primals}.items() if name in state.fields}
    return State(moved, rules, state.key, state.step + 1), Info(terms, moves, _sound(recipe, state.fields, samples))


def _sound(recipe: Recipe, fields: Fields, samples: Samples) -> dict[str, Array]:
    """By name, whether the samples and the data of the problem on them are finite."""
    given = {
        name: jax.vmap(lambda point, function=function: function(fields, point))(samples[over])
        for name, (over, function) in recipe.given.items()
        if over in samples
    }
    return {name: _finite(values) for name, values in {**_named(samples), **given}.items()}


def _named(samples: Samples) -> dict[str, Any]:
    return {f"a sample of the {name}": points for name, points in samples.items()}


def _ahead(new: Field, old: Field, omega: float) -> Field:
    return new if omega == 0 else Extrapolated(new, old, omega)


Program = Callable[[State, int], tuple[State, Info, Array]]  # some steps, compiled


class Record(NamedTuple):
    """One line of a run's history: a step, the training seconds so far, its reports, and errors if measured."""

    step: int
    seconds: float
    terms: dict[str, float]
    iterations: dict[str, int]
    residuals: dict[str, float]
    errors: dict[str, float]


@dataclass
class Outcome:
    """How a run ended: the last finite state, its history, and why it stopped."""

    state: State
    stop_reason: str
    detail: str = ""
    seconds: float = 0.0
    compile_seconds: float = 0.0
    history: list[Record] = field(default_factory=list)
    program: Program | None = None
    rollbacks: int = 0


def run(
    recipe: Recipe,
    state: State,
    *,
    seconds: float | None = None,
    steps: int | None = None,
    spent: float = 0.0,
    program: Program | None = None,
    evaluate: Callable[[State], dict[str, float]] = lambda state: {},
    on_compiled: Callable[[float], None] = lambda seconds: None,
    on_record: Callable[[Record], None] = lambda record: None,
    should_stop: Callable[[], str | None] = lambda: None,
    enough: Callable[[Sequence[Record]], str | None] = lambda history: None,
    on_state: Callable[[Outcome], None] = lambda outcome: None,
    chunk_seconds: float = 1.0,
    chunk_steps: int | None = None,
) -> Outcome:
    """Run until the training seconds or steps are used up, `should_stop` or `enough` (which sees the history) gives a
    reason, a player is stuck, or it diverges. A chunk is `chunk_steps`, or as many as take `chunk_seconds`; after each,
    `on_state` gets what has come out so far.

    Compilation and `evaluate` are not counted as training seconds. A run is continued by handing over its state, the
    seconds `spent` so far, and its `program`, which is not compiled again.
    """
    began = time.perf_counter()
    chunk = _compile(recipe, state) if program is None else program
    compiled = time.perf_counter() - began if program is None else 0.0
    outcome = Outcome(state, "steps", seconds=spent, compile_seconds=compiled, program=chunk)
    on_compiled(outcome.compile_seconds)
    per_step = None
    while True:
        taken = int(outcome.state.step)
        left = seconds - outcome.seconds if seconds is not None else np.inf
        reason = should_stop() or enough(outcome.history) or _spent(taken, steps, left, per_step)
        if reason:
            outcome.stop_reason = reason
            return outcome
        if per_step is None:
            count = chunk_steps or 1
        else:
            chunk_length = chunk_seconds if chunk_steps is None else chunk_steps * per_step
            count = int(np.clip(round(min(chunk_length, left) / per_step, 6), 1, CAPACITY))
        count = count if steps is None else min(count, steps - taken)
        began = time.perf_counter()
        new_state, infos, finite = jax.block_until_ready(chunk(outcome.state, count))
        spent = time.perf_counter() - began
        infos = jax.tree.map(np.asarray, infos)  # indexing arrays of jax would compile
        outcome.state = new_state
        done = int(new_state.step) - taken
        per_step = spent / max(done, 1)
        records = _records(infos, done if bool(finite) else done + 1, taken, outcome.seconds, per_step)
        outcome.seconds += spent
        if not bool(finite):
            outcome.history += records[:-1]
            outcome.stop_reason, outcome.detail = "diverged", _blame(infos, done, taken + done + 1)
            return outcome
        records[-1] = records[-1]._replace(errors=evaluate(outcome.state))
        outcome.history += records
        on_record(records[-1])
        on_state(outcome)
        if stuck := [name for name, move in infos.moves.items() if bool(move.stuck[done - 1])]:
            outcome.stop_reason, outcome.detail = "stalled", _lament(infos, stuck[0], done - 1, taken + done)
            return outcome


def _spent(taken: int, steps: int | None, left: float, per_step: float | None) -> str | None:
    if steps is not None and taken >= steps:
        return "steps"
    # A step that would end past the budget by more than half its length is not begun.
    if left <= 0 or (per_step is not None and left < per_step / 2):
        return "seconds"
    return None


def _compile(recipe: Recipe, state: State) -> Program:
    """One executable for any number of steps up to CAPACITY."""

    def chunk(state: State, count: Array) -> tuple[State, Info, Array]:
        _, shape = jax.eval_shape(lambda s: step(recipe, s), state)
        reports = jax.tree.map(lambda leaf: jnp.zeros((CAPACITY, *leaf.shape), leaf.dtype), shape)

        def body(carry):
            i, state, reports, *_ = carry
            new, info = step(recipe, state)
            # A player that carries a field answers for it: a rule that took a bad step back reports that it is well.
            finite = _finite(new.fields) & _finite([info.moves[name] for name in new.rules])
            finite &= jnp.all(jnp.stack(list(info.sound.values())))
            kept = jax.tree.map(lambda a, b: jnp.where(finite, a, b), _without_key(new), _without_key(state))
            reports = jax.tree.map(lambda buffer, leaf: buffer.at[i].set(leaf), reports, info)
            stuck = jnp.any(jnp.stack([move.stuck for move in info.moves.values()]))
            return i + 1, eqx.tree_at(lambda s: s.key, kept, state.key, is_leaf=_is_none), reports, finite, stuck

        start = (jnp.zeros((), int), state, reports, jnp.ones((), bool), jnp.zeros((), bool))
        _, state, reports, finite, _ = lax.while_loop(lambda c: (c[0] < count) & c[3] & ~c[4], body, start)
        return state, reports, finite

    return jax.jit(chunk).lower(state, 1).compile()


def _is_none(leaf: Any) -> bool:
    return leaf is None


def _without_key(state: State) -> State:
    return eqx.tree_at(lambda s: s.key, state, None)


def _finite(tree: Any) -> Array:
    leaves = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    return jnp.all(jnp.asarray([jnp.all(jnp.isfinite(leaf)) for leaf in leaves], bool))


def _records(infos: Info, count: int, taken: int, seconds: float, per_step: float) -> list[Record]:
    return [
        Record(
            step=taken + k + 1,
            seconds=seconds + (k + 1) * per_step,
            terms={name: float(values[k]) for name, values in infos.terms.items()},
            iterations={name: int(move.iterations[k]) for name, move in infos.moves.items()},
            residuals={name: float(move.residual[k]) for name, move in infos.moves.items()},
            errors={},
        )
        for k in range(count)
    ]


def _lament(infos: Info, name: str, k: int, at: int) -> str:
    return f"{name} finds no lower value from step {at} on, where its gradient is {infos.moves[name].gradient[k]:.1e}"


def _blame(infos: Info, k: int, at: int) -> str:
    """Name what was not finite first, in the order in which a step computes."""
    bad = [name for name, sound in infos.sound.items() if not sound[k]]
    bad += [f"the term '{name}' of the functional" for name, v in infos.terms.items() if not np.isfinite(v[k])]
    for name, move in infos.moves.items():
        product = np.isfinite(move.gradient[k]) and int(move.status[k]) == Status.NOT_FINITE
        for what, found in (
            (f"the gradient for {name}", not np.isfinite(move.gradient[k])),
            (f"a Gram product of {name}", product),
            (f"the Gram solve of {name}", not np.isfinite(move.residual[k])),
            (f"the update of {name}", not np.isfinite(move.update[k])),
        ):
            if found:
                bad.append(what)
    return f"{bad[0] if bad else 'a parameter'} was not finite in step {at}; the state before it is kept"

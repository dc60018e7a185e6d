"""The one training loop, and the only place that compiles a step.

One `jit` holds as many steps as the host asks for; between such chunks the host keeps the clock, evaluates,
calls back, and looks whether to stop. A step whose result is not finite is not taken.
"""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from npdg.compilation import jit
from npdg.linalg.result import Status
from npdg.training.clock import Clock
from npdg.training.progress import Evaluate, Events, Limits, Program, Progress
from npdg.training.records import Record
from npdg.training.step import Info, Recipe, State, finite, step
from npdg.training.stopping import StopReason, asked_to_stop

CAPACITY = 256  # Steps that one chunk can report.
CHUNK_SECONDS = 1.0  # Seconds of a chunk, after which the host has a look.


def advance(
    progress: Progress,
    limits: Limits,
    events: Events,
    *,
    stage: str = "",
    evaluate: Evaluate = lambda state: {},
    clock: Clock = Clock(),  # noqa: B008 (it has no state)
) -> Progress:
    """Go on until the limits are reached, somebody asks to stop, a player is stuck, or a step is not finite.

    Compilation and `evaluate` are not counted as training seconds. A program that is there is not compiled again.
    """
    progress = replace(progress, stop=None)
    if progress.program is None:
        program, seconds = clock.timed(lambda: _compile(progress.recipe, progress.state))
        progress = replace(progress, program=program, compile_seconds=progress.compile_seconds + seconds)
    events.on_compiled(progress.compile_seconds)
    per_step = None
    while True:
        stop = asked_to_stop(events.should_stop()) or limits.enough(progress.history)
        stop = stop or _used_up(progress, limits, per_step)
        if stop is not None:
            return replace(progress, stop=stop)
        progress, infos, per_step = _chunk(progress, _length(progress, limits, per_step), stage, clock)
        if progress.stop is None:
            last = progress.history[-1]._replace(errors=evaluate(progress.state))
            progress = replace(progress, history=[*progress.history[:-1], last])
            events.report(last)
            events.checkpoints.between(progress)
            progress = _stuck(progress, infos)
        if progress.stop is not None:
            return progress


def _used_up(progress: Progress, limits: Limits, per_step: float | None) -> StopReason | None:
    if limits.steps is not None and int(progress.state.step) >= limits.steps:
        return StopReason.STEPS
    left = np.inf if limits.seconds is None else limits.seconds - progress.seconds
    # A step that would end past the budget by more than half its length is not begun.
    if left <= 0 or (per_step is not None and left < per_step / 2):
        return StopReason.SECONDS
    return None


def _length(progress: Progress, limits: Limits, per_step: float | None) -> int:
    """How many steps the next chunk has."""
    if per_step is None:
        count = limits.chunk_steps or 1
    else:
        left = np.inf if limits.seconds is None else limits.seconds - progress.seconds
        seconds = CHUNK_SECONDS if limits.chunk_steps is None else limits.chunk_steps * per_step
        count = int(np.clip(round(min(seconds, left) / per_step, 6), 1, CAPACITY))
    return count if limits.steps is None else min(count, limits.steps - int(progress.state.step))


def _chunk(progress: Progress, count: int, stage: str, clock: Clock) -> tuple[Progress, Info, float]:
    """So many steps; with their reports, and the seconds of one."""
    program, taken = progress.program, int(progress.state.step)
    assert program is not None
    (state, infos, fine), spent = clock.timed(lambda: program.run(progress.state, count))
    infos = jax.tree.map(np.asarray, infos)  # indexing arrays of jax would compile
    done = int(state.step) - taken
    per_step = spent / max(done, 1)
    records = [
        Record(
            step=taken + k + 1,
            seconds=progress.seconds + (k + 1) * per_step,
            terms=(terms := {name: float(values[k]) for name, values in infos.terms.items()}),
            iterations={name: int(move.iterations[k]) for name, move in infos.moves.items()},
            residuals={name: float(move.residual[k]) for name, move in infos.moves.items()},
            errors={},
            rms_residual=None if program.residual is None else program.residual.of(terms),
            stage=stage,
            statuses={name: int(move.status[k]) for name, move in infos.moves.items()},
        )
        for k in range(done)
    ]
    new = replace(progress, state=state, seconds=progress.seconds + spent, history=progress.history + records)
    if not bool(fine):
        new = replace(new, stop=StopReason.DIVERGED).remarked(_blame(infos, done, taken + done + 1))
    return new, infos, per_step


def _compile(recipe: Recipe, state: State) -> Program:
    """One executable for any number of steps up to CAPACITY."""

    one = jax.jit(lambda state: step(recipe, state))  # so that it is traced once

    def chunk(state: State, count: Array) -> tuple[State, Info, Array]:
        _, shape = jax.eval_shape(one, state)
        reports = jax.tree.map(lambda leaf: jnp.zeros((CAPACITY, *leaf.shape), leaf.dtype), shape)

        def body(carry: Any) -> Any:
            i, state, reports, *_ = carry
            new, info = one(state)
            # A player that carries a field answers for it: a rule that took a bad step back reports that it is well.
            fine = finite(new.fields) & finite([info.moves[name] for name in new.rules])
            fine &= jnp.all(jnp.stack(list(info.sound.values())))
            kept = jax.tree.map(lambda a, b: jnp.where(fine, a, b), _without_key(new), _without_key(state))
            reports = jax.tree.map(lambda buffer, leaf: buffer.at[i].set(leaf), reports, info)
            stuck = jnp.any(jnp.stack([move.stuck for move in info.moves.values()]))
            return i + 1, eqx.tree_at(lambda s: s.key, kept, state.key, is_leaf=_is_none), reports, fine, stuck

        start = (jnp.zeros((), int), state, reports, jnp.ones((), bool), jnp.zeros((), bool))
        _, state, reports, fine, _ = lax.while_loop(lambda c: (c[0] < count) & c[3] & ~c[4], body, start)
        return state, reports, fine

    return Program(jit(chunk).lower(state, 1).compile(), recipe.lower(state.data).residual)


def _is_none(leaf: Any) -> bool:
    return leaf is None


def _without_key(state: State) -> State:
    return eqx.tree_at(lambda s: s.key, state, None)


def _stuck(progress: Progress, infos: Info) -> Progress:
    """The same, ended if a player has said that it is stuck."""
    last = next((k for k, flag in enumerate(_flags(infos)) if flag), None)
    if last is None:
        return progress
    name = next(name for name, move in infos.moves.items() if bool(move.stuck[last]))
    gradient, at = infos.moves[name].gradient[last], int(progress.state.step)
    where = f", where its gradient is {gradient:.1e}" if gradient > 0 else ""
    return replace(progress, stop=StopReason.STALLED).remarked(f"{name} finds no lower value from step {at} on{where}")


def _flags(infos: Info) -> np.ndarray:
    return np.any(np.stack([move.stuck for move in infos.moves.values()]), axis=0)


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

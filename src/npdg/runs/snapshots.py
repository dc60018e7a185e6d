"""What a checkpoint holds of a run or a march, and when one is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from npdg.errors import InputError
from npdg.hooks import Keep
from npdg.loop import Outcome, Record, State
from npdg.marching import TimeStep
from npdg.runs.checkpoint import Checkpoint, Folder
from npdg.stopping import residual
from npdg.trajectory import MarchKeep, Trajectory

FOLDER = "checkpoints"


def to_arrays(tree: Any) -> dict[str, np.ndarray]:
    """The arrays of a tree by their places in it; random keys as their numbers."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(where): np.asarray(_numbers(leaf)) for where, leaf in leaves}


def from_arrays(template: Any, arrays: dict[str, np.ndarray], path: Path) -> Any:
    """A tree like the template with these arrays, which must be all of its and no others, in its own precision."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(template)
    names = [jax.tree_util.keystr(where) for where, _ in leaves]
    for name in sorted(set(names) ^ set(arrays)):
        raise InputError(f"run: {path} does not fit config.toml: the array {name} is {_where(name, arrays)}.")
    filled = []
    for name, (_, leaf) in zip(names, leaves, strict=True):
        wanted, found = _numbers(leaf), arrays[name]
        if found.shape != wanted.shape or found.dtype != wanted.dtype:
            raise InputError(
                f"run: {path} does not fit config.toml: {name} is {found.dtype}{list(found.shape)}, not "
                f"{wanted.dtype}{list(wanted.shape)}."
            )
        value = jax.numpy.asarray(found)
        filled.append(jax.random.wrap_key_data(value, impl=jax.random.key_impl(leaf)) if _is_key(leaf) else value)
    return jax.tree_util.tree_unflatten(structure, filled)


def _where(name: str, arrays: dict[str, np.ndarray]) -> str:
    return "not asked for" if name in arrays else "missing"


def _is_key(leaf: Any) -> bool:
    return jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _numbers(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


@dataclass
class Writer:
    """Writes the states that are offered, at most one every so many training seconds; the last one on request."""

    folder: Folder
    every: float
    facts: dict[str, Any]
    written: float | None = None
    pending: Callable[[], None] | None = field(default=None, repr=False)

    def offer(self, seconds: float, write: Callable[[], None]) -> None:
        """A state after so many training seconds."""
        self.pending = write
        if self.written is None or seconds - self.written >= self.every:
            self.flush()
            self.written = seconds

    def flush(self) -> None:
        """Write what was offered last, unless it is written already."""
        if self.pending is not None:
            self.pending()
            self.pending = None


def keep_run(writer: Writer, past: Checkpoint | None, history: list[Record]) -> Keep:
    """The checkpoints of a run, which goes on from `past` if there is one."""

    rollbacks = 0 if past is None else int(past.facts.get("rollbacks", 0))

    def restore(template: State) -> Outcome | None:
        if past is None:
            return None
        state = from_arrays(template, past.arrays, past.path)
        spent, compiled = (float(past.facts.get(key, 0)) for key in ("seconds", "compile_seconds"))
        return Outcome(state, "seconds", seconds=spent, compile_seconds=compiled, history=history, rollbacks=rollbacks)

    def between(outcome: Outcome) -> None:
        writer.offer(outcome.seconds, lambda: write(outcome))

    def write(outcome: Outcome) -> None:
        facts = {
            "seconds": outcome.seconds,
            "compile_seconds": outcome.compile_seconds,
            "rollbacks": outcome.rollbacks,
        }
        arrays = to_arrays(outcome.state)
        merit = merit_of(outcome.history[-1]) if outcome.history else None
        writer.folder.write(int(outcome.state.step), merit, {**writer.facts, **facts}, arrays)

    def trained(outcome: Outcome) -> None:
        between(outcome)
        writer.flush()

    return Keep(restore, between, trained, rollbacks)


def merit_of(record: Record) -> float | None:
    """What the best checkpoint is best in: the error where it is known, otherwise the residual, or the distance of a
    map's image to its target."""
    for error in ("rel_l2", "map_l2", "sliced_w2"):
        if error in record.errors:
            return record.errors[error]
    return None if "energy" in record.terms else residual(record)


def keep_march(writer: Writer, past: Checkpoint | None) -> MarchKeep:
    """The checkpoints of a march: the state after a time step, the fields that are kept and the reports so far."""

    def restore(trajectory: Trajectory, template: State) -> State | None:
        if past is None:
            return None
        kept = len(past.facts.get("times", ()))
        shape = {"state": template, "fields": [template.fields["u"]] * kept}
        filled = from_arrays(shape, past.arrays, past.path)
        try:
            trajectory.steps += [TimeStep(**{**report, "history": []}) for report in past.facts["reports"]]
            trajectory.times += [float(time) for time in past.facts["times"]]
        except (KeyError, TypeError, ValueError):
            raise InputError(f"run: {past.path} is not the checkpoint of a march.") from None
        trajectory.fields += filled["fields"]
        return filled["state"]

    def after(trajectory: Trajectory, state: State) -> None:
        steps, times, fields = list(trajectory.steps), list(trajectory.times), list(trajectory.fields)
        seconds = trajectory.seconds

        def write() -> None:
            reports = [{**asdict(replace(step, history=[])), "history": None} for step in steps]
            facts = {"seconds": seconds, "reports": reports, "times": times}
            arrays = to_arrays({"state": state, "fields": fields})
            # No time step is better than another: the last two are kept.
            writer.folder.write(steps[-1].number, None, {**writer.facts, **facts}, arrays)

        writer.offer(seconds, write)

    return MarchKeep(restore, after, writer.flush)

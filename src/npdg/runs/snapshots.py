"""What a checkpoint holds of the progress of a run, and when one is written."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from npdg.errors import InputError
from npdg.results.arrays import from_arrays, to_arrays
from npdg.runs.checkpoint import Checkpoint, Folder
from npdg.training.progress import Checkpoints, Progress
from npdg.training.records import Record, TimeStep

FOLDER = "checkpoints"
MERITS = (
    "rel_l2",
    "map_l2",
    "sliced_w2",
)  # errors, of which the first that is measured is what a checkpoint is best in


@dataclass
class Writer:
    """Writes the states that are offered, at most one every so many training seconds; the last one on request."""

    folder: Folder
    every: float
    facts: dict[str, Any]
    written: float | None = None
    pending: Callable[[], None] | None = field(default=None, repr=False)
    latest: Progress | None = field(default=None, repr=False)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def offer(self, progress: Progress, write: Callable[[], None]) -> None:
        """The state of a run as it is now."""
        self.pending, self.latest = write, progress
        if self.written is None or progress.seconds - self.written >= self.every:
            self.flush()
            self.written = progress.seconds

    def flush(self) -> None:
        """Write what was offered last, unless it is written already."""
        with self.lock:  # a run that is left writes from another thread
            if self.pending is not None:
                self.pending()
                self.pending = None


def keep(writer: Writer, past: Checkpoint | None, history: list[Record]) -> Checkpoints:
    """The checkpoints of a run, which goes on from `past` if there is one."""

    def between(progress: Progress) -> None:
        writer.offer(progress, lambda: _write(writer, progress))

    def trained(progress: Progress) -> None:
        between(progress)
        writer.flush()

    def restore(fresh: Progress) -> Progress | None:
        return None if past is None else _restored(fresh, past, history)

    return Checkpoints(restore, between, trained, 0 if past is None else int(past.facts.get("rollbacks", 0)))


def _write(writer: Writer, progress: Progress) -> None:
    facts: dict[str, Any] = {
        "seconds": progress.seconds,
        "compile_seconds": progress.compile_seconds,
        "rollbacks": progress.rollbacks,
    }
    if not progress.trail:
        merit = merit_of(progress.history[-1]) if progress.history else None
        arrays = to_arrays(progress.state)
        writer.folder.write(int(progress.state.step), merit, {**writer.facts, **facts}, arrays)
        return
    facts["reports"] = [{**asdict(replace(step, history=[])), "history": None} for step in progress.trail]
    facts["times"] = [time for time, _ in progress.kept]
    arrays = to_arrays({"state": progress.state, "fields": [u for _, u in progress.kept]})
    # No time step is better than another: the last two are kept.
    writer.folder.write(progress.trail[-1].number, None, {**writer.facts, **facts}, arrays)


def _restored(fresh: Progress, past: Checkpoint, history: list[Record]) -> Progress:
    """The progress that a checkpoint holds, in the shape of a fresh one."""
    spent, compiled = (float(past.facts.get(key, 0)) for key in ("seconds", "compile_seconds"))
    rollbacks = int(past.facts.get("rollbacks", 0))
    progress = replace(fresh, seconds=spent, compile_seconds=compiled, rollbacks=rollbacks)
    arrays = {_present(name): array for name, array in past.arrays.items()}
    if "reports" not in past.facts:
        return replace(progress, state=from_arrays(fresh.state, arrays, past.path), history=history)
    try:
        trail = tuple(TimeStep(**{**report, "history": []}) for report in past.facts["reports"])
        times = [float(time) for time in past.facts["times"]]
    except (KeyError, TypeError, ValueError):
        raise InputError(f"run: {past.path} is not the checkpoint of a march.") from None
    shape = {"state": fresh.state, "fields": [fresh.state.fields["u"]] * len(times)}
    filled = from_arrays(shape, arrays, past.path)
    kept = tuple(zip(times, filled["fields"], strict=True))
    return replace(progress, state=filled["state"], trail=trail, kept=kept)


def _present(name: str) -> str:
    """The present name of an array: the data of a time step were fields in earlier checkpoints."""
    return name.replace(".fields['before']", ".data['before']").replace(".fields['time'].now", ".data['time']")


def merit_of(record: Record) -> float | None:
    """What the best checkpoint is best in: the error where it is known, otherwise the residual, or the distance of a
    map's image to its target."""
    known = [record.errors[error] for error in MERITS if error in record.errors]
    return known[0] if known else record.rms_residual

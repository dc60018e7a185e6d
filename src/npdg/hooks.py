"""What the caller of a run wants to hear, where its states are kept, and whether it wants to stop."""

from collections.abc import Callable
from dataclasses import dataclass

from npdg.loop import Outcome, Record, State
from npdg.settings import Settings
from npdg.stopping import Enough


@dataclass(frozen=True)
class Keep:
    """Where the states of a run go, and the one to go on from: nowhere and none unless the caller says so.

    `restore(template)` gives what had come out before, its state in the shape of the template, or nothing; `between`
    sees what has come out after every chunk, `trained` at the end of the training unless it diverged. `rollbacks` is
    how many there were before the state to be restored.
    """

    restore: Callable[[State], Outcome | None] = lambda template: None
    between: Callable[[Outcome], None] = lambda outcome: None
    trained: Callable[[Outcome], None] = lambda outcome: None
    rollbacks: int = 0


KEEP_NOTHING = Keep()


@dataclass(frozen=True)
class Hooks:
    """What the caller wants to hear, where states are kept, and whether it wants to stop."""

    on_record: Callable[[Record], None]
    on_compiled: Callable[[float], None] = lambda seconds: None
    on_chosen: Callable[[Settings], None] = lambda settings: None
    should_stop: Callable[[], str | None] = lambda: None
    enough: Enough = lambda history: None
    on_note: Callable[[str], None] = lambda note: None
    keep: Keep = KEEP_NOTHING

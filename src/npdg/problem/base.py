"""What every problem has, whatever its kind."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable


@dataclass(frozen=True)
class Origin:
    """Where a problem of the catalogue comes from: its name there, and settings that belong to it, by preset.

    `presets[name](method)` are the flat settings that the preset means for this problem and a method.
    """

    name: str
    presets: Mapping[str, Callable[[str], Mapping[str, Any]]] = field(default_factory=dict)


@runtime_checkable
class Problem(Protocol):
    """What is to be solved. `kind` names the family of methods that can; `options` are recorded with a run.

    `origin` is set by the catalogue alone: a problem of the user's own has none, whatever its name.
    """

    kind: ClassVar[str]
    written: ClassVar[str]  # the problem in words, where nothing else is known of it

    @property
    def name(self) -> str: ...

    @property
    def options(self) -> Mapping[str, Any]: ...

    @property
    def origin(self) -> Origin | None: ...

    @property
    def dim(self) -> int: ...

    def from_catalogue(self, origin: Origin) -> "Problem":
        """The same problem, known to be the catalogue's."""
        ...

    def named(self, name: str) -> "Problem":
        """The same problem under another name."""
        ...

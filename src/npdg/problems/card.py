"""What is known about a problem before jax is imported."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from npdg.errors import InputError

if TYPE_CHECKING:
    from npdg.pde import PDE


@dataclass(frozen=True)
class Card:
    """A problem by name: its equation in words, the dimensions it takes, the paper's settings, how to build it.

    `options` are choices of the equation itself, set like settings (`--set variant=mild`); the first is the default.
    """

    name: str
    title: str
    equation: str
    default_dim: int
    build: Callable[..., "PDE"]
    paper: Callable[[str, int], dict[str, Any]] | None = None
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    dims: Callable[[int], bool] = lambda dim: True
    dims_text: str = "a whole number from 1 to 1000"

    def check_dim(self, dim: int) -> int:
        """The dimension, or an `InputError` if this problem does not take it."""
        if not (1 <= dim <= 1000 and self.dims(dim)):
            raise InputError(f"dim: {dim} is not allowed for {self.name}; give {self.dims_text}.")
        return dim

    def take_options(self, assignments: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
        """The problem's own choices, checked, and what is left for the method."""
        mine = {key: str(assignments.get(key, allowed[0])) for key, allowed in self.options.items()}
        for key, value in mine.items():
            if value not in self.options[key]:
                raise InputError(f"{key}: {value!r} is not allowed; give {' or '.join(self.options[key])}.")
        return mine, {key: value for key, value in assignments.items() if key not in mine}

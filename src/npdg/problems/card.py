"""What is known about a problem before jax is imported."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from npdg.errors import InputError

if TYPE_CHECKING:
    from npdg.pde import PDE


@dataclass(frozen=True)
class Card:
    """A problem by name: its equation in words, the dimensions it takes, the paper's settings, how to build it."""

    name: str
    title: str
    equation: str
    default_dim: int
    build: Callable[[int], "PDE"]
    paper: Callable[[str, int], dict[str, Any]] | None = None

    def check_dim(self, dim: int) -> int:
        """The dimension, or an `InputError` if this problem does not take it."""
        if not 1 <= dim <= 1000:
            raise InputError(f"dim: {dim} is not allowed for {self.name}; give a whole number from 1 to 1000.")
        return dim

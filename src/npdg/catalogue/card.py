"""What is known about a problem before jax is imported."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from npdg.errors import InputError


@dataclass(frozen=True)
class Number:
    """An option that is a positive number; without a default, the problem chooses it from the others."""

    default: float | None
    whole: bool = False

    def read(self, key: str, value: Any) -> float | int:
        """The number a text or a number means, or an `InputError`."""
        wanted = "a whole number of at least 1" if self.whole else "a positive number"
        try:
            number = int(value) if self.whole else float(value)
        except (TypeError, ValueError, OverflowError):
            number = 0
        if isinstance(value, bool) or (isinstance(value, float) and number != value):
            number = 0
        if not (0 < number < math.inf):
            raise InputError(f"{key}: {value!r} is not allowed; give {wanted}.")
        return number


@dataclass(frozen=True)
class Card:
    """A problem by name: its equation in words, the dimensions it takes, the paper's settings, how to build it.

    `options` are choices of the equation itself, set like settings (`--set variant=mild`): the names to choose from,
    the first being the default, or a `Number`. `make(dim, **options)` gives the problem, of the `kind` that is said.
    `paper(method, dim, **options)` are the flat settings of the paper's experiment. `formulas(dim, **options)` are the
    lines of the equation for a report, in the TeX of `runs.report.mathml`.
    """

    name: str
    title: str
    equation: str
    default_dim: int
    make: Callable[..., Any]
    paper: Callable[..., dict[str, Any]] | None = None
    options: Mapping[str, tuple[str, ...] | Number] = field(default_factory=dict)
    dims: Callable[[int], bool] = lambda dim: True
    dims_text: str = "a whole number from 1 to 1000"
    kind: Literal["equation", "evolution", "transport"] = "equation"
    formulas: Callable[..., tuple[str, ...]] | None = None

    def build(self, dim: int, **options: Any) -> Any:
        """The problem, which knows that it is the catalogue's, and the settings that are its own."""
        from npdg.problem.base import Origin

        paper = self.paper
        presets = {} if paper is None else {"paper": lambda method: paper(method, dim, **options)}
        return self.make(dim, **options).from_catalogue(Origin(self.name, presets))

    def check_dim(self, dim: int) -> int:
        """The dimension, or an `InputError` if this problem does not take it."""
        if not (1 <= dim <= 1000 and self.dims(dim)):
            raise InputError(f"dim: {dim} is not allowed for {self.name}; give {self.dims_text}.")
        return dim

    def take_options(self, assignments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The problem's own choices, checked, and what is left for the method."""
        mine: dict[str, Any] = {}
        for key, allowed in self.options.items():
            if isinstance(allowed, Number):
                value = assignments.get(key, allowed.default)
                if value is not None:
                    mine[key] = allowed.read(key, value)
                continue
            mine[key] = str(assignments.get(key, allowed[0]))
            if mine[key] not in allowed:
                raise InputError(f"{key}: {mine[key]!r} is not allowed; give {' or '.join(allowed)}.")
        return mine, {key: value for key, value in assignments.items() if key not in self.options}

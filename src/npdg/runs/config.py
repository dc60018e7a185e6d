"""What the command line asks for, checked before jax is imported."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from npdg.errors import InputError, unknown
from npdg.problems import CARDS, find
from npdg.problems.card import Card
from npdg.settings import METHODS, PRESETS, parse


class Request(BaseModel):
    """One run as asked for; numbers may still be text here and are converted or refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    problem: str
    dim: Annotated[int | None, Field(ge=1, le=1000, description="a whole number from 1 to 1000")] = None
    method: str = "npdg"
    preset: str = "default"
    seconds: Annotated[float | None, Field(gt=0, description="a positive number of seconds")] = None
    steps: Annotated[int | None, Field(ge=1, le=10**9, description="a whole number of at least 1")] = None
    seed: Annotated[int, Field(ge=0, lt=2**32, description="a whole number from 0 to 4294967295")] = 0
    out: Path | None = None
    settings: dict[str, Any] = {}


@dataclass(frozen=True)
class Target:
    """The problem a request names: one of ours by its card, or a user's file."""

    card: Card | None
    file: tuple[Path, str] | None
    dim: int | None
    options: dict[str, str]


def read_request(values: dict[str, Any], assignments: list[str], precision: str | None) -> tuple[Request, Target]:
    """A checked request and its target, from command-line text."""
    request = read_plain(values, assignments, precision)
    target = read_target(request.problem, request.dim, request.settings)
    left = {key: value for key, value in request.settings.items() if key not in target.options}
    return request.model_copy(update={"settings": left}), target


def read_plain(values: dict[str, Any], assignments: list[str], precision: str | None) -> Request:
    """A checked request whose problem is not looked up: two files of samples, say."""
    settings = dict(_assignment(text) for text in assignments)
    if precision is not None:
        settings["precision"] = precision
    given = {key: value for key, value in values.items() if value is not None}
    request = parse(Request, {**given, "settings": settings})
    if request.method not in METHODS:
        raise unknown("method", request.method, METHODS)
    if request.preset not in PRESETS:
        raise unknown("preset", request.preset, PRESETS)
    return request


def read_target(problem: str, dim: int | None, assignments: dict[str, Any]) -> Target:
    """Find a problem by name or by file; a file is only looked for, not run."""
    if ".py" not in problem:
        card = find(problem)
        options, _ = card.take_options(assignments)
        return Target(card, None, card.check_dim(card.default_dim if dim is None else dim), options)
    path, _, name = problem.rpartition(":")
    if not path.endswith(".py") or not name.isidentifier():
        raise InputError(f"problem: {problem!r} is not allowed; give FILE.py:NAME, such as my_pde.py:pde.")
    if not Path(path).is_file():
        raise InputError(f"problem: the file {path!r} does not exist; give FILE.py:NAME or one of {', '.join(CARDS)}.")
    return Target(None, (Path(path), name), dim, {})


def _assignment(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not (key and equals and value):
        raise InputError(f"set: {text!r} is not allowed; give key=value, such as width=128.")
    return key.strip(), value.strip()


def whole_number(key: str, text: str, lowest: int, highest: int) -> int:
    """A number from the command line, or an `InputError` that names its key."""
    number = int(text) if text.isdecimal() else None
    if number is None or not lowest <= number <= highest:
        raise InputError(f"{key}: {text!r} is not allowed; give a whole number from {lowest} to {highest}.")
    return number


def to_toml(tables: dict[str, dict[str, Any]]) -> str:
    """A configuration of one level of tables as TOML."""
    lines: list[str] = []
    for table, values in tables.items():
        lines += [
            f"[{table}]",
            *(f"{key} = {_toml(value)}" for key, value in values.items() if value is not None),
            "",
        ]
    return "\n".join(lines)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        assert math.isfinite(value)
        return repr(value)
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'

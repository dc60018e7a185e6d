"""What a run is asked for, from a configuration file and the command line; checked before jax is imported."""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from npdg.catalogue import CARDS, find
from npdg.catalogue.card import Card
from npdg.errors import InputError, unknown
from npdg.methods.flat import parse
from npdg.methods.registry import PRESETS, method_titles, models
from npdg.runs.files import LARGEST_ARRAYS, read_bytes
from npdg.runs.trust import trusted
from npdg.runs.untrusted import read_toml
from npdg.training.stopping import read_until

SAMPLES = (".npy", ".npz", ".csv")
TABLES = ("run", "options", "settings")
ELSEWHERE = frozenset({"out", "settings"})  # parts of a request that are not in the table [run]


class Request(BaseModel):
    """One run as asked for; numbers may still be text here and are converted or refused.

    `sha256` is that of the user's file when the configuration was written, and of the `imports` from its directory;
    `kind` is that of the problem then; `own` says that it was the user's, whatever its name.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    problem: Annotated[str, Field(description="a name from `npdg list`, or FILE.py:NAME")]
    sha256: Annotated[str | None, Field(pattern="^[0-9a-f]{64}$", description="64 hexadecimal digits")] = None
    imports: Annotated[list[str], Field(max_length=1000, description="names of files")] = []
    kind: Annotated[str | None, Field(description="equation, evolution or transport")] = None
    own: Annotated[bool | None, Field(description="true or false")] = None
    dim: Annotated[int | None, Field(ge=1, le=1000, description="a whole number from 1 to 1000")] = None
    method: Annotated[str, Field(description="a method from `npdg list`")] = "npdg"
    preset: Annotated[str, Field(description="a preset from `npdg list`")] = "default"
    seconds: Annotated[float | None, Field(gt=0, description="a positive number of seconds")] = None
    steps: Annotated[int | None, Field(ge=1, le=10**9, description="a whole number of at least 1")] = None
    until: Annotated[str | None, Field(description="rel_l2=1e-3, rel_h1=…, residual=… or plateau")] = None
    seed: Annotated[int, Field(ge=0, lt=2**32, description="a whole number from 0 to 4294967295")] = 0
    rollbacks: Annotated[int, Field(ge=0, le=3, description="a whole number from 0 to 3")] = 0
    checkpoint_seconds: Annotated[float, Field(ge=0, description="a number of at least 0")] = 15.0
    out: Path | None = None
    settings: dict[str, Any] = {}


RUN_KEYS = tuple(key for key in Request.model_fields if key not in ELSEWHERE)


@dataclass(frozen=True)
class Target:
    """The problem a request names: one of ours by its card, a user's file, or two files of samples."""

    card: Card | None
    file: tuple[Path, str] | None
    dim: int | None
    options: dict[str, str]
    samples: tuple[Path, Path] | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of the user's that it is made of."""
        return (() if self.file is None else (self.file[0],)) + (self.samples or ())

    def absolute(self, problem: str) -> str:
        """The problem as it was named, with files by their whole paths."""
        if self.file is not None:
            return f"{self.file[0].resolve()}:{self.file[1]}"
        return problem if self.samples is None else ",".join(str(path.resolve()) for path in self.samples)

    @property
    def kind(self) -> str | None:
        """equation, evolution or transport; unknown for a user's file, which is not run yet."""
        return self.card.kind if self.card is not None else "transport" if self.samples is not None else None


def read_request(
    values: dict[str, Any], assignments: list[str], precision: str | None, config: Path | None = None
) -> tuple[Request, Target]:
    """A checked request and its target: what the command line says, over what the file says."""
    given = {key: value for key, value in values.items() if value is not None}
    tables = {table: {} for table in TABLES} if config is None else read_tables(config)
    run = tables["run"]
    if {"seconds", "steps"} & given.keys():  # a budget replaces a budget
        run = {key: value for key, value in run.items() if key not in ("seconds", "steps")}
    if "problem" in given:
        run = {key: value for key, value in run.items() if key not in ("sha256", "imports")}
    if "problem" not in {**run, **given}:
        raise InputError("problem: none was given; give PROBLEM, or --config FILE with one in its table [run].")
    own = dict(_assignment(text) for text in assignments)
    if precision is not None:
        own["precision"] = precision
    request = parse(Request, {**run, **given})
    if request.method not in method_titles():
        raise unknown("method", request.method, method_titles())
    if request.preset not in PRESETS:
        raise unknown("preset", request.preset, PRESETS)
    if request.until is not None:
        read_until(request.until)
    if request.own and "problem" not in given:
        raise InputError(
            f"problem: {request.problem!r} is your own equation; give it on the command line: npdg solve FILE.py:NAME."
        )
    target = read_target(request.problem, request.dim, {**tables["options"], **own})
    if target.file is not None and "problem" not in given:
        check_file(request)
    if target.samples is not None and request.sha256 is not None:
        check_samples(target.samples, request.sha256)
    for key in tables["options"]:
        if key not in target.options:
            raise unknown("option", key, target.options)
    left = {**tables["settings"], **{key: value for key, value in own.items() if key not in target.options}}
    _check_settings(left, target.kind)
    return request.model_copy(update={"settings": left}), target


def read_tables(path: Path) -> dict[str, dict[str, Any]]:
    """The tables of a configuration file, with keys that are known."""
    try:
        found = read_toml(path, "config", follow=True)
    except OSError as error:
        raise InputError(f"config: {str(path)!r} cannot be read: {error.strerror}; give a TOML file.") from None
    for table, content in found.items():
        if table not in TABLES:
            if table in RUN_KEYS:
                raise InputError(f"{table}: it stands outside of a table; put it under [run].")
            raise unknown("table", table, TABLES)
        if not isinstance(content, dict):
            raise InputError(f"{table}: {content!r} is not allowed; give a table [{table}].")
    tables = {table: found.get(table, {}) for table in TABLES}
    for key in tables["run"]:
        if key not in RUN_KEYS:
            raise unknown("run", key, RUN_KEYS)
    return tables


def _check_settings(settings: dict[str, Any], kind: str | None) -> None:
    """Refuse unknown names and impossible values; what depends on the problem's dimension is seen later."""
    allowed = models(kind)
    for key in settings:
        if not any(model.knows(key) for model in allowed):
            paths = {name: ".".join(path) for model in allowed for name, path in model.paths().items()}
            raise unknown("setting", key, set(paths.values()) if "." in key else paths)
    if kind is not None:
        allowed[0].check_values(settings)


def check_file(request: Request) -> None:
    """Refuse a user's file that a configuration names unless this user has named it before, and it has not changed.

    A file is Python code: a configuration alone, which may come from anywhere with the file and its digest beside it,
    does not run one.
    """
    path = Path(request.problem.rpartition(":")[0])
    if request.sha256 is None or not trusted(path, request.sha256):
        raise InputError(
            f"problem: {request.problem!r} is Python code, which a configuration alone does not run; if you trust it, "
            f"give it on the command line too: npdg solve {request.problem} --config FILE, or npdg resume RUN "
            f"--problem {request.problem}."
        )
    if code_digest(path, request.imports) != request.sha256:
        raise InputError(
            f"problem: {str(path)!r} or a file that it imports has changed since this configuration was written; "
            f"restore it, or start anew with npdg solve {request.problem}."
        )


def check_samples(paths: tuple[Path, Path], sha256: str) -> None:
    """Refuse files of samples that are not those that a configuration was written with."""
    names = " or ".join(repr(str(path)) for path in paths)
    try:
        same = digest(*paths) == sha256
    except OSError as error:
        raise InputError(f"problem: {error.filename!r} cannot be read: {error.strerror}; restore it.") from None
    if not same:
        raise InputError(
            f"problem: {names} has changed since this configuration was written; restore it, or start anew with "
            "npdg transport."
        )


def code_digest(path: Path, imports: Sequence[str]) -> str:
    """The SHA-256 of a user's file, or of a list of it and of what it imports from its directory, by their names."""
    if not imports:
        return digest(path)
    listed = [f"{name} {digest(path.parent / name)}" for name in sorted(imports)]
    return hashlib.sha256("\n".join([digest(path), *listed]).encode()).hexdigest()


def digest(*paths: Path) -> str:
    """The SHA-256 of a file, or of several one after another."""
    contents = (read_bytes(path, LARGEST_ARRAYS, key="problem", follow=True) for path in paths)
    return hashlib.sha256(b"".join(contents)).hexdigest()


def read_target(problem: str, dim: int | None, assignments: dict[str, Any]) -> Target:
    """Find a problem by name or by file; a file is only looked for, not run. A comma stands between two of samples."""
    if (files := _two_files(problem)) is not None:
        return Target(None, None, None, {}, files)
    if ".py" not in problem:
        card = find(problem)
        options, _ = card.take_options(assignments)
        return Target(card, None, card.check_dim(card.default_dim if dim is None else dim), options)
    path, _, name = problem.rpartition(":")
    if not path.endswith(".py") or not name.isidentifier() or "\0" in path:
        raise InputError(f"problem: {problem!r} is not allowed; give FILE.py:NAME, such as my_pde.py:pde.")
    if not Path(path).is_file():
        raise InputError(f"problem: the file {path!r} does not exist; give FILE.py:NAME or one of {', '.join(CARDS)}.")
    return Target(None, (Path(path), name), dim, {})


def _two_files(text: str) -> tuple[Path, Path] | None:
    """Two files of samples with a comma between, which their names may hold as well."""
    commas = [k for k, letter in enumerate(text) if letter == ","]
    splits = [(Path(text[:k]), Path(text[k + 1 :])) for k in commas]
    splits = [files for files in splits if all(file.suffix.lower() in SAMPLES for file in files)]
    there = [files for files in splits if all(file.is_file() for file in files)]
    return (there or splits or [None])[0]


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
    if isinstance(value, list):
        return f"[{', '.join(_toml(one) for one in value)}]"
    # The escapes of JSON are those of TOML, which also wants one for DEL.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")

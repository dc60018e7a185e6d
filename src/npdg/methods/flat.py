"""Settings that are nested, typed and checked by the part they belong to; importable without jax.

Every number also has a flat name, under which configurations, the command line and keyword arguments may give it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from npdg.errors import InputError, unknown

Model = TypeVar("Model", bound=BaseModel)
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False, description="a positive number")]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False, description="a number of at least 0")]
Fraction = Annotated[float, Field(gt=0, lt=1, description="a number between 0 and 1")]
Count = Annotated[int, Field(ge=1, le=10_000_000, description="a whole number from 1 to 10000000")]
Size = Annotated[int, Field(ge=1, le=65536, description="a whole number from 1 to 65536")]
Depth = Annotated[int, Field(ge=1, le=64, description="a whole number of linear maps, from 1 to 64")]
Few = Annotated[int, Field(ge=0, le=100, description="a whole number from 0 to 100")]
Switch = Annotated[bool, Field(description="true or false")]
Activation = Annotated[Literal["tanh", "softplus", "prelu", "sine"], Field(description="tanh, softplus, prelu or sine")]
Precision = Annotated[Literal["float32", "float64"], Field(description="float32 or float64")]


def flat(name: str, default: Any) -> Any:
    """A field whose flat name is not its own."""
    return Field(default=default, json_schema_extra={"flat": name})


class Part(BaseModel):
    """One part of the settings, which checks itself."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class FlatSettings(BaseModel):
    """Settings made of parts, with a flat name for every number."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @classmethod
    def paths(cls) -> dict[str, tuple[str, ...]]:
        """Where each flat name is: a part and a field, or a field."""
        return _paths(cls)

    @classmethod
    def flat_names(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """The same values under flat names; they may be given as `width` or as `network.width`."""
        nested = {".".join(path): name for name, path in cls.paths().items()}
        for key in values:
            if key not in cls.paths() and key not in nested:
                raise unknown("setting", key, nested if "." in key else cls.paths())
        return {nested.get(key, key): value for key, value in values.items()}

    @classmethod
    def from_flat(cls, values: Mapping[str, Any]) -> Self:
        """Settings from values under any of their names, or an `InputError` that names the key and what is allowed."""
        named, nested = cls.flat_names(values), {}
        for key, value in named.items():
            path = cls.paths()[key]
            _refuse_bool(key, value, cls._field(path))
            target = nested if len(path) == 1 else nested.setdefault(path[0], {})
            target[path[-1]] = value
        try:
            return cls.model_validate(nested)
        except ValidationError as error:
            raise _first_mistake(error, lambda loc: cls._named(loc)) from None

    @classmethod
    def knows(cls, key: str) -> bool:
        """Whether a flat or a nested name is of these settings."""
        return key in cls.paths() or tuple(key.split(".")) in cls.paths().values()

    @classmethod
    def check_values(cls, values: Mapping[str, Any]) -> None:
        """Refuse a value that is impossible whatever the others are."""
        for key, value in cls.flat_names(values).items():
            field = cls._field(cls.paths()[key])
            _refuse_bool(key, value, field)
            try:
                TypeAdapter(Annotated[field.annotation, field]).validate_python(value)  # pyright: ignore
            except ValidationError as error:
                raise _first_mistake(error, lambda loc, key=key, field=field: (key, field)) from None

    @classmethod
    def _field(cls, path: tuple[str, ...]) -> Any:
        field = cls.model_fields[path[0]]
        return field if len(path) == 1 else field.annotation.model_fields[path[1]]  # pyright: ignore

    @classmethod
    def _named(cls, loc: tuple[Any, ...]) -> tuple[str, Any]:
        for name, path in cls.paths().items():
            if path == tuple(loc):
                return name, cls._field(path)
        return str(loc[0]) if loc else "input", None

    def flat(self) -> dict[str, Any]:
        """Every number under its flat name, as configurations have it."""
        return {name: self[name] for name in self.paths()}

    def __getitem__(self, name: str) -> Any:
        value: Any = self
        for key in self.paths()[name]:
            value = getattr(value, key)
        return value

    def changed(self, **values: Any) -> Self:
        """The same with other numbers, under flat names; they are not checked again."""
        parts: dict[str, Any] = {}
        for name, value in values.items():
            path = self.paths()[name]
            if len(path) == 1:
                parts[path[0]] = value
            else:
                part = parts.get(path[0], getattr(self, path[0]))
                parts[path[0]] = part.model_copy(update={path[1]: value})
        return self.model_copy(update=parts)


def shape_in_words(network: Any) -> str:
    """A network in words."""
    if getattr(network, "features", "none") != "none":
        return f"{network.width} random {network.features}"
    if getattr(network, "rank", 0) > 0:
        return f"{network.rank} products of degree {network.degree}"
    squares = " and squares" if network.squares else ""
    return f"{network.activation}{squares}, width {network.width}, depth {network.depth}"


def parse(model: type[Model], values: dict[str, Any]) -> Model:
    """Validate into a model without parts; the first mistake becomes one sentence."""
    for key, value in values.items():
        if key in model.model_fields:
            _refuse_bool(key, value, model.model_fields[key])
    try:
        return model.model_validate(values)
    except ValidationError as error:
        named = lambda loc: (str(loc[0]) if loc else "input", model.model_fields.get(str(loc[0]) if loc else ""))
        raise _first_mistake(error, named) from None


@functools.cache
def _paths(model: type[FlatSettings]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, field in model.model_fields.items():
        part = field.annotation
        if isinstance(part, type) and issubclass(part, Part):
            found |= {_flat_name(key, inner): (name, key) for key, inner in part.model_fields.items()}
        else:
            found[name] = (name,)
    return found


def _flat_name(key: str, field: Any) -> str:
    extra = field.json_schema_extra
    return extra["flat"] if isinstance(extra, dict) and "flat" in extra else key


def _refuse_bool(key: str, value: Any, field: Any) -> None:
    if isinstance(value, bool) and field.annotation not in (bool, bool | None):  # pydantic would read it as 1
        raise InputError(f"{key}: {value!r} is not allowed; give {field.description}.")


def _first_mistake(error: ValidationError, named: Any) -> InputError:
    mistake = error.errors()[0]
    own = mistake.get("ctx", {}).get("error")
    if isinstance(own, InputError):
        return own
    key, field = named(tuple(mistake["loc"]))
    allowed = field.description if field is not None and field.description else mistake["msg"]
    return InputError(f"{key}: {mistake['input']!r} is not allowed; give {allowed}.")

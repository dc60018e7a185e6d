"""The one place that reads structure which may come from anybody: JSON, TOML and arrays, bounded in depth and size.

Nothing that is read is run, and whatever is damaged is an `InputError` of one sentence.
"""

import io
import json
import math
import re
import tokenize
import tomllib
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from npdg.errors import InputError
from npdg.runs.files import LARGEST_ARRAYS, read_bytes, read_text

DEEPEST = 50  # Brackets within brackets in JSON and TOML.
MOST_DIGITS = 400  # Digits of one number.
MOST_ARRAYS = 100_000  # Members of a file of arrays.
SMALL, LARGEST_RATIO = 2**26, 20  # Arrays may unpack to so many bytes, or to so many times the size of their file.


def damaged(path: Path, why: object, key: str = "run") -> InputError:
    """The error for a file of a run that is not what was written, or for one of the user's that cannot be read."""
    what = f"{path} is damaged" if key == "run" else f"{str(path)!r} cannot be read"
    return InputError(f"{key}: {what}: {' '.join(str(why).split()).rstrip('.')}.")


def read_json(path: Path) -> dict[str, Any]:
    """An object of JSON; empty if there is no such file."""
    try:
        text = read_text(path)
    except FileNotFoundError:
        return {}
    found = _parsed(path, text, "run", json.loads)
    if not isinstance(found, dict):
        raise damaged(path, "it is no JSON object")
    return found


def read_toml(path: Path, key: str = "run", *, follow: bool = False) -> dict[str, Any]:
    """The tables of a TOML file."""
    return _parsed(path, read_text(path, key=key, follow=follow), key, tomllib.loads)


def _parsed(path: Path, text: str, key: str, parse: Callable[[str], Any]) -> Any:
    if _depth(text) > DEEPEST:
        raise damaged(path, f"it is nested more than {DEEPEST} deep", key)
    if re.search(rf"\d{{{MOST_DIGITS}}}", text):
        raise damaged(path, f"it holds a number of more than {MOST_DIGITS} digits", key)
    try:
        return parse(text)
    except (ValueError, RecursionError) as error:
        raise damaged(path, error, key) from None


def _depth(text: str) -> int:
    """How deep brackets are nested, those in strings and dots of TOML's long names counted as well."""
    deepest = depth = 0
    for bracket in re.findall(r"[\[\]{}]", text):
        depth = depth + 1 if bracket in "[{" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    dots = max((line.count(".") for line in text.splitlines() if line.lstrip().startswith("[")), default=0)
    return max(deepest, dots)


def typed(path: Path, values: Mapping[str, Any], kinds: Mapping[str, type | tuple[type, ...]]) -> None:
    """Refuse values that are not of these kinds, where they are given; a truth value is no number."""
    for name, kind in kinds.items():
        value = values.get(name)
        wrong = isinstance(value, bool) and kind is not bool
        if value is not None and (wrong or not isinstance(value, kind)):
            raise damaged(path, f"{name} is {str(value)[:40]!r}")


def read_arrays(path: Path, most: int = LARGEST_ARRAYS, *, key: str = "run", follow: bool = False) -> dict[str, Any]:
    """The arrays of an .npz file by name; no more memory is asked for than the file itself has."""
    content = read_bytes(path, most, key=key, follow=follow)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            if len(members) > MOST_ARRAYS:
                raise damaged(path, f"it holds more than {MOST_ARRAYS} arrays", key)
            if any(member.flag_bits & 1 for member in members):
                raise damaged(path, "it is encrypted", key)
            if sum(member.file_size for member in members) > max(SMALL, LARGEST_RATIO * len(content)):
                raise damaged(path, f"it would unpack to more than {LARGEST_RATIO} times its size", key)
            return {member.filename.removesuffix(".npy"): _array(archive.read(member)) for member in members}
    except InputError:
        raise
    except (ValueError, KeyError, EOFError, OSError, RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
        raise damaged(path, error, key) from None


def read_array(path: Path, most: int = LARGEST_ARRAYS, *, key: str = "run", follow: bool = False) -> np.ndarray:
    """The array of an .npy file."""
    try:
        return _array(read_bytes(path, most, key=key, follow=follow))
    except InputError:
        raise
    except (ValueError, KeyError, EOFError) as error:
        raise damaged(path, error, key) from None


def _array(content: bytes) -> np.ndarray:
    """An array in numpy's format, whose header must say just as much as there is."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"version {version} of numpy's format")
    try:
        shape, fortran, dtype = readers[version](stream)
    except tokenize.TokenError as error:
        raise ValueError(f"a header that cannot be read: {error}") from None
    if dtype.hasobject:
        raise ValueError("an array of Python objects")
    if math.prod(shape) * dtype.itemsize != len(content) - stream.tell():
        raise ValueError("an array whose header says another size")
    array = np.frombuffer(content, dtype, offset=stream.tell())
    return array.reshape(shape[::-1]).T if fortran else array.reshape(shape)

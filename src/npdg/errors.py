"""Errors that a user can act on; importable without jax."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Something the user gave is not allowed; the message is one sentence that says what is."""


def unknown(kind: str, given: object, allowed: Iterable[str]) -> InputError:
    """An `InputError` for a name that is not in `allowed`, with the nearest one."""
    names = sorted(allowed)
    near = difflib.get_close_matches(str(given), names, n=1)
    hint = f"did you mean '{near[0]}'? " if near else ""
    return InputError(f"{kind}: {given!r} is unknown; {hint}allowed: {', '.join(names)}.")

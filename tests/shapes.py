"""The checker of annotations that the tests install: beartype, but for functions that refuse bad input themselves."""

from collections.abc import Callable
from typing import Any

from beartype import beartype

OWN_WORDS = {"__init__", "check_function", "_value_at", "data", "solve", "march", "transport"}


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its annotations checked, unless it says in its own words what is wrong with an argument."""
    return function if function.__name__ in OWN_WORDS else beartype(function)

"""What results can do by parts of the package above them: drawing and saving. Importable without jax.

The front of the package names those parts; they are imported when a result is first asked.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

_SERVICES: dict[str, str] = {}


def provide(name: str, where: str) -> None:
    """Register `module:function` under a name."""
    _SERVICES[name] = where


def service(name: str) -> Callable[..., Any]:
    """The function that was registered under a name."""
    module, _, function = _SERVICES[name].partition(":")
    return getattr(import_module(module), function)

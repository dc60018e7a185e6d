"""Settings with which a transport run takes a second, as keyword arguments and as words of a command line."""

from typing import Any

SMALL: dict[str, Any] = {"width": 8, "depth": 2, "n_interior": 256, "n_metric": 128, "minres_max": 5}
FLAGS = [flag for key, value in SMALL.items() for flag in ("--set", f"{key}={value}")]

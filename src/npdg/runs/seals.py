"""Seals: digests in result.json that tie a solution to the configuration it was computed with."""

import hashlib
import json
from pathlib import Path
from typing import Any

from npdg.errors import InputError
from npdg.runs.files import LARGEST_ARRAYS, read_bytes
from npdg.runs.reading import ARRAYS, CONFIG, Config, read_config

SEALED = ("problem", "kind", "own", "dim", "method", "preset", "seed")  # of the table [run]; a budget may change


def seals(directory: Path) -> dict[str, str]:
    """The digests of what a directory holds: of the arrays, and of what they are the solution of."""
    return {ARRAYS: _arrays(directory), CONFIG: _configuration(read_config(directory))}


def check_seals(directory: Path, config: Config, result: dict[str, Any]) -> None:
    """Refuse a solution whose arrays or configuration are not those that its result was written with."""
    known = result.get("seals")
    if not isinstance(known, dict):  # of an earlier version, which wrote none
        return
    for name, now in ((CONFIG, _configuration(config)), (ARRAYS, _arrays(directory))):
        if known.get(name) != now:
            raise InputError(
                f"run: {directory / name} is damaged or was changed: the result was written with another; restore it, "
                "or solve again."
            )


def _arrays(directory: Path) -> str:
    return hashlib.sha256(read_bytes(directory / ARRAYS, LARGEST_ARRAYS)).hexdigest()


def _configuration(config: Config) -> str:
    run = {key: config.run[key] for key in SEALED if config.run.get(key) is not None}
    facts = {"run": run, "options": config.options, "settings": config.settings}
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()

"""Seals: digests in result.json that tie a solution to the configuration it was computed with."""

import hashlib
import json
from pathlib import Path
from typing import Any

from npdg.errors import InputError
from npdg.runs.files import LARGEST_ARRAYS, read_bytes, write_json
from npdg.runs.reading import ARRAYS, CONFIG, RESULT, Config, read_config
from npdg.runs.untrusted import read_json

SEALED = ("problem", "kind", "own", "dim", "method", "preset", "seed")  # of the table [run]; a budget may change
NEXT = "next"  # The name of the seal of arrays that are being written.


def seals(directory: Path) -> dict[str, str]:
    """The digests of what a directory holds: of the arrays, and of what they are the solution of."""
    return {ARRAYS: _arrays(directory), CONFIG: _configuration(read_config(directory))}


def announce(directory: Path, arrays: bytes) -> None:
    """Let an earlier result.json vouch for the arrays that are about to be written as well as for those there are.

    A crash between the two files then leaves a solution that can be read.
    """
    result = read_json(directory / RESULT)
    if isinstance(known := result.get("seals"), dict):
        write_json(directory / RESULT, {**result, "seals": {**known, NEXT: _digest(arrays)}})


def check_seals(directory: Path, config: Config, result: dict[str, Any]) -> None:
    """Refuse a solution whose arrays or configuration are not those that its result was written with."""
    known = result.get("seals")
    if not isinstance(known, dict):  # of an earlier version, which wrote none
        return
    for name, now in ((CONFIG, _configuration(config)), (ARRAYS, _arrays(directory))):
        allowed = (known.get(name), known.get(NEXT) if name == ARRAYS else None)
        if now not in allowed:
            raise InputError(
                f"run: {directory / name} is damaged or was changed: the result was written with another; restore it, "
                "or solve again."
            )


def _arrays(directory: Path) -> str:
    return _digest(read_bytes(directory / ARRAYS, LARGEST_ARRAYS))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _configuration(config: Config) -> str:
    run = {key: config.run[key] for key in SEALED if config.run.get(key) is not None}
    facts = {"run": run, "options": config.options, "settings": config.settings}
    return _digest(json.dumps(facts, sort_keys=True, default=str).encode())

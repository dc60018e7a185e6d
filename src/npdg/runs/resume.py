"""What `npdg resume` is asked for, checked before jax is imported."""

import os
from pathlib import Path

from npdg.errors import InputError
from npdg.runs.reading import CONFIG, kind_of, read_result
from npdg.runs.request import Request, Target, read_request

OPEN_ENDS = ("interrupted", "terminated")


def read_resumption(
    directory: Path, seconds: str | None, steps: str | None, problem: str | None = None
) -> tuple[Request, Target]:
    """The request that a run began with, with another total budget if one is given; refuses what cannot go on."""
    if not os.path.lexists(directory / CONFIG):
        raise InputError(f"run: {str(directory)!r} holds no run to go on with: {CONFIG} is missing.")
    given = {"seconds": seconds, "steps": steps, "problem": problem}
    request, target = read_request(given, [], None, directory / CONFIG)
    result = read_result(directory) or None
    march = kind_of({"problem": request.problem, "kind": target.kind or request.kind}, result or {}) == "evolution"
    if march and steps is not None:
        raise InputError("steps: a march goes on to its last time as it began; leave --steps out.")
    if result is None or result["stop_reason"] in OPEN_ENDS:
        return request, target
    ended = f"run: {str(directory)!r} has ended (stopped by {result['stop_reason']} after {result['steps']} steps, "
    ended += f"{result['seconds']:.1f} s)"
    if result["stop_reason"] == "diverged":
        raise InputError(f"{ended}; start another run with other settings, or with --rollbacks 3.")
    if result["stop_reason"] == "rounding":
        raise InputError(f"{ended}; its residual is at rounding, and more time would not make the error smaller.")
    if result["stop_reason"] == "searched":
        raise InputError(f"{ended}; start another run with npdg solve and more --seconds.")
    if march and result["stop_reason"] != "seconds":
        raise InputError(f"{ended}; a march that has ended does not go on.")
    more = (request.steps is not None and request.steps > result["steps"]) or (
        request.seconds is not None and request.seconds > result["seconds"]
    )
    if not (more and (seconds or steps)):
        total = "--seconds" if march else "--steps or --seconds"
        raise InputError(f"{ended}; give a larger total {total} to go on.")
    return request, target

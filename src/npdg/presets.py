"""Which settings a preset means for one problem and method; importable without jax."""

from collections.abc import Mapping
from typing import Any

from npdg.errors import InputError, unknown
from npdg.problems import CARDS
from npdg.settings import (
    LATE_KEYS,
    METHODS,
    PRESETS,
    SHAPE_KEYS,
    Settings,
    default_presets,
    marching_preset,
    resolve,
    small_batches,
)
from npdg.sizes import parameters


def candidates(
    problem: str, dim: int, method: str, preset: str, overrides: dict[str, Any], march: Mapping[str, Any] | None = None
) -> list[Settings]:
    """The settings a run may use, in the order in which they are tried: one, or several networks to choose from.

    `march` are the options of a problem that is marched in time; nothing for one that is not.
    """
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    if preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    if preset == "default":
        presets = [marching_preset(method, dim)] if march is not None else default_presets(method, dim)
        if SHAPE_KEYS & overrides.keys():
            presets = presets[:1]
    else:
        paper = CARDS[problem].paper if problem in CARDS else None
        missing = problem if paper is None else method if method == "natural-pinn" else None
        if paper is None or missing:
            raise InputError(f"preset: 'paper' is not allowed for {missing}, which is not in the paper; give default.")
        presets = [paper(method, dim, **(march or {}))]
    # Late phase and polish compute in float64; who asks for float32 means all of it.
    own = {"late": False, "polish": False} if overrides.get("precision") == "float32" else {}
    own |= {"late": False} if LATE_KEYS & overrides.keys() else {}
    chosen = [resolve(method, {**values, **own}, overrides) for values in presets]
    if preset == "default" and march is None:
        chosen = [_remembering(settings, dim, overrides) for settings in chosen]
    return chosen


def _remembering(settings: Settings, dim: int, overrides: dict[str, Any]) -> Settings:
    """With exact duals, small batches and momentum, unless the user has set them; as they are for all others."""
    if settings.dual != "exact":
        return settings
    batches = small_batches(parameters(dim, settings.width, settings.depth, settings.last_bias))
    return settings.model_copy(update={key: value for key, value in batches.items() if key not in overrides})


def choose(
    problem: str, dim: int, method: str, preset: str, overrides: dict[str, Any], march: Mapping[str, Any] | None = None
) -> Settings:
    """The first candidate: what a run uses unless a trial finds better."""
    return candidates(problem, dim, method, preset, overrides, march)[0]

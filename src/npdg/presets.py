"""Which settings a preset means for one problem and method; importable without jax."""

from typing import Any

from npdg.errors import InputError, unknown
from npdg.problems import CARDS
from npdg.settings import METHODS, PRESETS, Settings, default_preset, resolve


def choose(problem: str, dim: int, method: str, preset: str, overrides: dict[str, Any]) -> Settings:
    """The settings of a preset for one problem and method, with some changed."""
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    if preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    if preset == "default":
        return _fitting(method, resolve(default_preset(method, dim), overrides))
    paper = CARDS[problem].paper if problem in CARDS else None
    if paper is None:
        raise InputError(f"preset: 'paper' is not allowed for {problem}, which is not in the paper; give default.")
    return _fitting(method, resolve(paper(method, dim), overrides))


def _fitting(method: str, settings: Settings) -> Settings:
    if settings.dual != "network" and method != "npdg":
        raise InputError(
            f"dual: '{settings.dual}' is not allowed for {method}, whose duals are networks; give network."
        )
    return settings

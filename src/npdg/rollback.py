"""What a run does after a fault, if it may: go back to the last good state and go on more carefully."""

import jax

from npdg.loop import Recipe, State
from npdg.settings import Settings

MOST = 3  # times in a run
DAMPED = ("npdg", "natural-pinn")


def careful(method: str, settings: Settings, times: int) -> Settings:
    """The settings after so many roll-backs: ten times the damping each, or half the steps where there is none."""
    if times == 0:
        return settings
    if method in DAMPED and settings.damping > 0:
        return settings.model_copy(update={"damping": settings.damping * 10**times})
    halved = {key: getattr(settings, key) / 2**times for key in ("tau_u", "tau_phi", "tau_psi")}
    return settings.model_copy(update=halved)


def in_words(method: str, settings: Settings) -> str:
    """What `careful` has changed."""
    if method in DAMPED and settings.damping > 0:
        return f"damping={settings.damping:g}"
    return f"tau_u={settings.tau_u:g}"


def again(recipe: Recipe, state: State, times: int) -> State:
    """The same fields at the same step, with rules that have forgotten and samples that were not seen before."""
    rules = {name: recipe.rules[name].init(state.fields[name]) for name in state.rules}
    return State(state.fields, rules, jax.random.fold_in(state.key, times), state.step)

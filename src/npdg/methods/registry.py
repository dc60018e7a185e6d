"""Methods by the kind of problem that they solve and by name. Importable without jax: a method is, when it is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

from npdg.errors import InputError, unknown
from npdg.methods.flat import FlatSettings
from npdg.methods.settings import Settings, TransportSettings

PRESETS: dict[str, str] = {
    "default": "ours: the best accuracy per second, nothing to set",
    "paper": "the settings that the paper prints",
}


class Registered(NamedTuple):
    """What a method is, in words, and where it is: `module:Class`, or the class itself."""

    title: str
    where: Any


_SAME = "the same saddle with plain gradients (the paper's ablation)"
_ADAM = "the same saddle with Adam for every player, no extrapolation"
METHODS: dict[str, dict[str, Registered]] = {
    "equation": {
        "npdg": Registered("natural primal-dual hybrid gradient", "npdg.methods.npdg:NPDG"),
        "npdg-flat": Registered(_SAME, "npdg.methods.npdg:NPDGFlat"),
        "pd-adam": Registered(_ADAM, "npdg.methods.npdg:PDAdam"),
        "pinn": Registered("physics-informed network: least squares, with Adam", "npdg.methods.pinn:PINN"),
        "pinn-lbfgs": Registered("the same with L-BFGS on fixed samples", "npdg.methods.pinn:PINNLBFGS"),
        "natural-pinn": Registered("the same with natural gradients (Gauss-Newton)", "npdg.methods.pinn:NaturalPINN"),
        "deep-ritz": Registered("minimisation of the equation's energy, with Adam", "npdg.methods.ritz:DeepRitz"),
        "wan": Registered("weak adversarial networks: the weak residual's norm as a ratio", "npdg.methods.wan:WAN"),
    },
    "transport": {
        "npdg": Registered("natural primal-dual hybrid gradient", "npdg.methods.transport:TransportNPDG"),
        "npdg-flat": Registered(_SAME, "npdg.methods.transport:TransportFlat"),
        "pd-adam": Registered(_ADAM, "npdg.methods.transport:TransportAdam"),
    },
}
MODELS: dict[str, type[FlatSettings]] = {"equation": Settings, "transport": TransportSettings}
SOLVED_BY = {"evolution": "equation"}  # kinds whose methods are those of another kind, adapted
ADAPTERS = {"evolution": "npdg.methods.march:March"}


def register(method: Any) -> Any:
    """Make a method of one's own known by its name, for the kind of problem that it solves.

    Arguments:
        method: the class, with a `name`, a `kind` and a `model` of settings; it is returned, so that this decorates it.
    """
    METHODS.setdefault(method.kind, {})[method.name] = Registered(method.title, method)
    MODELS.setdefault(method.kind, method.model)
    return method


def found(where: Any) -> Any:
    """A class by its place."""
    if not isinstance(where, str):
        return where
    module, _, name = where.partition(":")
    return getattr(import_module(module), name)


def make_method(kind: str, name: str, **how: Any) -> Any:
    """The method of that name for a kind of problem, or an `InputError` with those there are."""
    known = method_names(kind)
    if name not in method_titles():
        raise unknown("method", name, known)
    if name not in known:
        raise InputError(f"method: {name!r} is not allowed for {kind}; give {', '.join(known)}.")
    return found(METHODS[SOLVED_BY.get(kind, kind)][name].where)(**how).adapted(kind)


def models(kind: str | None) -> list[type[FlatSettings]]:
    """The settings that methods for a kind of problem have; of all kinds if that is not known."""
    return list(MODELS.values()) if kind is None else [MODELS[SOLVED_BY.get(kind, kind)]]


def method_names(kind: str) -> list[str]:
    """The methods for a kind of problem."""
    return list(METHODS[SOLVED_BY.get(kind, kind)])


def method_titles() -> dict[str, str]:
    """Every method by name, with what it is."""
    titles: dict[str, str] = {}
    for methods in METHODS.values():
        titles = {name: entry.title for name, entry in methods.items()} | titles
    return titles

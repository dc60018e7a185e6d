"""Methods: a formulation, networks and a rule per player, chosen by settings."""

from collections.abc import Callable

import jax
import optax
from jax import Array

from npdg.errors import unknown
from npdg.fields import MLP, CutOff, Field, PReLU, Sine, Softplus, Tanh
from npdg.formulations.inf_sup import inf_sup
from npdg.krylov import Solver, cg, dense, minres
from npdg.loop import Recipe
from npdg.pde import PDE
from npdg.rules import Rule, from_optax, natural, plain
from npdg.saddle import Fields
from npdg.settings import METHODS, Settings

ACTIVATIONS: dict[str, Callable[[Settings], Callable[[Array], Array]]] = {
    "tanh": lambda s: Tanh(),
    "softplus": lambda s: Softplus(s.softplus_beta),
    "prelu": lambda s: PReLU(),
    "sine": lambda s: Sine(),
}
SOLVERS: dict[str, Callable[[Settings], Solver]] = {
    "minres": lambda s: minres(s.minres_rtol, s.minres_max, stop=s.minres_stop),
    "cg": lambda s: cg(s.minres_rtol, s.minres_max),
    "dense": lambda s: dense(),
}
RULES: dict[str, Callable[[float, Settings], Rule]] = {
    "npdg": lambda tau, s: natural(tau, SOLVERS[s.solver](s), damping=s.damping),
    "npdg-flat": lambda tau, s: plain(tau),
    "pd-adam": lambda tau, s: from_optax(optax.adam(tau)),
}


def network(settings: Settings, dim: int, width: int, key: Array, *, last_bias: bool) -> MLP:
    """A network as the settings describe it."""
    activation = ACTIVATIONS[settings.activation](settings)
    return MLP(dim, width, settings.depth, activation=activation, last_bias=last_bias, key=key)


def primal(pde: PDE, settings: Settings, key: Array) -> Field:
    """The field u before training; also the template into which a saved one is read."""
    return network(settings, pde.dim, settings.width, key, last_bias=False)


def recipe(pde: PDE, method: str, settings: Settings) -> Recipe:
    """All that a run of one method on one equation needs."""
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    rule = RULES[method]

    def start(key: Array) -> Fields:
        # φ alone has a bias in its last layer, as in the authors' networks.
        u_key, phi_key, psi_key = jax.random.split(key, 3)
        return {
            "u": primal(pde, settings, u_key),
            "phi": CutOff(pde.domain, network(settings, pde.dim, settings.width, phi_key, last_bias=True)),
            "psi": network(settings, pde.dim, settings.psi_width, psi_key, last_bias=False),
        }

    return Recipe(
        saddle=inf_sup(
            pde, nu=settings.nu, lam=settings.lam, pairing=settings.pairing, boundary_norm=settings.boundary_norm
        ),
        start=start,
        rules={
            "u": rule(settings.tau_u, settings),
            "phi": rule(settings.tau_phi, settings),
            "psi": rule(settings.tau_psi, settings),
        },
        sizes={"interior": settings.n_interior, "boundary": settings.n_boundary},
        omega=settings.omega,
    )

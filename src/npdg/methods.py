"""Methods: a formulation, networks and a rule per player, chosen by settings."""

from collections.abc import Callable
from dataclasses import replace

import jax
from jax import Array

from npdg.directions import Prepare, by_factors, by_products, by_rows
from npdg.errors import InputError, unknown
from npdg.fields import MLP, Centred, CutOff, Field, PReLU, Sine, Softplus, Tanh
from npdg.formulations.inf_sup import inf_sup, natural_condition
from npdg.formulations.least_squares import least_squares
from npdg.formulations.ritz import ritz
from npdg.formulations.tangent import tangent
from npdg.formulations.weak_adversarial import weak_adversarial
from npdg.krylov import cg, lsmr, minres
from npdg.loop import Recipe
from npdg.optimizers import adam, lbfgs
from npdg.pde import PDE, Neumann
from npdg.rules import Rule, guarded, natural, plain, trusted
from npdg.saddle import Fields, OnePoint, Saddle
from npdg.settings import METHODS, Settings

ACTIVATIONS: dict[str, Callable[[Settings], Callable[[Array], Array]]] = {
    "tanh": lambda s: Tanh(),
    "softplus": lambda s: Softplus(s.softplus_beta),
    "prelu": lambda s: PReLU(),
    "sine": lambda s: Sine(),
}
SOLVERS: dict[str, Callable[[Settings], Prepare]] = {
    "minres": lambda s: by_products(minres(s.minres_rtol, s.minres_max, stop=s.minres_stop)),
    "cg": lambda s: by_products(cg(s.minres_rtol, s.minres_max)),
    "lsmr": lambda s: by_rows(lsmr(s.minres_rtol, s.minres_max)),
    "dense": lambda s: by_factors(),
}
RULES: dict[str, Callable[[float, Settings], Rule]] = {
    "npdg": lambda tau, s: natural(tau, SOLVERS[s.solver](s), damping=s.damping),
    "npdg-flat": lambda tau, s: plain(tau),
    "pd-adam": lambda tau, s: adam(tau, s.rate_decay),
    "wan": lambda tau, s: adam(tau, s.rate_decay),
    "pinn": lambda tau, s: adam(tau, s.rate_decay),
    "deep-ritz": lambda tau, s: adam(tau, s.rate_decay),
    "pinn-lbfgs": lambda tau, s: lbfgs(tau, line_search=s.line_search),
    "natural-pinn": lambda tau, s: trusted(SOLVERS[s.solver](s), damping=s.damping, momentum=s.momentum),
}


def network(settings: Settings, pde: PDE, width: int, key: Array, *, last_bias: bool) -> Field:
    """A network as the settings describe it."""
    activation = ACTIVATIONS[settings.activation](settings)
    net = MLP(
        pde.dim,
        width,
        settings.depth,
        activation=activation,
        squares=settings.squares,
        last_bias=last_bias,
        steepness=settings.steepness,
        axes=settings.axes,
        key=key,
    )
    return Centred(pde.domain, net) if settings.centred else net


def primal(pde: PDE, settings: Settings, key: Array) -> Field:
    """The field u before training; also the template into which a saved one is read."""
    return network(settings, pde, settings.width, key, last_bias=settings.last_bias)


def phi_network(pde: PDE, settings: Settings, key: Array) -> Field:
    """A test function φ: a network that vanishes on the boundary, with a bias in its last layer as the authors' has."""
    return CutOff(pde.domain, network(settings, pde, settings.width, key, last_bias=True))


def recipe(pde: PDE, method: str, settings: Settings) -> Recipe:
    """All that a run of one method on one equation needs."""
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    by_dual = {"tangent": True, "network": settings.pairing == "weak"}
    if pde.sampling is not None and (method in ("wan", "deep-ritz") or by_dual.get(settings.dual, False)):
        remedy = {"tangent": "dual=exact", "network": "pairing=strong"}.get(settings.dual, "method=npdg and dual=exact")
        raise InputError(
            "sampling: a measure of your own is not allowed where the weak form is integrated, which asks for uniform "
            f"points; set {remedy}, or leave PDE(sampling=...) out."
        )
    return replace(RECIPES[method](pde, method, settings), given=_given(pde))


def _given(pde: PDE) -> dict[str, tuple[str, OnePoint]]:
    """The functions of a point that the equation was given."""
    return {
        "the source": ("interior", lambda fields, point: pde.at(fields).source(point.x)),
        "the boundary's data": ("boundary", lambda fields, point: pde.at(fields).boundary.data(point.x)),
    }


def natural_duals(pde: PDE, method: str, settings: Settings) -> Recipe:
    """NPDG with the dual players that the settings name."""
    return DUALS[settings.dual](pde, method, settings)


def exact_dual(pde: PDE, method: str, settings: Settings) -> Recipe:
    """u alone descends, in the metric of the residual, where the dual players are known in closed form."""
    saddle = least_squares(pde, lam=settings.lam, boundary_norm=settings.boundary_norm)
    # With the duals in closed form, NPDG's natural step is that of Gauss and Newton.
    return _descent(saddle, pde, "natural-pinn" if method == "npdg" else method, settings)


def deep_ritz(pde: PDE, method: str, settings: Settings) -> Recipe:
    """u alone descends the energy."""
    return _descent(ritz(pde, lam=settings.lam), pde, method, settings)


def _descent(saddle: Saddle, pde: PDE, method: str, settings: Settings) -> Recipe:
    return Recipe(
        saddle=saddle,
        start=lambda key: {"u": primal(pde, settings, key)},
        rules={"u": RULES[method](settings.tau_u, settings)},
        sizes=_sizes(settings),
        resample=method != "pinn-lbfgs",  # whose memory of gradients means nothing on other samples
    )


def adversarial(pde: PDE, method: str, settings: Settings) -> Recipe:
    """u against one test network, in the objective of WAN."""

    def start(key: Array) -> Fields:
        u_key, phi_key = jax.random.split(key)
        return {"u": primal(pde, settings, u_key), "phi": phi_network(pde, settings, phi_key)}

    rule = RULES[method]
    return Recipe(
        saddle=weak_adversarial(pde, lam=settings.lam),
        start=start,
        rules={"u": rule(settings.tau_u, settings), "phi": rule(settings.tau_phi, settings)},
        sizes=_sizes(settings),
    )


def tangent_dual(pde: PDE, method: str, settings: Settings) -> Recipe:
    """φ is maximised exactly in the tangent space of u; u descends in the gradient metric, watched by the supremum."""
    solve = SOLVERS[settings.solver](settings)
    return Recipe(
        saddle=tangent(
            pde, nu=settings.nu, lam=settings.lam, boundary_norm=settings.boundary_norm, metric=settings.metric
        ),
        start=lambda key: {"u": primal(pde, settings, key)},
        rules={
            "phi": natural(1 / settings.nu, solve, damping=1e-6),
            "u": guarded(solve, tau=settings.tau_u, damping=settings.damping),
        },
        sizes={**_sizes(settings), "metric": settings.n_metric},
    )


def network_duals(pde: PDE, method: str, settings: Settings) -> Recipe:
    """The paper's method: networks φ and ψ ascend, are extrapolated, and u descends."""
    rule = RULES[method]
    if settings.neumann == "natural" and isinstance(pde.boundary, Neumann):
        return _free_dual(pde, method, settings)

    def start(key: Array) -> Fields:
        u_key, phi_key, psi_key = jax.random.split(key, 3)
        return {
            "u": primal(pde, settings, u_key),
            "phi": phi_network(pde, settings, phi_key),
            "psi": network(settings, pde, settings.psi_width, psi_key, last_bias=False),
        }

    return Recipe(
        saddle=inf_sup(
            pde,
            nu=settings.nu,
            lam=settings.lam,
            pairing=settings.pairing,
            boundary_norm=settings.boundary_norm,
            metric=settings.metric,
            residual_weight=settings.residual_weight,
        ),
        start=start,
        rules={
            "u": rule(settings.tau_u, settings),
            "phi": rule(settings.tau_phi, settings),
            "psi": rule(settings.tau_psi, settings),
        },
        sizes=_sizes(settings),
        omega=settings.omega,
    )


def _free_dual(pde: PDE, method: str, settings: Settings) -> Recipe:
    """A φ that is free on the boundary, through which a given flux is the weak form's own condition."""
    if settings.pairing == "strong":
        raise InputError("neumann: 'natural' is not allowed with pairing=strong; set pairing=weak, or neumann=tested.")

    def start(key: Array) -> Fields:
        u_key, phi_key = jax.random.split(key)
        phi = network(settings, pde, settings.width, phi_key, last_bias=True)
        return {"u": primal(pde, settings, u_key), "phi": phi}

    return Recipe(
        saddle=natural_condition(pde, nu=settings.nu, metric=settings.metric),
        start=start,
        rules={"u": RULES[method](settings.tau_u, settings), "phi": RULES[method](settings.tau_phi, settings)},
        sizes=_sizes(settings),
        omega=settings.omega,
    )


def _sizes(settings: Settings) -> dict[str, int]:
    return {"interior": settings.n_interior, "boundary": settings.n_boundary}


DUALS: dict[str, Callable[[PDE, str, Settings], Recipe]] = {
    "network": network_duals,
    "tangent": tangent_dual,
    "exact": exact_dual,
}
RECIPES: dict[str, Callable[[PDE, str, Settings], Recipe]] = {
    "npdg": natural_duals,
    "npdg-flat": network_duals,
    "pd-adam": network_duals,
    "pinn": exact_dual,
    "pinn-lbfgs": exact_dual,
    "natural-pinn": exact_dual,
    "deep-ritz": deep_ritz,
    "wan": adversarial,
}

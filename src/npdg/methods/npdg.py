"""The natural primal-dual hybrid gradient method, and the same saddle with first-order rules."""

import abc
from collections.abc import Sequence
from typing import Any, ClassVar

import jax
from jax import Array

from npdg.errors import InputError
from npdg.formulations.inf_sup import inf_sup, natural_condition
from npdg.formulations.separation import separating_degree
from npdg.formulations.tangent import tangent
from npdg.geometry.domain import Domain
from npdg.methods import building
from npdg.methods.equation import EquationMethod
from npdg.methods.presets.default import (
    ADAM,
    EXACT_DUAL_UP_TO,
    PRODUCTS_FROM,
    default_presets,
    marching_preset,
    products_preset,
    small_batches,
)
from npdg.methods.settings import Network, Settings
from npdg.rules.base import Rule
from npdg.rules.guarded import guarded
from npdg.rules.natural import natural, plain
from npdg.rules.optax import adam
from npdg.training.stages.base import Stage
from npdg.training.stages.correction import Correct
from npdg.training.stages.descent import Descend, Review
from npdg.training.stages.handover import HandOver
from npdg.training.stages.selection import Select, TakeBetter
from npdg.training.step import Recipe


class NetworkDuals(EquationMethod):
    """Networks φ and ψ ascend, are extrapolated, and u descends; each player by the rule of the method."""

    duals: ClassVar[tuple[str, ...]] = ("network",)

    @abc.abstractmethod
    def rule(self, tau: float, settings: Settings) -> Rule:
        """How a player moves."""

    def recipe(self, problem: Any, settings: Settings) -> Recipe:
        """The saddle of u, φ and ψ; where a given flux is natural, of u and a φ that is free on the boundary."""
        equation, functional = problem.representative(), settings.functional
        self.check_sampling(equation, settings)
        free = functional.neumann == "natural" and not equation.boundary.essential
        if free and functional.pairing == "strong":
            raise InputError(
                "neumann: 'natural' is not allowed with pairing=strong; set pairing=weak, or neumann=tested."
            )
        shared = {"nu": functional.nu, "metric": functional.metric, "structure": building.structure(equation, settings)}
        others = {key: getattr(functional, key) for key in ("lam", "pairing", "boundary_norm", "residual_weight")}
        saddle = lambda pde: natural_condition(pde, **shared) if free else inf_sup(pde, **shared, **others)
        players = ("u", "phi") if free else ("u", "phi", "psi")
        return Recipe(
            lower=building.lowered(problem, saddle),
            start=lambda key: self._start(problem.domain, settings.network, free, key),
            rules={name: self.rule(getattr(settings.steps, name), settings) for name in players},
            sizes=building.sizes(settings),
            omega=settings.steps.omega,
        )

    def _start(self, domain: Domain, shape: Network, free: bool, key: Array) -> dict[str, Any]:
        keys = jax.random.split(key, 2 if free else 3)
        u = building.primal(domain, shape, keys[0], self.network)
        if free:
            return {"u": u, "phi": building.network(shape, domain, shape.width, keys[1], last_bias=True)}
        psi = building.network(shape, domain, shape.psi_width, keys[2], last_bias=False)
        return {"u": u, "phi": building.test_function(domain, shape, keys[1]), "psi": psi}


class NPDG(NetworkDuals):
    """Natural primal-dual hybrid gradients, with test networks as in the paper, or with duals that are maximised.

    With `dual="tangent"` φ is maximised in the tangent space of u, with `dual="exact"` in closed form.
    """

    name = "npdg"
    duals = ("network", "tangent", "exact")
    damped = True

    def defaults(self, dim: int) -> list[dict[str, Any]]:
        return default_presets(dim)

    def presets(self, problem: Any) -> list[dict[str, Any]]:
        """Those by dimension, and before them products of functions of one coordinate, if the source is a few such."""
        usual = super().presets(problem)
        own = self.preset != "default" or self.changes or self.network is not None or problem.kind != self.kind
        if own or not PRODUCTS_FROM <= problem.dim <= EXACT_DUAL_UP_TO:
            return usual
        degree = separating_degree(problem)
        return usual if degree is None else [products_preset(problem.dim, degree), *usual]

    def marching(self, dim: int) -> dict[str, Any]:
        return marching_preset(dim)

    def check(self, settings: Settings) -> None:
        super().check(settings)
        dual = settings.functional.dual
        if dual != "network" and settings.solver.damping == 0:
            raise InputError(f"damping: 0 is not allowed with dual={dual}, which adapts it; give 0.001, say.")

    def strong(self, settings: Settings) -> bool:
        return settings.functional.dual != "network" or super().strong(settings)

    def remembers(self, settings: Settings) -> bool:
        return settings.functional.dual == "exact"

    def completed(self, settings: Settings, dim: int) -> Settings:
        """With exact duals, small batches and momentum, unless the user has set them; as they are for all others."""
        if self.preset != "default" or settings.functional.dual != "exact":
            return settings
        batches = small_batches(self.parameters(settings, dim))
        return settings.changed(**{key: value for key, value in batches.items() if key not in self.changes})

    def rule(self, tau: float, settings: Settings) -> Rule:
        return natural(tau, building.direction(settings.solver), damping=settings.solver.damping)

    def recipe(self, problem: Any, settings: Settings) -> Recipe:
        if settings.functional.dual == "exact":  # NPDG's natural step is then that of Gauss and Newton
            return building.gauss_newton(self, problem, settings)
        if settings.functional.dual == "tangent":
            return self._tangent_dual(problem, settings)
        return super().recipe(problem, settings)

    def stages(self, problem: Any, settings: Settings) -> Sequence[Stage]:
        review = Review(plateau=settings.functional.dual != "network")
        # Who has set a number means the networks that it is for.
        return (Select(features=not self.changes), Descend(), HandOver(), review, Correct(), TakeBetter())

    def _tangent_dual(self, problem: Any, settings: Settings) -> Recipe:
        """φ is maximised in the tangent space of u; u descends in the gradient metric, watched by the supremum."""
        equation, functional = problem.representative(), settings.functional
        self.check_sampling(equation, settings)
        solve = building.direction(settings.solver)
        structure = building.structure(equation, settings)
        saddle = lambda pde: tangent(
            pde,
            nu=functional.nu,
            lam=functional.lam,
            boundary_norm=functional.boundary_norm,
            metric=functional.metric,
            structure=structure,
        )
        return Recipe(
            lower=building.lowered(problem, saddle),
            start=self.start(problem, settings),
            rules={
                "phi": natural(1 / functional.nu, solve, damping=1e-6),
                "u": guarded(solve, tau=settings.steps.u, damping=settings.solver.damping),
            },
            sizes={**building.sizes(settings), "metric": settings.samples.metric},
        )


class NPDGFlat(NetworkDuals):
    """The saddle of NPDG with plain gradients."""

    name = "npdg-flat"

    def defaults(self, dim: int) -> list[dict[str, Any]]:
        taus = {"tau_u": 1e-2, "tau_phi": 1e-2, "tau_psi": 1e-2}
        return [{**taus, "omega": 1.0, "n_boundary": max(400, 40 * dim)}]

    def rule(self, tau: float, settings: Settings) -> Rule:
        return plain(tau)


class PDAdam(NetworkDuals):
    """The saddle of NPDG with Adam for every player."""

    name = "pd-adam"

    def defaults(self, dim: int) -> list[dict[str, Any]]:
        return [{**ADAM, "n_boundary": max(400, 40 * dim)}]

    def rule(self, tau: float, settings: Settings) -> Rule:
        return adam(tau, settings.steps.rate_decay)

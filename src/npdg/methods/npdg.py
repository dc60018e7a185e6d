"""The natural primal-dual hybrid gradient method, and the same saddle with first-order rules."""

from collections.abc import Sequence
from typing import Any, ClassVar

import jax
from jax import Array

from npdg.errors import InputError
from npdg.formulations.inf_sup import inf_sup, natural_condition
from npdg.formulations.tangent import tangent
from npdg.methods import building
from npdg.methods.equation import EquationMethod
from npdg.methods.presets.baselines import ADAM
from npdg.methods.presets.default import default_presets, marching_preset, small_batches
from npdg.methods.settings import Settings
from npdg.rules.base import Rule
from npdg.rules.guarded import guarded
from npdg.rules.natural import natural, plain
from npdg.rules.optax import adam
from npdg.training.stages.base import Stage
from npdg.training.stages.correction import Correct
from npdg.training.stages.descent import Descend, Review
from npdg.training.stages.handover import HandOver
from npdg.training.stages.selection import Select
from npdg.training.step import Recipe


class NetworkDuals(EquationMethod):
    """Networks φ and ψ ascend, are extrapolated, and u descends; each player by the rule of the method."""

    duals: ClassVar[tuple[str, ...]] = ("network",)

    def rule(self, tau: float, settings: Settings) -> Rule:
        """How a player moves."""
        raise NotImplementedError

    def recipe(self, problem: Any, settings: Settings) -> Recipe:

        equation = problem.representative()
        self.check_sampling(equation, settings)
        functional, steps, shape = settings.functional, settings.steps, settings.network
        if functional.neumann == "natural" and not equation.boundary.essential:
            return self._free_dual(problem, settings)
        structure = building.structure(equation, settings)

        def start(key: Array) -> dict[str, Any]:
            u_key, phi_key, psi_key = jax.random.split(key, 3)
            return {
                "u": building.primal(problem.domain, shape, u_key, self.network),
                "phi": building.test_function(problem.domain, shape, phi_key),
                "psi": building.network(shape, problem.domain, shape.psi_width, psi_key, last_bias=False),
            }

        saddle = lambda pde: inf_sup(
            pde,
            nu=functional.nu,
            lam=functional.lam,
            pairing=functional.pairing,
            boundary_norm=functional.boundary_norm,
            metric=functional.metric,
            residual_weight=functional.residual_weight,
            structure=structure,
        )
        return Recipe(
            lower=building.lowered(problem, saddle),
            start=start,
            rules={name: self.rule(getattr(steps, name), settings) for name in ("u", "phi", "psi")},
            sizes=building.sizes(settings),
            omega=steps.omega,
        )

    def _free_dual(self, problem: Any, settings: Settings) -> Recipe:
        """A φ that is free on the boundary, through which a given flux is the weak form's own condition."""

        functional, steps, shape = settings.functional, settings.steps, settings.network
        if functional.pairing == "strong":
            raise InputError(
                "neumann: 'natural' is not allowed with pairing=strong; set pairing=weak, or neumann=tested."
            )
        structure = building.structure(problem.representative(), settings)

        def start(key: Array) -> dict[str, Any]:
            u_key, phi_key = jax.random.split(key)
            phi = building.network(shape, problem.domain, shape.width, phi_key, last_bias=True)
            return {"u": building.primal(problem.domain, shape, u_key, self.network), "phi": phi}

        saddle = lambda pde: natural_condition(pde, nu=functional.nu, metric=functional.metric, structure=structure)
        return Recipe(
            lower=building.lowered(problem, saddle),
            start=start,
            rules={name: self.rule(getattr(steps, name), settings) for name in ("u", "phi")},
            sizes=building.sizes(settings),
            omega=steps.omega,
        )


class NPDG(NetworkDuals):
    """Natural primal-dual hybrid gradients, with test networks as in the paper, or with duals that are maximised.

    With `dual="tangent"` φ is maximised in the tangent space of u, with `dual="exact"` in closed form.
    """

    name = "npdg"
    duals = ("network", "tangent", "exact")
    damped = True

    def defaults(self, dim: int) -> list[dict[str, Any]]:
        return default_presets(dim)

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
        if settings.functional.dual == "exact":
            return self._exact_dual(problem, settings)
        if settings.functional.dual == "tangent":
            return self._tangent_dual(problem, settings)
        return super().recipe(problem, settings)

    def stages(self, problem: Any, settings: Settings) -> Sequence[Stage]:

        return (Select(), Descend(), HandOver(), Review(plateau=settings.functional.dual != "network"), Correct())

    def _exact_dual(self, problem: Any, settings: Settings) -> Recipe:
        """u alone descends, in the metric of the residual, where the dual players are known in closed form.

        NPDG's natural step is then that of Gauss and Newton.
        """

        return building.gauss_newton(self, problem, settings)

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

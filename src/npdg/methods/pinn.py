"""Physics-informed networks: least squares of the strong residual, with three optimisers."""

from typing import Any

from npdg.errors import InputError
from npdg.methods.building import gauss_newton, least_squares_recipe
from npdg.methods.equation import EquationMethod
from npdg.methods.presets.default import ALONE, EXACT_DUAL_UP_TO
from npdg.methods.settings import Settings
from npdg.rules.optax import adam, lbfgs
from npdg.training.step import Recipe


class PINN(EquationMethod):
    """A physics-informed network, trained with Adam."""

    name = "pinn"

    def defaults(self, dim: int) -> list[dict[str, Any]]:
        return [{**ALONE, "tau_u": 1e-2, "n_interior": 300, "n_boundary": 200}]

    def strong(self, settings: Settings) -> bool:
        return True

    def recipe(self, problem: Any, settings: Settings) -> Recipe:
        return least_squares_recipe(self, problem, settings, adam(settings.steps.u, settings.steps.rate_decay))


class PINNLBFGS(PINN):
    """A physics-informed network, trained with L-BFGS, whose memory of gradients means nothing on other samples."""

    name = "pinn-lbfgs"

    def defaults(self, dim: int) -> list[dict[str, Any]]:
        return [{**ALONE, "tau_u": 1.0, "n_interior": 1000, "precision": "float64"}]

    def recipe(self, problem: Any, settings: Settings) -> Recipe:
        rule = lbfgs(settings.steps.u, line_search=settings.steps.line_search)
        return least_squares_recipe(self, problem, settings, rule, resample=False)


class NaturalPINN(PINN):
    """A physics-informed network, trained with the natural gradient."""

    name = "natural-pinn"
    in_paper = False
    damped = True

    def defaults(self, dim: int) -> list[dict[str, Any]]:
        own = {"depth": 2, "damping": 1e-3, "solver": "dense", "n_boundary": 200, "precision": "float64"}
        return [{**ALONE, **own, "n_interior": 1500 if dim <= EXACT_DUAL_UP_TO else 500}]

    def check(self, settings: Settings) -> None:
        super().check(settings)
        if settings.solver.damping == 0:
            raise InputError(f"damping: 0 is not allowed with {self.name}, which adapts it; give 0.001, say.")

    def remembers(self, settings: Settings) -> bool:
        return True

    def recipe(self, problem: Any, settings: Settings) -> Recipe:
        return gauss_newton(self, problem, settings)

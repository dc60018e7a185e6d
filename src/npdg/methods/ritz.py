"""Deep Ritz: u minimises the equation's energy, with Adam."""

from typing import Any

from npdg.formulations.ritz import energy_nodes, ritz
from npdg.methods import building
from npdg.methods.equation import EquationMethod
from npdg.methods.presets.default import ALONE
from npdg.methods.settings import Settings
from npdg.rules.optax import adam
from npdg.training.step import Recipe


class DeepRitz(EquationMethod):
    """Minimisation of the energy whose derivative is the equation, or the step of an evolution."""

    name = "deep-ritz"
    weak_form = True
    reports_residual = False

    def defaults(self, dim: int) -> list[dict[str, Any]]:
        return [{**ALONE, "tau_u": 1e-2, "lam": 1e3}]

    def recipe(self, problem: Any, settings: Settings) -> Recipe:
        equation, lam = problem.representative(), settings.functional.lam
        self.check_sampling(equation, settings)
        nodes = energy_nodes(equation)
        # A march looks at the residual to end its steps; an equation pays for no residual that it does not descend.
        measured = problem.kind == "evolution"
        return Recipe(
            lower=building.lowered(problem, lambda pde: ritz(pde, nodes, lam=lam, measured=measured)),
            start=self.start(problem, settings),
            rules={"u": adam(settings.steps.u, settings.steps.rate_decay)},
            sizes=building.sizes(settings),
        )

"""Weak adversarial networks: u against one test network, with Adam."""

from typing import Any

import jax
from jax import Array

from npdg.formulations.weak_adversarial import weak_adversarial
from npdg.methods import building
from npdg.methods.equation import EquationMethod
from npdg.methods.presets.default import ADAM, ALONE
from npdg.methods.settings import Settings
from npdg.rules.optax import adam
from npdg.training.step import Recipe


class WAN(EquationMethod):
    """The norm of the weak residual as a ratio, which a test network maximises and u minimises."""

    name = "wan"
    duals = ("network",)
    weak_form = True

    def defaults(self, dim: int) -> list[dict[str, Any]]:
        own = {"dual": "network", "tau_phi": 1e-2, "lam": 1e4, "rate_decay": 0.0}
        return [{**ALONE, **ADAM, **own}]

    def counts(self, settings: Settings, dim: int) -> dict[str, int]:
        return {name: count for name, count in super().counts(settings, dim).items() if name != "ψ"}

    def recipe(self, problem: Any, settings: Settings) -> Recipe:
        self.check_sampling(problem.representative(), settings)
        shape, steps = settings.network, settings.steps

        def start(key: Array) -> dict[str, Any]:
            u_key, phi_key = jax.random.split(key)
            phi = building.test_function(problem.domain, shape, phi_key)
            return {"u": building.primal(problem.domain, shape, u_key, self.network), "phi": phi}

        return Recipe(
            lower=building.lowered(problem, lambda pde: weak_adversarial(pde, lam=settings.functional.lam)),
            start=start,
            rules={name: adam(getattr(steps, name), steps.rate_decay) for name in ("u", "phi")},
            sizes=building.sizes(settings),
        )

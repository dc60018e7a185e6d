"""npdg: partial differential equations solved by natural primal-dual hybrid gradients.

Names are loaded on first use, so that `import npdg` and the command line's help do not wait for jax.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from npdg.calculus import div, grad, laplacian, normal_derivative, tangential_gradient
    from npdg.distributions import Gaussian, GaussianMixture
    from npdg.domains import Ball, Box, Domain
    from npdg.errors import InputError
    from npdg.evolution import Evolution
    from npdg.measures import Mixture
    from npdg.pair import Pair
    from npdg.pde import PDE, Dirichlet, Neumann
    from npdg.runs.tracking import tracker
    from npdg.solution import Solution, load, solve
    from npdg.trajectory import Trajectory, march
    from npdg.transportation import TransportSolution, transport

__version__ = "0.1.0"

_HOME = {
    "div": "calculus",
    "grad": "calculus",
    "laplacian": "calculus",
    "normal_derivative": "calculus",
    "tangential_gradient": "calculus",
    "Ball": "domains",
    "Box": "domains",
    "Domain": "domains",
    "InputError": "errors",
    "PDE": "pde",
    "Dirichlet": "pde",
    "Neumann": "pde",
    "Solution": "solution",
    "load": "solution",
    "solve": "solution",
    "Evolution": "evolution",
    "Mixture": "measures",
    "Pair": "pair",
    "Trajectory": "trajectory",
    "march": "trajectory",
    "Gaussian": "distributions",
    "GaussianMixture": "distributions",
    "tracker": "runs.tracking",
    "TransportSolution": "transportation",
    "transport": "transportation",
}

__all__ = [
    "PDE",
    "Ball",
    "Box",
    "Dirichlet",
    "Domain",
    "Evolution",
    "Gaussian",
    "GaussianMixture",
    "InputError",
    "Mixture",
    "Neumann",
    "Pair",
    "Solution",
    "Trajectory",
    "TransportSolution",
    "div",
    "grad",
    "laplacian",
    "load",
    "march",
    "normal_derivative",
    "solve",
    "tangential_gradient",
    "tracker",
    "transport",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'npdg' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"npdg.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_HOME]

"""What the paper fixes for all its elliptic experiments (Sec. 5 and Table 2)."""

from typing import Any

COMMON: dict[str, Any] = {
    "tau_u": 0.05,
    "tau_phi": 0.095,
    "tau_psi": 0.095,
    "omega": 1.0,
    "nu": 1.0,
    "lam": 10.0,
    "width": 256,
    "depth": 4,
    "activation": "tanh",
    "centred": False,
    "last_bias": False,
    "dual": "network",
    "pairing": "weak",
    "metric": "gradient",
    "boundary_norm": "l2",
    "solver": "minres",
    "minres_rtol": 1e-3,
    "minres_max": 1000,
    "minres_stop": "scipy",
    "damping": 0.0,
    "precision": "float32",
}

# L-BFGS as the authors run it: unit steps on one set of samples.
UNIT_STEPS: dict[str, Any] = {"tau_u": 1.0, "line_search": False}


def rates(u: float, phi: float, **others: Any) -> dict[str, Any]:
    """The step sizes of a method that plays with Adam, and what else Table 2 says of it."""
    return {"tau_u": u, "tau_phi": phi, "tau_psi": phi, "omega": 0.0, **others}


def alone(rate: float, lam: float, n_interior: int = 4000) -> dict[str, Any]:
    """A method of Table 2 without a test network, with Adam."""
    return {"dual": "none", "tau_u": rate, "lam": lam, "n_interior": n_interior, "boundary_norm": "l2"}

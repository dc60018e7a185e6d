"""What the paper fixes for all its elliptic experiments (Sec. 5)."""

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

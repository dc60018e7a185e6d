"""Numbers that several of the methods to compare with share."""

from typing import Any

# Chosen on 10-D Poisson at 15 s among rates, weights λ, depths and batches, each by itself; docs/baselines.md.
ALONE: dict[str, Any] = {
    "dual": "none",
    "boundary_norm": "l2",
    "lam": 1e2,
    "width": 64,
    "depth": 3,
    "pairing": "weak",
    "rate_decay": 1e-3,
}
ADAM: dict[str, Any] = {"tau_u": 1e-3, "tau_phi": 1e-3, "tau_psi": 1e-3, "omega": 0.0}

"""The numbers that the paper prints in its tables."""

from typing import Any

# Table 1, with widths and depths as (u and φ, ψ, linear maps).
TABLE1: dict[int, dict[str, Any]] = {
    10: {"width": 256, "psi_width": 128, "depth": 4, "n_interior": 4000, "n_boundary": 800, "tau_u": 0.1}
    | {"tau_phi": 0.19, "tau_psi": 0.19, "minres_rtol": 0.5e-3},
    20: {"width": 256, "psi_width": 128, "depth": 4, "n_interior": 4000, "n_boundary": 1600, "tau_u": 0.05}
    | {"tau_phi": 0.095, "tau_psi": 0.095, "minres_rtol": 0.5e-3},
    50: {"width": 256, "psi_width": 128, "depth": 6, "n_interior": 6000, "n_boundary": 4000, "tau_u": 0.05}
    | {"tau_phi": 0.095, "tau_psi": 0.095, "minres_rtol": 1e-4},
}
# Table 2: λ, rates, samples; one row an equation, dimension and method.
TABLE2: list[tuple[str, int, str, dict[str, Any]]] = [
    ("poisson", 50, "pinn", {"lam": 1e4, "tau_u": 1e-4, "n_interior": 4000, "n_boundary": 4000, "depth": 6}),
    ("poisson", 50, "deep-ritz", {"lam": 1e4, "tau_u": 1e-4, "n_interior": 4000, "n_boundary": 4000, "depth": 6}),
    ("poisson", 50, "wan", {"lam": 1e4, "tau_u": 0.5e-3, "tau_phi": 0.5e-2, "n_interior": 10000, "n_boundary": 3000}),
    *[
        row
        for d in (10, 20, 50)
        for row in (
            ("varcoeff", d, "pinn", {"lam": 1e4, "tau_u": 1e-4, "n_interior": 4000, "n_boundary": 80 * d}),
            ("varcoeff", d, "deep-ritz", {"lam": 1e3, "tau_u": 0.5e-3, "n_interior": 4000, "n_boundary": 80 * d}),
            ("varcoeff", d, "wan", {"lam": 1e4, "tau_u": 0.5e-2 if d == 10 else 0.5e-3, "n_interior": 4000}),
        )
    ],
    ("nonlinear", 5, "pinn", {"lam": 1e4, "tau_u": 1e-4, "n_interior": 4000, "n_boundary": 200}),
    ("nonlinear", 5, "wan", {"lam": 1e3, "tau_u": 0.5e-3, "tau_phi": 0.5e-2, "n_interior": 4000, "n_boundary": 200}),
]
# Table 3: ‖u*‖ and ‖∇u*‖ in L² of the uniform probability measure.
TABLE3: dict[tuple[str, int], tuple[float, float]] = {
    ("poisson", 5): (3.2566, 2.4836),
    ("poisson", 10): (6.4402, 3.5124),
    ("poisson", 20): (12.8066, 4.9673),
    ("poisson", 50): (31.9052, 7.8539),
    ("varcoeff", 10): (1.0969, 1.4434),
    ("varcoeff", 20): (2.1392, 2.0412),
    ("varcoeff", 50): (5.2647, 3.2275),
    ("nonlinear", 5): (0.6285, 1.2218),
}
# Table 4: GPU seconds of PINN (Adam), Deep Ritz, WAN and NPDG to an accuracy.
TABLE4: dict[tuple[str, int, float], tuple[float | None, float | None, float | None, float]] = {
    ("poisson", 5, 5e-3): (26.22, 25.11, 51.14, 68.87),
    ("poisson", 10, 5e-3): (44.83, 43.45, 51.65, 40.98),
    ("poisson", 20, 5e-3): (160.82, 183.49, 460.12, 110.42),
    ("poisson", 50, 5e-3): (1989.06, 1452.29, 2117.24, 821.24),
    ("varcoeff", 10, 1e-2): (None, 105.2, None, 151.80),
    ("varcoeff", 20, 1e-2): (None, 228.55, None, 309.05),
    ("varcoeff", 50, 1e-2): (774.70, None, None, 419.15),
    ("varcoeff", 10, 5e-3): (None, None, None, 231.49),
    ("varcoeff", 20, 5e-3): (None, None, None, 382.59),
    ("varcoeff", 50, 5e-3): (None, None, None, 674.18),
    ("nonlinear", 5, 1e-1): (2805.92, None, 1130.76, 1086.35),
    ("nonlinear", 5, 5e-2): (None, None, None, 1894.89),
}
METHODS4: tuple[str, ...] = ("pinn", "deep-ritz", "wan", "npdg")

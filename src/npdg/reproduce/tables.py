"""Tables 1 to 4 of the paper."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from npdg.calculus import grad
from npdg.pde import PDE
from npdg.presets import choose
from npdg.problems import find
from npdg.reproduce.desk import Desk
from npdg.runs import race
from npdg.runs.race import Entry

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


def settings_of_npdg(desk: Desk) -> None:
    """Table 1: the preset `paper` of the variable-coefficient equation, beside the printed numbers."""
    _compare_settings(desk, [("varcoeff", d, "npdg", values) for d, values in TABLE1.items()], "table1")


def settings_of_the_others(desk: Desk) -> None:
    """Table 2: the preset `paper` of the baselines."""
    _compare_settings(desk, TABLE2, "table2")


def _compare_settings(desk: Desk, table: list[tuple[str, int, str, dict[str, Any]]], name: str) -> None:
    rows = []
    for problem, dim, method, printed in table:
        settings = choose(problem, dim, method, "paper", {})
        for key, paper in printed.items():
            ours = getattr(settings, key)
            rows.append({"problem": problem, "dim": dim, "method": method, "key": key, "ours": ours, "paper": paper})
        same = [row for row in rows[-len(printed) :] if row["ours"] == row["paper"]]
        desk.say(f"{problem} {dim}-D, {method}: {len(same)} of {len(printed)} settings as printed")
    desk.csv(name, rows)


def norms(desk: Desk) -> None:
    """Table 3, recomputed by Monte Carlo."""
    rows = []
    for (problem, dim), paper in TABLE3.items():
        ours = solution_norms(find(problem).build(dim), 200_000 if desk.quick else 2_000_000)
        rows += [
            {"problem": problem, "dim": dim, "norm": name, "ours": one, "paper": two}
            for name, one, two in zip(("u", "grad u"), ours, paper, strict=True)
        ]
        for name, one, two in zip(("‖u*‖", "‖∇u*‖"), ours, paper, strict=True):
            desk.beside(f"{problem} {dim}-D, {name}", one, two, "")
    desk.csv("table3", rows)


def solution_norms(pde: PDE, n: int) -> tuple[float, float]:
    """‖u*‖ and ‖∇u*‖ in L² of the uniform probability measure, on n points."""
    exact = pde.exact
    assert exact is not None
    square = lambda x: jnp.stack([exact(x) ** 2, jnp.vdot(grad(exact)(x), grad(exact)(x))])
    batch = jax.jit(lambda key: jnp.mean(jax.vmap(square)(pde.domain.sample_interior(key, 10_000).x), axis=0))
    means = [np.asarray(batch(jax.random.key(k)), dtype=float) for k in range(max(n // 10_000, 1))]
    value, slope = np.sqrt(np.mean(means, axis=0))
    return float(value), float(slope)


def seconds_to_accuracy(desk: Desk) -> None:
    """Table 4 with our default, and with our PINN, Deep Ritz, WAN, L-BFGS and natural-gradient PINN."""
    if desk.quick:
        desk.say("scaled down: a tenth of the seconds NPDG took in the paper, at most 20, instead of all of them")
    rows: list[dict[str, Any]] = []
    equations = {(problem, dim): find(problem).build(dim) for problem, dim, _ in TABLE4}
    for (problem, dim), pde in equations.items():
        cells = {a: cell for (name, d, a), cell in TABLE4.items() if (name, d) == (problem, dim)}
        longest = max(cell[3] for cell in cells.values())
        seconds = min(longest / 10, 20.0) if desk.quick else longest
        methods = ["npdg", "pinn", "pinn-lbfgs", "natural-pinn", "wan"]
        if problem != "nonlinear":  # which has no energy
            methods.insert(3, "deep-ritz")
        laps = desk.race(pde, [Entry(m, m) for m in methods], f"{problem}-{dim}d", seconds=seconds)
        for lap in laps:
            for accuracy, cell in cells.items():
                paper = cell[METHODS4.index(lap.entry.method)] if lap.entry.method in METHODS4 else None
                ours = lap.time_to(accuracy)
                desk.beside(f"{problem} {dim}-D to {accuracy:g}, {lap.entry.label}", ours, paper)
                rows.append(
                    {"problem": problem, "dim": dim, "accuracy": accuracy, "method": lap.entry.label}
                    | {"seconds": ours, "paper_gpu_seconds": paper, "rel_l2_at_end": lap.errors["rel_l2"]}
                    | {"end": lap.solution.seconds, "stop_reason": lap.solution.stop_reason}
                )
        desk.picture(f"{problem}-{dim}d", race.figure(laps, f"{problem}, {dim} dimensions"))
        best = min(laps, key=lambda lap: lap.errors["rel_l2"]).entry.label if laps else "nobody"
        desk.say(f"{problem} {dim}-D: most accurate after {seconds:.0f} s: {best}")
        desk.csv("table4", rows)

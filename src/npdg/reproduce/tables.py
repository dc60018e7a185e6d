"""Tables 1 to 4 of the paper."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from npdg.calculus import grad
from npdg.catalogue import find
from npdg.compilation import jit
from npdg.methods.registry import make_method
from npdg.problem.pde import PDE
from npdg.reproduce.printed import METHODS4, TABLE1, TABLE2, TABLE3, TABLE4
from npdg.reproduce.reproduction import Reproduction
from npdg.runs import race
from npdg.runs.race import Entry


def settings_of_npdg(work: Reproduction) -> None:
    """Table 1: the preset `paper` of the variable-coefficient equation, beside the printed numbers."""
    _compare_settings(work, [("varcoeff", d, "npdg", values) for d, values in TABLE1.items()], "table1")


def settings_of_the_others(work: Reproduction) -> None:
    """Table 2: the preset `paper` of the baselines."""
    _compare_settings(work, TABLE2, "table2")


def _compare_settings(work: Reproduction, table: list[tuple[str, int, str, dict[str, Any]]], name: str) -> None:
    rows = []
    for problem, dim, method, printed in table:
        settings = make_method("equation", method, preset="paper").candidates(find(problem).build(dim))[0]
        for key, paper in printed.items():
            ours = settings[key]
            rows.append({"problem": problem, "dim": dim, "method": method, "key": key, "ours": ours, "paper": paper})
        same = [row for row in rows[-len(printed) :] if row["ours"] == row["paper"]]
        work.say(f"{problem} {dim}-D, {method}: {len(same)} of {len(printed)} settings as printed")
    work.csv(name, rows)


def norms(work: Reproduction) -> None:
    """Table 3, recomputed by Monte Carlo."""
    rows = []
    for (problem, dim), paper in TABLE3.items():
        ours = solution_norms(find(problem).build(dim), 200_000 if work.quick else 2_000_000)
        rows += [
            {"problem": problem, "dim": dim, "norm": name, "ours": one, "paper": two}
            for name, one, two in zip(("u", "grad u"), ours, paper, strict=True)
        ]
        for name, one, two in zip(("‖u*‖", "‖∇u*‖"), ours, paper, strict=True):
            work.beside(f"{problem} {dim}-D, {name}", one, two, "")
    work.csv("table3", rows)


def solution_norms(pde: PDE, n: int) -> tuple[float, float]:
    """‖u*‖ and ‖∇u*‖ in L² of the uniform probability measure, on n points."""
    exact = pde.exact
    assert exact is not None
    square = lambda x: jnp.stack([exact(x) ** 2, jnp.vdot(grad(exact)(x), grad(exact)(x))])
    batch = jit(lambda key: jnp.mean(jax.vmap(square)(pde.domain.sample_interior(key, 10_000).x), axis=0))
    means = [np.asarray(batch(jax.random.key(k)), dtype=float) for k in range(max(n // 10_000, 1))]
    value, slope = np.sqrt(np.mean(means, axis=0))
    return float(value), float(slope)


def seconds_to_accuracy(work: Reproduction) -> None:
    """Table 4 with our default, and with our PINN, Deep Ritz, WAN, L-BFGS and natural-gradient PINN."""
    if work.quick:
        work.say("scaled down: a tenth of the seconds NPDG took in the paper, at most 20, instead of all of them")
    rows: list[dict[str, Any]] = []
    equations = {(problem, dim): find(problem).build(dim) for problem, dim, _ in TABLE4}
    for (problem, dim), pde in equations.items():
        cells = {a: cell for (name, d, a), cell in TABLE4.items() if (name, d) == (problem, dim)}
        longest = max(cell[3] for cell in cells.values())
        seconds = min(longest / 10, 20.0) if work.quick else longest
        methods = ["npdg", "pinn", "pinn-lbfgs", "natural-pinn", "wan"]
        if problem != "nonlinear":  # which has no energy
            methods.insert(3, "deep-ritz")
        runs = work.race(pde, [Entry(m, m) for m in methods], f"{problem}-{dim}d", seconds=seconds)
        for one in runs:
            for accuracy, cell in cells.items():
                paper = cell[METHODS4.index(one.entry.method)] if one.entry.method in METHODS4 else None
                ours = one.time_to(accuracy)
                work.beside(f"{problem} {dim}-D to {accuracy:g}, {one.entry.label}", ours, paper)
                rows.append(
                    {"problem": problem, "dim": dim, "accuracy": accuracy, "method": one.entry.label}
                    | {"seconds": ours, "paper_gpu_seconds": paper, "rel_l2_at_end": one.errors["rel_l2"]}
                    | {"end": one.solution.seconds, "stop_reason": one.solution.stop_reason}
                )
        work.picture(f"{problem}-{dim}d", race.figure(runs, f"{problem}, {dim} dimensions"))
        best = min(runs, key=lambda one: one.errors["rel_l2"]).entry.label if runs else "nobody"
        work.say(f"{problem} {dim}-D: most accurate after {seconds:.0f} s: {best}")
        work.csv("table4", rows)

"""The ladder: the default preset on every kind of equation, at growing budgets, with nothing set.

    python benchmarks/ladder.py [--seconds 10,30,60,120,300] [--seeds 0,1,2] [--only NAME…] [--ablation]

Every run is a run of its own, since what is chosen may depend on the budget. Results are appended to
`benchmarks/results/ladder.json` as they come, and runs that are already there are not repeated; the table and the
picture are made from that file. With --ablation, one ingredient after another is switched off instead.
"""

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import jax
from matplotlib.figure import Figure

import npdg
from npdg.catalogue import find

RESULTS = Path(__file__).parent / "results"
# name: (problem, dimension, options, {seconds: relative L² to reach})
RUNGS: dict[str, tuple[str, int, dict[str, str], dict[int, float]]] = {
    "poisson 5-D": ("poisson", 5, {}, {}),
    "poisson 10-D": ("poisson", 10, {}, {10: 5e-5, 60: 8e-6, 300: 1e-6}),
    "poisson 20-D": ("poisson", 20, {}, {60: 2e-4}),
    "poisson 50-D": ("poisson", 50, {}, {60: 1e-3}),
    "poisson 100-D": ("poisson", 100, {}, {300: 3e-3}),
    "paraboloid 100-D": ("poisson", 100, {"solution": "paraboloid"}, {300: 3e-3}),
    "cosines 5-D": ("poisson", 5, {"solution": "cosines"}, {60: 1e-6, 300: 1e-7}),
    "varcoeff 10-D": ("varcoeff", 10, {}, {60: 1e-4}),
    "varcoeff 20-D": ("varcoeff", 20, {}, {60: 1e-3}),
    "varcoeff 50-D": ("varcoeff", 50, {}, {120: 3e-3}),
    "nonlinear 5-D": ("nonlinear", 5, {}, {60: 1e-2, 300: 1e-3}),
    "packet 10-D": ("poisson", 10, {"solution": "packet"}, {60: 1e-2, 300: 2e-3}),
}
# What each ingredient is worth: the default with one thing changed.
ABLATIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "no polish": {"polish": False},
    "no late phase": {"late": False},
    "no momentum": {"momentum": 0.0},
    "large batches, no momentum": {"momentum": 0.0, "n_interior": 1500, "n_boundary": 200, "boundary_norm": "h1"},
    "no squares": {"squares": False},
    "tanh, no trial": {"activation": "tanh"},
    "deep, no trial": {"activation": "tanh", "width": 32, "depth": 3},
    "L² boundary": {"boundary_norm": "l2"},
    "inputs not centred": {"centred": False},
    "dual=tangent": {"dual": "tangent", "solver": "cg", "minres_max": 60},
}
ABLATED = ("poisson 10-D", "poisson 20-D", "cosines 5-D", "nonlinear 5-D", "packet 10-D")


def measure(rung: str, seconds: float, seed: int, overrides: dict[str, Any], certified: bool) -> dict[str, Any]:
    """One run, and its certificate if that is asked for, which takes about half a minute."""
    problem, dim, options, _ = RUNGS[rung]
    jax.clear_caches()
    solution = npdg.solve(find(problem).build(dim, **options), seconds=seconds, seed=seed, **overrides)
    errors, estimate = solution.error(), solution.error_estimate() if certified else None
    return {
        "rung": rung,
        "budget": seconds,
        "seed": seed,
        "rel_l2": errors.rel_l2,
        "rel_h1": errors.rel_h1,
        "error_estimate": estimate,
        "seconds": solution.seconds,
        "compile_seconds": solution.compile_seconds,
        "steps": solution.steps,
        "polished": solution.polished,
        "stop_reason": solution.stop_reason,
        "settings": {k: solution.settings[k] for k in ("activation", "width", "depth", "dual", "solver")},
    }


def table(rows: list[dict[str, Any]], key: str) -> str:
    """One line per rung (or change) and budget: median, worst over median, estimate over truth, goal."""
    groups: dict[tuple[str, str, float], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["rung"], row.get(key, ""), row["budget"]), []).append(row)
    lines = [f"{'':34} {'s':>5} {'rel L²':>9} {'worst':>6} {'est./true':>12} {'goal':>8}"]
    for (rung, change, budget), group in sorted(groups.items()):
        errors = [row["rel_l2"] for row in group]
        ratios = [row["error_estimate"] / row["rel_h1"] for row in group if row["error_estimate"] is not None]
        median = statistics.median(errors)
        goal = RUNGS[rung][3].get(int(budget))
        verdict = "" if goal is None else f"{goal:.0e} {'ok' if median <= goal else 'MISSED'}"
        spread = f"{min(ratios):.2f}–{max(ratios):.2f}" if ratios else "none"
        name = f"{rung} {change}".strip()
        lines.append(f"{name:34} {budget:5.0f} {median:9.1e} {max(errors) / median:6.1f} {spread:>12} {verdict:>8}")
    return "\n".join(lines)


def picture(rows: list[dict[str, Any]]) -> Figure:
    """Median relative L² error against the budget, one line per rung, bars from the best seed to the worst; crosses are
    goals."""
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for number, rung in enumerate(RUNGS):
        seeds: dict[float, list[float]] = {}
        for row in rows:
            if row["rung"] == rung:
                seeds.setdefault(row["budget"], []).append(row["rel_l2"])
        if not seeds:
            continue
        budgets = sorted(seeds)
        look: dict[str, Any] = {"color": f"C{number % 10}", "linestyle": "-" if number < 10 else "--"}
        medians = [statistics.median(seeds[b]) for b in budgets]
        axes.plot(budgets, medians, marker="os^vD*"[number % 6], label=rung, **look)
        axes.vlines(budgets, [min(seeds[b]) for b in budgets], [max(seeds[b]) for b in budgets], lw=1, **look)
        goals = {b: goal for b, goal in RUNGS[rung][3].items() if b in seeds}
        axes.plot(list(goals), list(goals.values()), "x", color=look["color"])
    ticks = sorted({row["budget"] for row in rows})
    axes.set(xscale="log", yscale="log", xlabel="training seconds", ylabel="relative $L^2$ error, median")
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", default=None)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--only", nargs="*", choices=list(RUNGS), default=None)
    parser.add_argument("--ablation", action="store_true")
    chosen = parser.parse_args()
    path = RESULTS / ("ablation.json" if chosen.ablation else "ladder.json")
    RESULTS.mkdir(exist_ok=True)
    rows = json.loads(path.read_text()) if path.exists() else []
    changes = ABLATIONS if chosen.ablation else {"": {}}
    budgets = [float(s) for s in (chosen.seconds or ("30" if chosen.ablation else "10,30,60,120,300")).split(",")]
    done = {(r["rung"], r.get("change", ""), r["budget"], r["seed"]) for r in rows}
    for seed in (int(s) for s in chosen.seeds.split(",")):
        for budget in budgets:
            for rung in chosen.only or (ABLATED if chosen.ablation else RUNGS):
                for change, overrides in changes.items():
                    if (rung, change, budget, seed) in done:
                        continue
                    row = measure(rung, budget, seed, overrides, certified=not chosen.ablation)
                    rows.append({**row, "change": change} if change else row)
                    path.write_text(json.dumps(rows, indent=1) + "\n")
                    ratio = row["error_estimate"] / row["rel_h1"] if row["error_estimate"] is not None else float("nan")
                    print(
                        f"{rung} {change} {budget:.0f} s seed {seed}: {row['rel_l2']:.2e}, est. {ratio:.2f}", flush=True
                    )
    print(table(rows, "change"))
    if not chosen.ablation:
        picture(rows).savefig(RESULTS / "ladder.png", dpi=120)


if __name__ == "__main__":
    main()

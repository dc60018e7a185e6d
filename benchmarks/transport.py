"""Transport maps against their truths: every problem with several seeds, the aids off and on, PD-Adam, metrics and ω.

    python benchmarks/transport.py [--only NAME…] [--seeds 0 1 2] [--share 0.5]

Rows go to benchmarks/results/transport.json as they are measured; what is there already is not run again. `--share`
scales all the seconds.
"""

import argparse
import json
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

import npdg
from npdg.catalogue import find

RESULTS = Path(__file__).parent / "results" / "transport.json"


@dataclass(frozen=True)
class Case:
    """A problem, seconds, and what is set."""

    name: str
    problem: str
    dim: int
    seconds: float
    options: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    method: str = "npdg"
    preset: str = "default"
    arrays: int = 0


ALONE: dict[str, Any] = {"affine": False, "translate": False}
CASES = (
    Case("1-D", "ot-1d", 1, 30),
    Case("5-D Gaussian", "ot-gaussian", 5, 30),
    Case("5-D Gaussian, no affine aid", "ot-gaussian", 5, 30, settings=ALONE),
    *(Case(f"{d}-D ring, {w}", "ot-mixture", d, 60, {"weights": w}) for d in (10, 50) for w in ("equal", "unequal")),
    *(
        Case(f"{d}-D rotated Gaussians, no affine aid", "ot-gaussian", d, 60, {"pair": "rotated"}, ALONE)
        for d in (2, 8, 32)
    ),
    Case("10-D ring, equal, from 10,000 samples", "ot-mixture", 10, 60, {"weights": "equal"}, arrays=10_000),
    *(
        Case(f"{d}-D ring, {w}, PD-Adam ({p})", "ot-mixture", d, 60, {"weights": w}, {}, "pd-adam", p)
        for d in (10, 50)
        for w in ("equal", "unequal")
        for p in ("default", "paper")
    ),
    *(
        Case(f"5-D Gaussian, metric {m}, ω = {w:g}", "ot-gaussian", 5, 30, settings={**ALONE, "metric": m, "omega": w})
        for m in ("gradient", "identity", "h1")
        for w in (1.0, 5.0)
    ),
    *(
        Case(f"10-D ring, unequal, {name}", "ot-mixture", 10, 30, {"weights": "unequal"}, settings)
        for name, settings in {
            "no affine start": {"affine": False},
            "plain map, no residual part": {"affine": False, "residual": False},
            "moments not matched": {"matched": False},
            "independent samples": {"points": "independent"},
            "no refinement": {"refine": 0},
            "refinement in one well": {"probes": 0},
            "no squares in φ": {"squares": False},
            "all of it": {},
        }.items()
    ),
    Case("5-D Gaussian, no affine aid, long", "ot-gaussian", 5, 300, settings=ALONE),
    *(
        Case(f"{d}-D ring, {w}, long", "ot-mixture", d, 300, {"weights": w})
        for d in (10, 50)
        for w in ("equal", "unequal")
    ),
)


def measure(case: Case, seed: int, share: float) -> dict[str, Any]:
    """One run and its score on fresh points."""
    jax.clear_caches()
    pair = find(case.problem).build(case.dim, **case.options)
    judged = pair
    if case.arrays:
        keys = jax.random.split(jax.random.key(100 + seed))
        first, second = (
            np.asarray(measure.sample(key, case.arrays).x)
            for measure, key in zip((pair.source, pair.target), keys, strict=True)
        )
        pair = npdg.Transport(first, second)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        solution = npdg.solve(
            pair, case.method, seconds=share * case.seconds, seed=seed, preset=case.preset, **case.settings
        )
    solution = replace(solution, problem=judged)  # an array's map is judged by the measure it was drawn from
    row = {"case": case.name, "seed": seed, "budget": share * case.seconds, "seconds": solution.seconds}
    return row | {"steps": solution.steps, "stop_reason": solution.stop_reason, **solution.score()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", default=None)
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--share", type=float, default=1.0)
    arguments = parser.parse_args()
    RESULTS.parent.mkdir(exist_ok=True)
    rows = json.loads(RESULTS.read_text()) if RESULTS.is_file() else []
    for case in CASES:
        if arguments.only is not None and case.name not in arguments.only:
            continue
        for seed in arguments.seeds:
            wanted = (case.name, seed, arguments.share * case.seconds)
            if any((row["case"], row["seed"], row["budget"]) == wanted for row in rows):
                continue
            row = measure(case, seed, arguments.share)
            rows.append(row)
            RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
            mass = "" if row["mode_mass"] is None else f", masses within {100 * row['mode_mass']:.1f} %"
            print(
                f"{case.name}, seed {seed}, {row['seconds']:.0f} s: L² {row['map_l2']:.2e}, UVP {row['uvp']:.2g} %, "
                f"sliced W₂ {row['sliced_w2']:.4f} (floor {row['sliced_w2_floor']:.4f}){mass}, {row['steps']} steps, "
                f"{row['stop_reason']}",
                flush=True,
            )


if __name__ == "__main__":
    main()

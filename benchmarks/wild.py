"""The wild ladder: the default on equations of families with random parameters, with nothing set.

    python benchmarks/wild.py [--seconds 20] [--draws 100,101,102] [--only NAME…] [--size S] [--length L]

Each run is a process of its own, as a user's is; what it compiles is not kept. Prints a line a family: the median and
the worst relative L² error over the draws, the error estimate over the true H¹ error, and seconds on the wall.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np
from families import FAMILIES, scaled


def measure(name: str, draw: int, seconds: float, size: float, length: float) -> dict[str, Any]:
    """One run in this process."""
    import npdg

    pde = FAMILIES[name](np.random.default_rng([draw, list(FAMILIES).index(name)]))
    pde = pde if size == length == 1 else scaled(pde, size, length)
    solution = npdg.solve(pde, seconds=seconds, seed=draw)
    estimate = solution.error_estimate()
    return {
        **vars(solution.error()),
        "estimate": estimate,
        "seconds": solution.seconds,
        "compile_seconds": solution.compile_seconds,
        "stop": str(solution.stop_reason),
        "network": solution.settings.in_words(),
    }


def apart(name: str, draw: int, chosen: argparse.Namespace) -> dict[str, Any]:
    """One run in a process of its own, with its seconds on the wall."""
    words = ["--one", name, str(draw), "--seconds", str(chosen.seconds)]
    words += ["--size", str(chosen.size), "--length", str(chosen.length)]
    environment = {**os.environ, **({} if chosen.kept else {"JAX_ENABLE_COMPILATION_CACHE": "false"})}
    began = time.monotonic()
    done = subprocess.run([sys.executable, __file__, *words], capture_output=True, text=True, env=environment)
    wall = time.monotonic() - began
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1], "wall": wall}
    return {**json.loads(done.stdout.splitlines()[-1]), "wall": wall}


def line(name: str, rows: list[dict[str, Any]]) -> str:
    """What came of the draws of one family."""
    fine = [row for row in rows if "failed" not in row]
    if not fine:
        return f"{name:28} failed: {rows[0]['failed']}"
    errors = sorted(row["rel_l2"] for row in fine)
    ratios = [row["estimate"] / row["rel_h1"] for row in fine if row["estimate"]]
    spread = f"{min(ratios):5.2f}–{max(ratios):.2f}" if ratios else "none"
    wall, spent = (statistics.median(row[key] for row in fine) for key in ("wall", "seconds"))
    failed = f", {len(rows) - len(fine)} failed" if len(fine) < len(rows) else ""
    return (
        f"{name:28} {statistics.median(errors):8.1e} {errors[-1]:8.1e}  {spread:>12} {spent:6.1f} {wall:6.1f}  "
        f"{fine[0]['network']}, {fine[0]['stop']}{failed}"
    )


def main() -> None:
    """Run the draws of the families and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--draws", default="100,101,102")
    parser.add_argument("--only", nargs="*", choices=list(FAMILIES), default=list(FAMILIES))
    parser.add_argument("--size", type=float, default=1.0, help="u is multiplied by this")
    parser.add_argument("--length", type=float, default=1.0, help="x is multiplied by this")
    parser.add_argument("--kept", action="store_true", help="reuse compiled programs that are kept")
    parser.add_argument("--one", nargs=2, metavar=("NAME", "DRAW"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(measure(chosen.one[0], int(chosen.one[1]), chosen.seconds, chosen.size, chosen.length)))
        return
    print(f"{'':28} {'median':>8} {'worst':>8}  {'est./true':>12} {'s':>6} {'wall':>6}")
    ratios = []
    for name in chosen.only:
        rows = [apart(name, int(draw), chosen) for draw in chosen.draws.split(",")]
        ratios += [row["estimate"] / row["rel_h1"] for row in rows if row.get("estimate")]
        print(line(name, rows), flush=True)
    within = sum(0.5 <= ratio <= 2 for ratio in ratios)
    print(f"error estimate within a factor of 2: {within} of {len(ratios)}")


if __name__ == "__main__":
    main()

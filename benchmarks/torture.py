"""What a run survives: kills, failing disks, damage, hostile files, signals, surroundings, races. Prints its figures.

    python benchmarks/torture.py [--quick] [--share S] [--only NAME ...]

Every part runs the command line in processes of its own; those that read thousands of damaged files do so in one that
has imported everything. What was compiled once is reused (a compilation cache in the scratch directory), except in the
first runs of the reference, so that two separate compilations are compared as well.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from trials import damage, faults, growth, hostility, kills, races, stops, surroundings
from trials.common import MARCH, SOLVE, TRANSPORT, Scratch, Verdict

# Each with its count in full and in the short version.
PARTS: dict[str, tuple[Callable[[Scratch, int], Verdict], int, int]] = {
    "kill -9": (partial(kills.kills, SOLVE, "reference"), 100, 3),
    "kill -9 in a default run": (kills.kills_of_a_default, 20, 2),
    "kill -9 in a march": (partial(kills.kills, MARCH, "march"), 50, 3),
    "kill -9 in a transport": (partial(kills.kills, TRANSPORT, "transport"), 50, 3),
    "kill -9 in a comparison": (kills.kills_of_comparisons, 30, 2),
    "kill -9 in an export": (kills.kills_of_exports, 30, 2),
    "faults at every call": (faults.faults, faults.ALL, 8),
    "unsynced writes": (faults.power_cuts, 200, 6),
    "memory limits": (surroundings.memory_limits, 20, 2),
    "flips and truncations": (damage.flips, 4000, 100),
    "forged files": (damage.fuzz, 2000, 60),
    "hostile directories": (hostility.directories, 0, 8),
    "hostile files": (hostility.files, 0, 0),
    "bad configurations": (hostility.configurations, 500, 10),
    "signals": (stops.stops, 80, 2),
    "SIGSTOP": (stops.pauses, 4, 1),
    "output and surroundings": (surroundings.outputs, 40, 4),
    "disk full": (surroundings.full_disks, 10, 2),
    "races": (races.races, 80, 6),
    "bits": (surroundings.bits, 12, 3),
    "memory": (growth.memory, 2000, 2000),
}


def main() -> int:
    """Run the parts and print a line of figures for each; 1 if anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few of each")
    parser.add_argument("--share", type=float, default=1.0, help="this share of the full counts", metavar="S")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="some parts only")
    arguments = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory(prefix="npdg-torture-") as directory:
        scratch = Scratch(Path(directory))
        for name in arguments.only:
            part, full, short = PARTS[name]
            began = time.monotonic()
            verdict = part(scratch, short if arguments.quick else round(full * arguments.share))
            failed |= verdict.good < verdict.total
            taken = time.monotonic() - began
            print(f"{name}: {verdict.good}/{verdict.total} {verdict.figures} [{taken:.0f} s]", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

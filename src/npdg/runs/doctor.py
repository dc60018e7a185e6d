"""Is this installation able to solve an equation?"""

from rich.console import Console

from npdg.catalogue import find
from npdg.compilation import keep_programs
from npdg.driver import solve
from npdg.runs.environment import environment

SECONDS, GOAL = 5.0, 1e-2


def examine(console: Console) -> bool:
    """Print versions and devices, then solve a 2-D Poisson equation; true if it came out right."""
    found = environment()
    for key in ("python", "platform", "cpu", "cores", "devices"):
        console.print(f"{key}: {found[key]}", highlight=False)
    programs = keep_programs()
    kept = sum(path.stat().st_size for path in programs.iterdir()) / 2**20 if programs is not None else 0.0
    where = "not kept" if programs is None else f"{kept:.0f} MB in {programs}; npdg doctor --clear removes them"
    console.print(f"compiled programs: {where}", highlight=False, soft_wrap=True)
    console.print(", ".join(f"{name} {version}" for name, version in found["packages"].items()), highlight=False)
    solution = solve(find("poisson").build(2), seconds=SECONDS)
    error = solution.error().rel_l2
    passed = error < GOAL
    console.print(
        f"self-test: 2-D Poisson, {solution.steps} steps in {solution.seconds:.1f} s, relative L² error {error:.1e} "
        f"({'passed' if passed else f'FAILED, expected below {GOAL:g}'})",
        style="green" if passed else "red",
        highlight=False,
    )
    return passed

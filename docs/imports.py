"""Draw the import graph of the package, and look for what it must not have: imports upwards, cycles, long chains.

    python docs/imports.py            draws docs/architecture.png and prints what was found
    python docs/imports.py --check    only looks, and ends with 1 if something is wrong

Imports inside functions and those for type checking count like all others.
"""

import sys
from functools import cache
from pathlib import Path

import grimp
import matplotlib

matplotlib.use("Agg")
from matplotlib.figure import Figure

PACKAGE, LONGEST = "npdg", 12
PICTURE = Path(__file__).with_name("architecture.png")
# From the top down. A package imports from those below it alone; those on one line do not know each other.
FLOORS = (
    ("cli",),
    ("reproduce",),
    ("runs",),
    ("driver", "catalogue"),
    ("methods",),
    ("results",),
    ("training",),
    ("formulations", "reference"),
    ("rules", "theory"),
    ("saddle",),
    ("fields", "problem"),
    ("geometry",),
    ("measures", "linalg"),
    ("calculus", "compilation", "errors", "precision", "services"),
)


def floor_of(module: str) -> int:
    """How high a module's package is, counted from the top."""
    package = module.removeprefix(f"{PACKAGE}.").split(".")[0]
    return next(k for k, packages in enumerate(FLOORS) if package in packages)


def chains(graph: grimp.ImportGraph) -> tuple[list[str], list[str]]:
    """The longest chain of imports, and a cycle if there is one."""
    cycle: list[str] = []

    @cache
    def longest(module: str) -> tuple[str, ...]:
        if module in path:
            cycle.extend([*path[path.index(module) :], module])
            return ()
        path.append(module)
        below = max((longest(other) for other in sorted(imported(module))), key=len, default=())
        path.pop()
        return (module, *below)

    def imported(module: str) -> set[str]:
        return {other for other in graph.find_modules_directly_imported_by(module) if other != PACKAGE}

    path: list[str] = []
    return list(max((longest(module) for module in sorted(graph.modules - {PACKAGE})), key=len)), cycle


def upwards(graph: grimp.ImportGraph) -> list[str]:
    """Imports that lead to a higher floor, or to a neighbour on the same."""
    found = []
    for module in sorted(graph.modules - {PACKAGE}):
        for other in sorted(graph.find_modules_directly_imported_by(module) - {PACKAGE}):
            own, its = (name.split(".")[1] for name in (module, other))
            if own != its and floor_of(other) <= floor_of(module):
                found.append(f"{module} imports {other}")
    return found


def draw(graph: grimp.ImportGraph) -> None:
    """Packages by floors, as wide as they have lines; an arrow for every package that imports another."""
    source = Path(__file__).parents[1] / "src"
    lines: dict[str, int] = {}
    doors: dict[tuple[str, str], int] = {}
    for module in graph.modules - {PACKAGE}:
        package = module.split(".")[1]
        file = source / f"{module.replace('.', '/')}.py"
        lines[package] = lines.get(package, 0) + (len(file.read_text().splitlines()) if file.is_file() else 0)
        for other in graph.find_modules_directly_imported_by(module) - {PACKAGE}:
            if (its := other.split(".")[1]) != package:
                doors[package, its] = doors.get((package, its), 0) + 1
    figure = Figure(figsize=(11, 11), layout="constrained")
    axes = figure.subplots()
    place = {
        package: (10 * (k + 1) / (len(packages) + 1) + (0.9 if len(packages) == 1 and floor % 2 else 0), -float(floor))
        for floor, packages in enumerate(FLOORS)
        for k, package in enumerate(packages)
    }
    for (one, other), count in doors.items():
        axes.annotate(
            "",
            place[other],
            place[one],
            arrowprops={"arrowstyle": "->", "color": "#9ab", "lw": min(0.4 + count / 8, 3)},
        )
    for package, (x, y) in place.items():
        text = f"{package}\n{lines.get(package, 0)} lines"
        axes.text(x, y, text, ha="center", va="center", bbox={"boxstyle": "round", "fc": "#eef4ff", "ec": "#456"})
    axes.set(xlim=(0, 10), ylim=(0.7 - len(FLOORS), 0.7), title="What imports what: arrows lead downwards alone")
    axes.axis("off")
    figure.savefig(PICTURE, dpi=90)


def main() -> int:
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    chain, cycle = chains(graph)
    wrong = upwards(graph)
    print(f"{len(graph.modules)} modules; longest chain of imports: {len(chain)} of at most {LONGEST}")
    print("  " + " > ".join(name.removeprefix(f"{PACKAGE}.") for name in chain))
    print(f"cycle: {' > '.join(cycle) or 'none'}")
    print("imports upwards: " + ("; ".join(wrong) or "none"))
    if "--check" not in sys.argv:
        draw(graph)
        print(f"drawn: {PICTURE.name}")
    return int(bool(cycle or wrong or len(chain) > LONGEST))


if __name__ == "__main__":
    sys.exit(main())

"""Figures of Sec. 5.2: the elliptic equation with a variable coefficient."""

from matplotlib.figure import Figure

from npdg.catalogue import find
from npdg.reproduce.pictures import graph_and_error, plane_rows, shell_errors
from npdg.reproduce.printed import TABLE4
from npdg.reproduce.reproduction import Reproduction
from npdg.runs import race
from npdg.runs.figures.solution import plane
from npdg.runs.race import Entry, RaceRun


def curves(work: Reproduction) -> None:
    """L² and H¹ errors against time in 10, 20 and 50 dimensions, with both boundary losses."""
    figure = Figure(figsize=(13, 7), layout="constrained")
    panels = figure.subplots(2, 3)
    budgets = {10: 500.0, 20: 1500.0, 50: 3000.0}
    for column, (dim, paper_seconds) in enumerate(budgets.items()):
        seconds = work.scaled(seconds=15, paper_seconds=paper_seconds)
        l2 = Entry("NPDG, paper, L² boundary", "npdg", "paper", work.small(boundary_norm="l2", metric="gradient"))
        entries = [Entry("NPDG, default"), *work.table2_entries(), l2]
        runs = work.race(find("varcoeff").build(dim), entries, f"curves-{dim}d", seconds=seconds)
        for row, key in enumerate(("rel_l2", "rel_h1")):
            race.draw(panels[row, column], runs, key)
        panels[0, column].set_title(f"{dim} dimensions")
        for one in runs[:2]:
            for accuracy in (1e-2, 5e-3):
                paper = TABLE4["varcoeff", dim, accuracy][3]
                work.beside(f"{one.entry.label}, {dim}-D to {accuracy:g}", one.time_to(accuracy), paper)
    work.picture("varcoeff2", figure)


def planes(work: Reproduction) -> None:
    """20-D: graphs and errors on the plane of coordinates 9 and 10, and the error on 50 square shells by method."""
    seconds = work.scaled(seconds=20, paper_seconds=1500)
    runs = work.race(
        find("varcoeff").build(20), [Entry("NPDG, default"), *work.table2_entries()], "curves", seconds=seconds
    )
    if not runs:
        return
    best = runs[0].solution
    work.picture("planes", graph_and_error(best, [((8, 9), 0.0), ((8, 9), 0.5)]))
    for rest in (0.0, 0.5):
        work.csv(f"plane-{rest:g}", plane_rows(plane(best, (8, 9), rest)))
    _shells(work, runs)


def _shells(work: Reproduction, runs: list[RaceRun]) -> None:
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    rows = []
    for one in runs:
        shells = shell_errors(one.solution)
        axes.semilogy(*zip(*shells, strict=True), label=one.entry.label)
        rows += [{"method": one.entry.label, "size": size, "rms_error": error} for size, error in shells]
    axes.set(xlabel="size of the shell", ylabel="root mean square error on it")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8)
    work.csv("shells", rows)
    work.picture("shells", figure)


def tolerances(work: Reproduction) -> None:
    """20-D: three tolerances of MINRES, and PINN with L-BFGS beside NPDG and for long, also in 50-D."""
    pde = find("varcoeff").build(20)
    seconds = work.scaled(seconds=20, paper_seconds=1000)
    npdg = [Entry(f"tol {tol:g}", "npdg", "paper", work.small(minres_rtol=tol)) for tol in (1e-4, 5e-4, 1e-3)]
    by_tolerance = work.race(pde, npdg, "tolerances", seconds=seconds)
    quasi = Entry("PINN (L-BFGS, unit steps)", "pinn-lbfgs", "paper", work.small())
    searched = Entry("PINN (L-BFGS, line search)", "pinn-lbfgs", "paper", work.small(line_search=True))
    versus = work.race(pde, [quasi, searched], "lbfgs", seconds=seconds)
    in_50 = Entry("the same in 50 dimensions", "pinn-lbfgs", "paper", work.small())
    long = work.race(find("varcoeff").build(50), [in_50], "lbfgs-50d", seconds=seconds)
    figure = Figure(figsize=(12, 8), layout="constrained")
    panels = figure.subplots(2, 2)
    race.draw(panels[0, 0], by_tolerance)
    race.draw(panels[0, 1], by_tolerance, "rel_h1")
    race.draw(panels[1, 0], [*by_tolerance[:1], *versus])
    race.draw(panels[1, 1], [*versus[:1], *long])
    panels[1, 1].set_title("unit steps in 20 and 50 dimensions")
    work.picture("tolerances", figure)
    for one in [*versus, *long]:
        end = f"{one.solution.stop_reason} {one.solution.detail}".strip()
        paper = "" if one.entry is searched else "; paper: blows up in the long run"
        work.say(f"{one.entry.label}, {one.solution.pde.dim}-D: stopped by {end}{paper}")

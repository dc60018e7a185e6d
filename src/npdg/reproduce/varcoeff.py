"""Figures of Sec. 5.2: the elliptic equation with a variable coefficient."""

from matplotlib.figure import Figure

from npdg.problems import find
from npdg.reproduce.desk import Desk
from npdg.reproduce.pictures import graph_and_error, plane_rows, shell_errors
from npdg.reproduce.poisson import table2_entries
from npdg.reproduce.tables import TABLE4
from npdg.runs import race
from npdg.runs.plots import LABELS, plane
from npdg.runs.race import Entry, Lap


def curves(desk: Desk) -> None:
    """L² and H¹ errors against time in 10, 20 and 50 dimensions, with both boundary losses."""
    figure = Figure(figsize=(13, 7), layout="constrained")
    panels = figure.subplots(2, 3)
    budgets = {10: 500.0, 20: 1500.0, 50: 3000.0}
    for column, (dim, paper_seconds) in enumerate(budgets.items()):
        seconds = desk.scaled(seconds=15, paper_seconds=paper_seconds)
        l2 = Entry("NPDG, paper, L² boundary", "npdg", "paper", desk.small(boundary_norm="l2", metric="gradient"))
        entries = [Entry("NPDG, default"), *table2_entries(desk), l2]
        laps = desk.race(find("varcoeff").build(dim), entries, f"curves-{dim}d", seconds=seconds)
        for row, key in enumerate(LABELS):
            race.draw(panels[row, column], laps, key)
        panels[0, column].set_title(f"{dim} dimensions")
        for lap in laps[:2]:
            for accuracy in (1e-2, 5e-3):
                paper = TABLE4["varcoeff", dim, accuracy][3]
                desk.beside(f"{lap.entry.label}, {dim}-D to {accuracy:g}", lap.time_to(accuracy), paper)
    desk.picture("varcoeff2", figure)


def planes(desk: Desk) -> None:
    """20-D: graphs and errors on the plane of coordinates 9 and 10, and the error on 50 square shells by method."""
    seconds = desk.scaled(seconds=20, paper_seconds=1500)
    laps = desk.race(
        find("varcoeff").build(20), [Entry("NPDG, default"), *table2_entries(desk)], "curves", seconds=seconds
    )
    if not laps:
        return
    best = laps[0].solution
    desk.picture("planes", graph_and_error(best, [((8, 9), 0.0), ((8, 9), 0.5)]))
    for rest in (0.0, 0.5):
        desk.csv(f"plane-{rest:g}", plane_rows(plane(best, (8, 9), rest)))
    _shells(desk, laps)


def _shells(desk: Desk, laps: list[Lap]) -> None:
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    rows = []
    for lap in laps:
        shells = shell_errors(lap.solution)
        axes.semilogy(*zip(*shells, strict=True), label=lap.entry.label)
        rows += [{"method": lap.entry.label, "size": size, "rms_error": error} for size, error in shells]
    axes.set(xlabel="size of the shell", ylabel="root mean square error on it")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8)
    desk.csv("shells", rows)
    desk.picture("shells", figure)


def tolerances(desk: Desk) -> None:
    """20-D: three tolerances of MINRES, and PINN with L-BFGS beside NPDG and for long, also in 50-D."""
    pde = find("varcoeff").build(20)
    seconds = desk.scaled(seconds=20, paper_seconds=1000)
    npdg = [Entry(f"tol {tol:g}", "npdg", "paper", desk.small(minres_rtol=tol)) for tol in (1e-4, 5e-4, 1e-3)]
    by_tolerance = desk.race(pde, npdg, "tolerances", seconds=seconds)
    quasi = Entry("PINN (L-BFGS, unit steps)", "pinn-lbfgs", "paper", desk.small())
    searched = Entry("PINN (L-BFGS, line search)", "pinn-lbfgs", "paper", desk.small(line_search=True))
    versus = desk.race(pde, [quasi, searched], "lbfgs", seconds=seconds)
    in_50 = Entry("the same in 50 dimensions", "pinn-lbfgs", "paper", desk.small())
    long = desk.race(find("varcoeff").build(50), [in_50], "lbfgs-50d", seconds=seconds)
    figure = Figure(figsize=(12, 8), layout="constrained")
    panels = figure.subplots(2, 2)
    race.draw(panels[0, 0], by_tolerance)
    race.draw(panels[0, 1], by_tolerance, "rel_h1")
    race.draw(panels[1, 0], [*by_tolerance[:1], *versus])
    race.draw(panels[1, 1], [*versus[:1], *long])
    panels[1, 1].set_title("unit steps in 20 and 50 dimensions")
    desk.picture("tolerances", figure)
    for lap in [*versus, *long]:
        end = f"{lap.solution.stop_reason} {lap.solution.detail}".strip()
        paper = "" if lap.entry is searched else "; paper: blows up in the long run"
        desk.say(f"{lap.entry.label}, {lap.solution.pde.dim}-D: stopped by {end}{paper}")

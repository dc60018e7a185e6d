"""Figures of Sec. 5.3: the nonlinear elliptic equations on the ball."""

from matplotlib.figure import Figure

from npdg.problems import find
from npdg.reproduce.desk import Desk
from npdg.reproduce.pictures import errors_on_planes, plane_rows
from npdg.reproduce.poisson import table2_entries
from npdg.reproduce.tables import TABLE4
from npdg.runs import race
from npdg.runs.plots import plane
from npdg.runs.race import Entry


def curves(desk: Desk) -> None:
    """Error against time of the strong equation by all methods, and of the mild one by NPDG and L-BFGS."""
    seconds = desk.scaled(seconds=20, paper_seconds=2000)
    quasi = Entry("PINN (L-BFGS)", "pinn-lbfgs", "paper", desk.small(line_search=True))
    methods = [*table2_entries(desk, energy=False), quasi]
    strong = desk.race(find("nonlinear").build(5), [Entry("NPDG, default"), *methods], "strong", seconds=seconds)
    mild = find("nonlinear").build(5, variant="mild")
    weak = desk.race(mild, [Entry("NPDG, default"), methods[0], quasi], "mild", seconds=seconds)
    figure = Figure(figsize=(14, 4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    race.draw(left, strong)
    race.draw(middle, strong, "rel_h1")
    race.draw(right, weak)
    right.set_title("mild nonlinearity")
    desk.picture("nonlinear1", figure)
    for lap in strong[:2]:
        for accuracy in (1e-1, 5e-2):
            paper = TABLE4["nonlinear", 5, accuracy][3]
            desk.beside(f"{lap.entry.label} to {accuracy:g}", lap.time_to(accuracy), paper)


def planes(desk: Desk) -> None:
    """The graph on the plane of the first two coordinates, and the error on four planes."""
    seconds = desk.scaled(seconds=30, paper_seconds=2000, networks=False)
    laps = desk.race(find("nonlinear").build(5), [Entry("NPDG, default")], "curve", seconds=seconds)
    pairs = [(0, 1), (1, 2), (2, 3), (3, 4)]
    for lap in laps:
        desk.picture("nonlinear2", errors_on_planes(lap.solution, pairs, 0.0))
        for pair in pairs:
            shown = plane(lap.solution, pair, 0.0)
            desk.csv(f"plane-{pair[0] + 1}-{pair[1] + 1}", plane_rows(shown))

"""Figures of Sec. 5.3: the nonlinear elliptic equations on the ball."""

from matplotlib.figure import Figure

from npdg.catalogue import find
from npdg.reproduce.pictures import errors_on_planes, plane_rows
from npdg.reproduce.printed import TABLE4
from npdg.reproduce.reproduction import Reproduction
from npdg.runs import race
from npdg.runs.figures.solution import plane
from npdg.runs.race import Entry


def curves(work: Reproduction) -> None:
    """Error against time of the strong equation by all methods, and of the mild one by NPDG and L-BFGS."""
    seconds = work.scaled(seconds=20, paper_seconds=2000)
    quasi = Entry("PINN (L-BFGS)", "pinn-lbfgs", "paper", work.small(line_search=True))
    methods = [*work.table2_entries(energy=False), quasi]
    strong = work.race(find("nonlinear").build(5), [Entry("NPDG, default"), *methods], "strong", seconds=seconds)
    mild = find("nonlinear").build(5, variant="mild")
    weak = work.race(mild, [Entry("NPDG, default"), methods[0], quasi], "mild", seconds=seconds)
    figure = Figure(figsize=(14, 4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    race.draw(left, strong)
    race.draw(middle, strong, "rel_h1")
    race.draw(right, weak)
    right.set_title("mild nonlinearity")
    work.picture("nonlinear1", figure)
    for one in strong[:2]:
        for accuracy in (1e-1, 5e-2):
            paper = TABLE4["nonlinear", 5, accuracy][3]
            work.beside(f"{one.entry.label} to {accuracy:g}", one.time_to(accuracy), paper)


def planes(work: Reproduction) -> None:
    """The graph on the plane of the first two coordinates, and the error on four planes."""
    seconds = work.scaled(seconds=30, paper_seconds=2000, networks=False)
    runs = work.race(find("nonlinear").build(5), [Entry("NPDG, default")], "curve", seconds=seconds)
    pairs = [(0, 1), (1, 2), (2, 3), (3, 4)]
    for one in runs:
        work.picture("nonlinear2", errors_on_planes(one.solution, pairs, 0.0))
        for pair in pairs:
            shown = plane(one.solution, pair, 0.0)
            work.csv(f"plane-{pair[0] + 1}-{pair[1] + 1}", plane_rows(shown))

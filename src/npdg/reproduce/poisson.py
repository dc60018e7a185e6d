"""Figures of Sec. 5.1: Poisson's equation in 10 and 50 dimensions."""

from typing import Any

from matplotlib.figure import Figure

from npdg.problems import find
from npdg.reproduce.desk import Desk
from npdg.reproduce.pictures import graph_and_error, plane_rows
from npdg.reproduce.tables import METHODS4, TABLE4
from npdg.runs import race
from npdg.runs.plots import plane
from npdg.runs.race import Entry, Lap


def laplace2(desk: Desk) -> None:
    """MINRES iterations a step, the two ablations, and the error against the number of samples."""
    pde = find("poisson").build(10)
    seconds = desk.scaled(seconds=20, paper_seconds=200)
    paper = lambda label, **changed: Entry(label, "npdg", "paper", desk.small(**changed))
    flat = Entry("flat gradients", "npdg-flat", "paper", desk.small())
    entries = [paper("NPDG"), paper("ω = 0", omega=0.0), flat, paper("M = Id", metric="identity")]
    laps = desk.race(pde, entries, "curves", seconds=seconds)
    figure = Figure(figsize=(11, 8), layout="constrained")
    panels = figure.subplots(2, 2)
    if laps:
        _iterations(desk, panels[0, 0], laps[0])
        race.draw(panels[0, 1], laps[:3])
        race.draw(panels[1, 0], [laps[0], *laps[3:]])
        desk.beside("NPDG, 10-D to 5e-3", laps[0].time_to(5e-3), TABLE4["poisson", 10, 5e-3][3])
    _sample_sizes(desk, panels[1, 1])
    desk.picture("laplace2", figure)


def _iterations(desk: Desk, axes: Any, lap: Lap) -> None:
    history = lap.solution.history
    desk.csv("minres", [{"step": r.step, **r.iterations} for r in history])
    for player, name in (("u", "u"), ("phi", "φ"), ("psi", "ψ")):
        axes.plot([r.step for r in history], [r.iterations[player] for r in history], lw=1, label=name)
    axes.set(xlabel="step", ylabel="MINRES iterations")
    axes.grid(alpha=0.3)
    axes.legend()


def _sample_sizes(desk: Desk, axes: Any) -> None:
    steps = 150 if desk.quick else 400
    desk.say(f"sample sizes 2^k with 10·2^(k−3) on the boundary, {steps} steps each")
    rows = []
    for k in (4, 6, 8, 10, 12, 14):
        if desk.should_stop():
            break
        sizes = {"n_interior": 2**k, "n_boundary": 10 * 2 ** (k - 3)}
        lap = race.run(
            find("poisson").build(10), Entry(f"2^{k}", "npdg", "paper", {**desk.small(), **sizes}), steps=steps
        )
        end = "diverged" if lap.diverged else ""
        rows.append({"n": 2**k, "rel_l2": lap.errors["rel_l2"], "rel_h1": lap.errors["rel_h1"], "end": end})
        desk.say(f"N = 2^{k}: relative L² {lap.error:.2e} {end}".strip())
    desk.csv("sample-sizes", rows)
    axes.loglog([row["n"] for row in rows], [row["rel_l2"] for row in rows], "o-")
    axes.set(xlabel="samples in the interior", ylabel="relative $L^2$ error")
    axes.grid(alpha=0.3, which="both")
    if rows:
        low, high = rows[0]["rel_l2"], rows[-1]["rel_l2"]
        desk.say(f"from 2^4 to 2^14 samples the error falls by {low / high:.1f}; paper: a plateau beyond 2^10")


def laplace_50d(desk: Desk) -> None:
    """The solution and its error on the plane of coordinates 20 and 40, and all methods against time."""
    pde = find("poisson").build(50)
    seconds = desk.scaled(seconds=20, paper_seconds=8000)
    laps = desk.race(pde, [Entry("NPDG, default"), *table2_entries(desk)], "curves", seconds=seconds)
    if not laps:
        return
    best = laps[0].solution
    desk.picture("plane", graph_and_error(best, [((19, 39), 0.5)]))
    desk.csv("plane", plane_rows(plane(best, (19, 39), 0.5)))
    desk.picture("curves", race.figure(laps, "Poisson, 50 dimensions"))
    seconds_of = dict(zip(METHODS4, TABLE4["poisson", 50, 5e-3], strict=True))
    for lap in laps:
        desk.beside(f"{lap.entry.label}, 50-D to 5e-3", lap.time_to(5e-3), seconds_of[lap.entry.method])


def table2_entries(desk: Desk, *, energy: bool = True) -> list[Entry]:
    """NPDG and the methods of Table 2, each with the paper's preset."""
    methods = {"NPDG, paper": "npdg", "PINN (Adam)": "pinn", "Deep Ritz": "deep-ritz", "WAN": "wan"}
    return [
        Entry(label, method, "paper", desk.small())
        for label, method in methods.items()
        if energy or method != "deep-ritz"
    ]


def ablations(desk: Desk) -> None:
    """Metrics, pairings and boundary norms of the paper's algorithm."""
    pde = find("poisson").build(10)
    seconds = desk.scaled(seconds=20, paper_seconds=200)
    changes: dict[str, dict[str, Any]] = {
        "paper: ∇, weak, L² boundary": {},
        "strong pairing": {"pairing": "strong"},
        "H¹ boundary": {"boundary_norm": "h1"},
        "strong pairing, H¹ boundary": {"pairing": "strong", "boundary_norm": "h1"},
        "M_p = L, M_d = Id": {"metric": "operator", "pairing": "strong"},
        "M_p = M_d = Id": {"metric": "identity"},
        "ω = 0": {"omega": 0.0},
        "(1 + ω) τ_φ ν = 1": {"omega": 1 / 0.095 - 1, "tau_u": 0.5},
    }
    entries = [Entry(label, "npdg", "paper", desk.small(**changed)) for label, changed in changes.items()]
    entries.insert(1, Entry("flat gradients", "npdg-flat", "paper", desk.small()))
    entries.append(Entry("our default"))
    laps = desk.race(pde, entries, "ablations", seconds=seconds)
    desk.picture("ablations", race.figure(laps, "Poisson, 10 dimensions"))

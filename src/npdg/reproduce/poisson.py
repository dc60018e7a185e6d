"""Figures of Sec. 5.1: Poisson's equation in 10 and 50 dimensions."""

from typing import Any

from matplotlib.figure import Figure

from npdg.catalogue import find
from npdg.reproduce.pictures import graph_and_error, plane_rows
from npdg.reproduce.printed import METHODS4, TABLE4
from npdg.reproduce.reproduction import Reproduction
from npdg.runs import race
from npdg.runs.figures.solution import plane
from npdg.runs.race import Entry, RaceRun
from npdg.training.progress import Budget


def laplace2(work: Reproduction) -> None:
    """MINRES iterations a step, the two ablations, and the error against the number of samples."""
    pde = find("poisson").build(10)
    seconds = work.scaled(seconds=20, paper_seconds=200)
    paper = lambda label, **changed: Entry(label, "npdg", "paper", work.small(**changed))
    flat = Entry("flat gradients", "npdg-flat", "paper", work.small())
    entries = [paper("NPDG"), paper("ω = 0", omega=0.0), flat, paper("M = Id", metric="identity")]
    runs = work.race(pde, entries, "curves", seconds=seconds)
    figure = Figure(figsize=(11, 8), layout="constrained")
    panels = figure.subplots(2, 2)
    if runs:
        _iterations(work, panels[0, 0], runs[0])
        race.draw(panels[0, 1], runs[:3])
        race.draw(panels[1, 0], [runs[0], *runs[3:]])
        work.beside("NPDG, 10-D to 5e-3", runs[0].time_to(5e-3), TABLE4["poisson", 10, 5e-3][3])
    _sample_sizes(work, panels[1, 1])
    work.picture("laplace2", figure)


def _iterations(work: Reproduction, axes: Any, one: RaceRun) -> None:
    history = one.solution.history
    work.csv("minres", [{"step": r.step, **r.iterations} for r in history])
    for player, name in (("u", "u"), ("phi", "φ"), ("psi", "ψ")):
        axes.plot([r.step for r in history], [r.iterations[player] for r in history], lw=1, label=name)
    axes.set(xlabel="step", ylabel="MINRES iterations")
    axes.grid(alpha=0.3)
    axes.legend()


def _sample_sizes(work: Reproduction, axes: Any) -> None:
    steps = 150 if work.quick else 400
    work.say(f"sample sizes 2^k with 10·2^(k−3) on the boundary, {steps} steps each")
    rows = []
    for k in (4, 6, 8, 10, 12, 14):
        if work.should_stop():
            break
        sizes = {"n_interior": 2**k, "n_boundary": 10 * 2 ** (k - 3)}
        entry = Entry(f"2^{k}", "npdg", "paper", {**work.small(), **sizes})
        one = race.run(find("poisson").build(10), entry, Budget(steps=steps))
        end = "diverged" if one.diverged else ""
        rows.append({"n": 2**k, "rel_l2": one.errors["rel_l2"], "rel_h1": one.errors["rel_h1"], "end": end})
        work.say(f"N = 2^{k}: relative L² {one.error:.2e} {end}".strip())
    work.csv("sample-sizes", rows)
    axes.loglog([row["n"] for row in rows], [row["rel_l2"] for row in rows], "o-")
    axes.set(xlabel="samples in the interior", ylabel="relative $L^2$ error")
    axes.grid(alpha=0.3, which="both")
    if rows:
        low, high = rows[0]["rel_l2"], rows[-1]["rel_l2"]
        work.say(f"from 2^4 to 2^14 samples the error falls by {low / high:.1f}; paper: a plateau beyond 2^10")


def laplace_50d(work: Reproduction) -> None:
    """The solution and its error on the plane of coordinates 20 and 40, and all methods against time."""
    pde = find("poisson").build(50)
    seconds = work.scaled(seconds=20, paper_seconds=8000)
    runs = work.race(pde, [Entry("NPDG, default"), *work.table2_entries()], "curves", seconds=seconds)
    if not runs:
        return
    best = runs[0].solution
    work.picture("plane", graph_and_error(best, [((19, 39), 0.5)]))
    work.csv("plane", plane_rows(plane(best, (19, 39), 0.5)))
    work.picture("curves", race.figure(runs, "Poisson, 50 dimensions"))
    seconds_of = dict(zip(METHODS4, TABLE4["poisson", 50, 5e-3], strict=True))
    for one in runs:
        work.beside(f"{one.entry.label}, 50-D to 5e-3", one.time_to(5e-3), seconds_of[one.entry.method])


def ablations(work: Reproduction) -> None:
    """Metrics, pairings and boundary norms of the paper's algorithm."""
    pde = find("poisson").build(10)
    seconds = work.scaled(seconds=20, paper_seconds=200)
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
    entries = [Entry(label, "npdg", "paper", work.small(**changed)) for label, changed in changes.items()]
    entries.insert(1, Entry("flat gradients", "npdg-flat", "paper", work.small()))
    entries.append(Entry("our default"))
    runs = work.race(pde, entries, "ablations", seconds=seconds)
    work.picture("ablations", race.figure(runs, "Poisson, 10 dimensions"))

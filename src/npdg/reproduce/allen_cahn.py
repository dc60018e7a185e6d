"""Figures of Sec. 5.4 and its appendix: the Allen–Cahn equation in one and two dimensions."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from npdg.catalogue import find
from npdg.driver import march
from npdg.problem.evolution import ReferenceValues
from npdg.reproduce.reproduction import Reproduction
from npdg.results.trajectory import Trajectory
from npdg.runs.export.grids import some
from npdg.runs.figures.trajectory import draw_curve, draw_lines, surfaces

# What the quick scale changes in the paper's networks, and how long it lets each of them train.
SMALL: dict[str, Any] = {"width": 32, "psi_width": 16, "depth": 3, "n_interior": 500}
SECONDS = 60.0


def one_dimension(work: Reproduction) -> None:
    """Graphs for both ε₀ beside the reference, √MSE against seconds at four times, and the energy."""
    figure = Figure(figsize=(16, 4), layout="constrained")
    smooth, sharp, against_seconds, energy = figure.subplots(1, 4)
    for axes, epsilon in ((smooth, 0.1), (sharp, 0.01)):
        trajectory, truth = _run(work, "allen-cahn-1d", epsilon=epsilon)
        draw_lines(axes, trajectory, some(trajectory.times, 11), truth)
        axes.set_title(f"ε₀ = {epsilon:g}, reference dashed")
        if epsilon == 0.1:
            _against_seconds(work, against_seconds, trajectory, (0.1, 0.3, 0.5, 1.0))
        else:
            draw_curve(energy, trajectory.energy, "energy")
            energy.set_title(f"ε₀ = {epsilon:g}")
            rises = [b - a for a, b in zip(trajectory.energy.values(), [*trajectory.energy.values()][1:], strict=False)]
            work.say(f"largest rise of the energy between two times: {max(0.0, *rises):.1e}; paper: monotone decay")
    work.picture("ac1", figure)
    _paper_preset(work)


def two_dimensions(work: Reproduction) -> None:
    """u along both axes at every time beside the reference, and √MSE against seconds at four times."""
    trajectory, truth = _run(work, "allen-cahn-2d")
    figure = Figure(figsize=(13, 4), layout="constrained")
    first, second, against_seconds = figure.subplots(1, 3)
    for along, axes in enumerate((first, second)):
        draw_lines(axes, trajectory, trajectory.times, truth, along)
    _against_seconds(work, against_seconds, trajectory, (0.2, 0.6, 1.0, 1.4))
    work.picture("ac2", figure)


def surfaces_in_time(work: Reproduction) -> None:
    """The surface of u and its distance to the reference at five times."""
    trajectory, truth = _run(work, "allen-cahn-2d")
    times = [time for time in (0.2, 0.6, 0.8, 1.0, 1.2) if time <= trajectory.times[-1]]
    work.picture("ac3", surfaces(trajectory, times, truth))


def _run(work: Reproduction, problem: str, **options: float) -> tuple[Trajectory, ReferenceValues]:
    card = find(problem)
    evolution = card.build(card.default_dim, **options)
    trajectory = march(evolution, should_stop=work.should_stop)
    _say(work, trajectory, "NPDG, default")
    name = "".join(f"-{key}-{value:g}" for key, value in options.items())
    work.csv(f"{problem}{name}", _rows(trajectory))
    assert evolution.reference is not None
    return trajectory, evolution.reference()


def _paper_preset(work: Reproduction) -> None:
    """The paper's own networks, metric and steps, with its residual loss and without."""
    if work.quick:
        work.say(f"scaled down: {SECONDS:g} s a march instead of 1000 steps a time step, networks {SMALL}")
    for label, weight in (("NPDG, paper", 1.0), ("NPDG, paper, no residual loss", 0.0)):
        if work.should_stop():
            return
        trajectory = march(
            find("allen-cahn-1d").build(1),
            preset="paper",
            seconds=SECONDS if work.quick else None,
            should_stop=work.should_stop,
            residual_weight=weight,
            **(SMALL if work.quick else {}),
        )
        _say(work, trajectory, label)
        work.csv("paper" if weight else "paper-no-residual-loss", _rows(trajectory))


def _say(work: Reproduction, trajectory: Trajectory, label: str) -> None:
    worst = max(trajectory.rmse, key=lambda time: trajectory.rmse[time])
    stops = {step.stop_reason for step in trajectory.steps[1:]}
    work.say(
        f"{trajectory.evolution.name} {dict(trajectory.evolution.options)}, {label}: √MSE at most "
        f"{trajectory.rmse[worst]:.2e}, at t = {worst:g}, {trajectory.rmse[trajectory.steps[-1].time]:.2e} at the end; "
        f"fit of the start {trajectory.rmse[0.0]:.2e}; {trajectory.seconds:.1f} s of training, compiled in "
        f"{trajectory.compile_seconds:.1f} s; time steps ended by {', '.join(sorted(stops))}"
    )


def _rows(trajectory: Trajectory) -> list[dict[str, Any]]:
    return [
        {
            "time": step.time,
            "rmse": step.rmse,
            "energy": step.energy,
            "residual": step.residual,
            "steps": len(step.history),
            "seconds": step.seconds,
            "stop_reason": step.stop_reason,
        }
        for step in trajectory.steps
    ]


def _against_seconds(work: Reproduction, axes: Any, trajectory: Trajectory, times: Sequence[float]) -> None:
    """√MSE as each of some time steps is solved, from its own first second."""
    rows = []
    for time in times:
        number = round(time / trajectory.evolution.step)
        if number >= len(trajectory.steps):
            continue
        measured = [(r.seconds, r.errors["rmse"]) for r in trajectory.steps[number].history if "rmse" in r.errors]
        axes.semilogy(*zip(*measured, strict=True), marker=".", label=f"t = {time:g}")
        rows += [{"time": time, "seconds": seconds, "rmse": error} for seconds, error in measured]
    axes.set(xlabel="training seconds in the time step", ylabel="√MSE")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8)
    work.csv("against-seconds", rows)

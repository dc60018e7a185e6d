"""Commands that train: solve, transport, resume. jax is imported only once the input has been checked."""

import json
import shlex
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from npdg.cli.common import Assignments, Dim, Json, Method, Out
from npdg.runs.signals import EXIT_CODES, Interrupt
from npdg.runs.terminal import answer, complain, console

DIVERGED = 3
Precision = Annotated[str | None, typer.Option(help="float32 or float64.", metavar="T")]
Rollbacks = Annotated[
    str | None, typer.Option(help="After a fault, go back and damp more, up to K ≤ 3 times (0).", metavar="K")
]
CheckpointSeconds = Annotated[
    str | None, typer.Option(help="Training seconds from checkpoint to checkpoint (15).", metavar="S")
]
Track = Annotated[list[str] | None, typer.Option(help="Also log to tensorboard, mlflow or wandb.", metavar="SERVICE")]


def add_to(app: typer.Typer) -> None:
    """Give the application these commands."""
    for command in (solve, transport, resume):
        app.command()(command)


def solve(
    problem: Annotated[
        str | None, typer.Argument(metavar="PROBLEM", help="A name from `npdg list`, or FILE.py:NAME.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="A TOML file such as a run's config.toml; options given here go first.", metavar="FILE"),
    ] = None,
    dim: Dim = None,
    method: Annotated[str | None, typer.Option(help="A method from `npdg list` (npdg).", metavar="M")] = None,
    preset: Annotated[
        str | None, typer.Option(help="default, or paper for the paper's own setting.", metavar="P")
    ] = None,
    seconds: Annotated[
        str | None,
        typer.Option(help="Training seconds (60 if no steps are given; a march goes to its tolerance).", metavar="S"),
    ] = None,
    steps: Annotated[str | None, typer.Option(help="Training steps; in a march, of a time step.", metavar="N")] = None,
    until: Annotated[
        str | None,
        typer.Option(help="Stop early: rel_l2=1e-3, rel_h1=…, residual=…, plateau, uvp=….", metavar="WHEN"),
    ] = None,
    seed: Annotated[str | None, typer.Option(help="Seed of the networks and the samples (0).", metavar="K")] = None,
    precision: Precision = None,
    rollbacks: Rollbacks = None,
    checkpoint_seconds: CheckpointSeconds = None,
    out: Out = None,
    set_: Assignments = None,
    track: Track = None,
    as_json: Json = False,
) -> None:
    """Solve a problem and leave a run directory with its figures, its report and the solution."""
    from npdg.runs.request import read_request
    from npdg.runs.tracking import services

    values = {
        "problem": problem,
        "dim": dim,
        "method": method,
        "preset": preset,
        "seconds": seconds,
        "steps": steps,
        "until": until,
        "seed": seed,
        "rollbacks": rollbacks,
        "checkpoint_seconds": checkpoint_seconds,
        "out": out,
    }
    request, target = read_request(values, set_ or [], precision, config)
    services.check(track or [])
    _train(request, target, track or [], as_json)


def transport(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="A .npy, .npz or .csv file, one point a row.")],
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="Another of the same dimension.")],
    method: Method = "npdg",
    seconds: Annotated[
        str | None, typer.Option(help="Training seconds (60 if no steps are given).", metavar="S")
    ] = None,
    steps: Annotated[str | None, typer.Option(help="Training steps.", metavar="N")] = None,
    until: Annotated[str | None, typer.Option(help="Stop early: sliced_w2=0.05.", metavar="WHEN")] = None,
    seed: Annotated[str, typer.Option(help="Seed of the networks and the samples.", metavar="K")] = "0",
    precision: Precision = None,
    rollbacks: Rollbacks = None,
    checkpoint_seconds: CheckpointSeconds = None,
    out: Out = None,
    set_: Assignments = None,
    track: Track = None,
    as_json: Json = False,
) -> None:
    """The optimal map from one set of samples to another, its potential, the distance, and how good they are."""
    from npdg.runs.export.points import read_points
    from npdg.runs.request import read_request
    from npdg.runs.tracking import services

    for side, path in (("source", source), ("target", target)):
        read_points(path, None, side)
    values = {
        "problem": f"{source},{target}",
        "method": method,
        "seconds": seconds,
        "steps": steps,
        "until": until,
        "seed": seed,
        "rollbacks": rollbacks,
        "checkpoint_seconds": checkpoint_seconds,
        "out": out,
    }
    request, pair = read_request(values, set_ or [], precision)
    services.check(track or [])
    _train(request, pair, track or [], as_json)


def resume(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run.")],
    seconds: Annotated[str | None, typer.Option(help="Another total of training seconds.", metavar="S")] = None,
    steps: Annotated[str | None, typer.Option(help="Another total of training steps.", metavar="N")] = None,
    problem: Annotated[
        str | None, typer.Option(help="Your own equation, if the run is of one.", metavar="FILE.py:NAME")
    ] = None,
    as_json: Json = False,
) -> None:
    """Go on with a run that was stopped or killed, from its newest whole checkpoint to its budget or a larger one."""
    from npdg.runs.resume import read_resumption

    request, target = read_resumption(run, seconds, steps, problem)

    from npdg.runs import execute

    around = _surroundings(as_json, [])
    with redirect_stdout(sys.stderr if as_json else sys.stdout):  # a user's file may print
        finished = execute.resume(run, request, target, around)
    _end(around.console, finished, as_json)


def _surroundings(as_json: bool, track: list[str]) -> Any:
    from npdg.runs import execute

    interrupt = Interrupt()

    def on_leaving(last_words: Callable[[str], object]) -> None:
        interrupt.last_words = last_words

    return execute.Surroundings(console(stderr=as_json), interrupt.reason, track, on_leaving)


def _train(request: Any, target: Any, track: list[str], as_json: bool) -> None:
    from npdg.runs import execute

    around = _surroundings(as_json, track)
    command = shlex.join(["npdg", *sys.argv[1:]])
    with redirect_stdout(sys.stderr if as_json else sys.stdout):  # a user's file may print
        finished = execute.solve(request, target, around, command)
    _end(around.console, finished, as_json)


def _end(shown: Console, finished: Any, as_json: bool) -> None:
    """Say how a run ended, and leave with the exit code of that."""
    if as_json:
        answer(json.dumps(finished.figures))
    else:
        _summary(shown, finished)
    reason = finished.figures["stop_reason"]
    if reason == "diverged":
        complain(f"diverged: {finished.figures['detail']}")
        raise typer.Exit(DIVERGED)
    if reason in EXIT_CODES:
        raise typer.Exit(EXIT_CODES[reason])


def _summary(console: Console, finished: Any) -> None:
    """The figures that matter, in words."""
    figures = finished.figures
    for line in finished.result.headlines(figures):
        console.print(line, style="bold", highlight=False)
    if figures["error_estimate"] is not None:
        console.print(f"relative H¹ error as estimated without the exact solution {figures['error_estimate']:.2e}")
    if figures["detail"]:
        console.print(figures["detail"], highlight=False)
    console.print(
        f"{figures['steps']} steps in {figures['seconds']:.1f} s of training, stopped by {figures['stop_reason']}; "
        f"compiled in {figures['compile_seconds']:.1f} s",
        highlight=False,
    )
    for sentence in figures["advice"]:
        console.print(sentence, style="dim", highlight=False)
    console.print(f"report: {figures['run_dir']}/report.html", highlight=False, soft_wrap=True)

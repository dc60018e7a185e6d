"""Commands that train: solve, transport, resume. jax is imported only once the input has been checked."""

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from npdg.cli_common import Assignments, Dim, Json, Method, Out, candidates_of, complain, subject_of
from npdg.runs.signals import EXIT_CODES, Interrupt

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
    from npdg.runs import tracking
    from npdg.runs.config import read_request

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
    tracking.check(track or [])
    if target.card is not None:
        candidates_of(subject_of(target), request)
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
    from npdg.runs import tracking
    from npdg.runs.config import read_request
    from npdg.runs.points import read_points
    from npdg.transport_settings import choose_transport

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
    tracking.check(track or [])
    choose_transport("transport", 1, request.method, request.preset, request.settings)
    _train(request, pair, track or [], as_json)


def resume(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run.")],
    seconds: Annotated[str | None, typer.Option(help="Another total of training seconds.", metavar="S")] = None,
    steps: Annotated[str | None, typer.Option(help="Another total of training steps.", metavar="N")] = None,
    as_json: Json = False,
) -> None:
    """Go on with a run that was stopped or killed, from its newest whole checkpoint to its budget or a larger one."""
    from npdg.runs.resumption import read_run

    request, target = read_run(run, seconds, steps)

    from npdg.runs import execute

    console = Console(stderr=as_json)
    result = execute.resume(run, request, target, console, should_stop=Interrupt().reason)
    _end(console, result, as_json)


def _train(request: Any, target: Any, track: list[str], as_json: bool) -> None:
    from npdg.runs import execute

    console, command = Console(stderr=as_json), shlex.join(["npdg", *sys.argv[1:]])
    result = execute.solve(request, target, console, command=command, should_stop=Interrupt().reason, track=track)
    _end(console, result, as_json)


def _end(console: Console, result: dict[str, Any], as_json: bool) -> None:
    """Say how a run ended, and leave with the exit code of that."""
    if as_json:
        print(json.dumps(result))
    else:
        _summary(console, result)
    reason = result["stop_reason"]
    if reason == "diverged":
        complain(f"diverged: {result['detail']}")
        raise typer.Exit(DIVERGED)
    if reason in EXIT_CODES:
        raise typer.Exit(EXIT_CODES[reason])


def _summary(console: Console, result: dict[str, Any]) -> None:
    """The figures that matter, in words."""
    bold: list[str] = []
    if result["rel_l2"] is not None and result["rel_h1"] is not None:
        bold.append(f"relative L² error {result['rel_l2']:.2e}, relative H¹ error {result['rel_h1']:.2e}")
    if result.get("rmse"):
        worst = max(result["rmse"], key=result["rmse"].get)
        bold.append(f"root mean square error at most {result['rmse'][worst]:.2e}, at t = {worst}")
    if result.get("map_l2") is not None:
        bold.append(
            f"L² error of the map {result['map_l2']:.2e}, UVP {result['uvp']:.2g} %, cosine {result['cos']:.4f}"
        )
    if result.get("sliced_w2") is not None:
        bold.append(
            f"distance W₂ {result['distance']:.5g}; the map's image is at sliced W₂ {result['sliced_w2']:.2e} of the "
            f"target, other samples of it at {result['sliced_w2_floor']:.2e}"
        )
    for line in bold:
        console.print(line, style="bold", highlight=False)
    if result["error_estimate"] is not None:
        console.print(f"relative H¹ error as estimated without the exact solution {result['error_estimate']:.2e}")
    if result["detail"]:
        console.print(result["detail"], highlight=False)
    console.print(
        f"{result['steps']} steps in {result['seconds']:.1f} s of training, stopped by {result['stop_reason']}; "
        f"compiled in {result['compile_seconds']:.1f} s",
        highlight=False,
    )
    console.print(f"report: {result['run_dir']}/report.html", highlight=False, soft_wrap=True)

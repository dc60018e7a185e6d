"""The command line. jax is imported only once the input has been checked."""

import json
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.table import Table

from npdg import cli_results
from npdg.errors import InputError
from npdg.runs.signals import EXIT_CODES, Interrupt

DIVERGED, INPUT, FILES = 3, 2, 4

app = typer.Typer(
    name="npdg",
    help="Solve partial differential equations with neural networks, by natural primal-dual hybrid gradients.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Problem = Annotated[str, typer.Argument(metavar="PROBLEM", help="A name from `npdg list`, or FILE.py:NAME.")]
Dim = Annotated[str | None, typer.Option(help="Dimension.", metavar="D")]
Method = Annotated[str, typer.Option(help="A method from `npdg list`.", metavar="M")]
Preset = Annotated[str, typer.Option(help="default, or paper for the paper's own setting.", metavar="P")]
Assignments = Annotated[list[str] | None, typer.Option("--set", help="Change one setting.", metavar="KEY=VALUE")]
Out = Annotated[Path | None, typer.Option(help="A new directory for the results.", metavar="DIR")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")]


@app.command("list")
def list_() -> None:
    """Problems, methods and presets."""
    from npdg.problems import CARDS
    from npdg.settings import METHODS, PRESETS

    console = Console()
    for title, rows in (
        ("Problems", {name: card.title for name, card in CARDS.items()}),
        ("Methods", METHODS),
        ("Presets", PRESETS),
    ):
        table = Table(title=title, title_justify="left", box=None, show_header=False)
        for name, text in rows.items():
            table.add_row(f"  {name}", text)
        console.print(table)


@app.command()
def show(
    problem: Problem,
    dim: Dim = None,
    method: Method = "npdg",
    preset: Preset = "default",
    set_: Assignments = None,
) -> None:
    """The equation, its settings, the sizes of its networks and an estimate of the memory."""
    from npdg import sizes
    from npdg.runs.config import read_request

    request, target = read_request(
        {"problem": problem, "dim": dim, "method": method, "preset": preset}, set_ or [], None
    )
    subject = _subject(target)
    options = _candidates(subject, request)
    settings = options[0]
    console = Console()
    console.print(f"{subject.name}, dimension {subject.dim}", style="bold", highlight=False)
    console.print(subject.equation, highlight=False)
    table = Table(box=None, show_header=False)
    for key, value in {**settings.model_dump(), **sizes.estimate(request.method, settings, subject.dim)}.items():
        table.add_row(f"  {key}", f"{value:g}" if isinstance(value, float) else str(value))
    console.print(table)
    if len(options) > 1:
        console.print("A run of given seconds tries these networks in turn, and takes the first that does well:")
        for option in options:
            console.print(f"  {sizes.shape(option)}", highlight=False)


@app.command()
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
    precision: Annotated[str | None, typer.Option(help="float32 or float64.", metavar="T")] = None,
    rollbacks: Annotated[
        str | None, typer.Option(help="After a fault, go back and damp more, up to K ≤ 3 times (0).", metavar="K")
    ] = None,
    checkpoint_seconds: Annotated[
        str | None, typer.Option(help="Training seconds from checkpoint to checkpoint (15).", metavar="S")
    ] = None,
    out: Out = None,
    set_: Assignments = None,
    track: Annotated[
        list[str] | None, typer.Option(help="Also log to tensorboard, mlflow or wandb.", metavar="SERVICE")
    ] = None,
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
        _candidates(_subject(target), request)

    from npdg.runs import execute

    console = Console(stderr=as_json)
    result = execute.solve(
        request, target, console, command=_command(), should_stop=Interrupt().reason, track=track or []
    )
    _end(console, result, as_json)


@app.command()
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
    precision: Annotated[str | None, typer.Option(help="float32 or float64.", metavar="T")] = None,
    out: Out = None,
    set_: Assignments = None,
    as_json: Json = False,
) -> None:
    """The optimal map from one set of samples to another, its potential, the distance, and how good they are."""
    from npdg.runs.config import read_request
    from npdg.runs.points import read_points
    from npdg.transport_settings import choose_transport

    for side, path in (("source", source), ("target", target)):
        read_points(path, None, side)
    values = {"problem": f"{source},{target}", "method": method, "seconds": seconds, "steps": steps, "until": until}
    request, pair = read_request({**values, "seed": seed, "out": out}, set_ or [], precision)
    choose_transport("transport", 1, request.method, request.preset, request.settings)

    from npdg.runs import execute

    console = Console(stderr=as_json)
    result = execute.solve(request, pair, console, command=_command(), should_stop=Interrupt().reason)
    _end(console, result, as_json)


@app.command()
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


@app.command()
def compare(
    problem: Problem,
    dim: Dim = None,
    methods: Annotated[
        str | None,
        typer.Option(help="Methods, with commas between; all that can if not given.", metavar="M"),
    ] = None,
    preset: Preset = "default",
    seconds: Annotated[str, typer.Option(help="Training seconds of each run.", metavar="S")] = "60",
    seeds: Annotated[str, typer.Option(help="Number of seeds.", metavar="K")] = "1",
    out: Out = None,
    set_: Assignments = None,
    as_json: Json = False,
) -> None:
    """Run methods one after another on the same problem and clock: a table, a plot of all curves, and JSON."""
    from npdg.errors import unknown
    from npdg.runs.config import read_request, whole_number
    from npdg.settings import METHODS

    values = {"problem": problem, "dim": dim, "preset": preset, "seconds": seconds, "out": out}
    request, target = read_request(values, set_ or [], None)
    names = [] if methods is None else [name.strip() for name in methods.split(",")]
    for name in names:
        if name not in METHODS:
            raise unknown("method", name, METHODS)
    count = whole_number("seeds", seeds, 1, 1000)

    from npdg.runs import compare as comparison

    console, interrupt = Console(stderr=as_json), Interrupt()
    result = comparison.compare(request, target, names, count, console, should_stop=interrupt.reason)
    if as_json:
        print(json.dumps(result))
    else:
        console.print(comparison.table(result))
        console.print(f"curves: {result['run_dir']}/curves.png", highlight=False, soft_wrap=True)
    if interrupt.asked:
        raise typer.Exit(EXIT_CODES[interrupt.asked])


@app.command()
def reproduce(
    target: Annotated[str | None, typer.Argument(metavar="TARGET", help="A name from `npdg reproduce --list`.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="Name every table and figure.")] = False,
    scale: Annotated[str, typer.Option(help="quick (minutes) or full (the paper's budget).", metavar="S")] = "quick",
    out: Out = None,
) -> None:
    """A table or figure of the paper: its picture, its numbers as CSV, and ours beside the paper's."""
    from npdg.errors import unknown
    from npdg.reproduce import SCALES, TARGETS

    if list_:
        table = Table(box=None, show_header=False)
        for name, card in TARGETS.items():
            table.add_row(f"  {name}", card.title)
        Console().print(table)
        return
    if target is None:
        raise InputError("target: none was given; give one of `npdg reproduce --list`.")
    if target not in TARGETS:
        raise unknown("target", target, TARGETS)
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)

    from npdg.reproduce import run

    interrupt = Interrupt()
    run(TARGETS[target], scale, out, Console(), interrupt.reason)
    if interrupt.asked:
        raise typer.Exit(EXIT_CODES[interrupt.asked])


@app.command()
def doctor() -> None:
    """Devices, versions, and a self-test of a few seconds."""
    from npdg.runs import doctor as check

    raise typer.Exit(0 if check.examine(Console()) else 1)


cli_results.add_to(app)


def main() -> None:
    """Run the command line; every foreseen mistake is one line on standard error and an exit code."""
    sys.exit(_guarded(lambda: app(standalone_mode=False)))


def _guarded(run: Callable[[], Any]) -> int:
    try:
        code = run()
        return code if isinstance(code, int) else 0
    except InputError as error:
        _complain(str(error))
        return INPUT
    except typer.TyperException as error:
        _complain(" ".join(error.format_message().split()))
        return INPUT
    except OSError as error:
        _complain(f"cannot write or read {error.filename or 'a file'}: {error.strerror or error}")
        return FILES
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_CODES["interrupted"]


def _complain(message: str) -> None:
    print("npdg: " + " ".join(message.split()), file=sys.stderr)


class Subject(NamedTuple):
    """What a target is about: its name, dimension, equation, kind and own options."""

    name: str
    dim: int
    equation: str
    kind: str
    options: dict[str, Any]


def _subject(target: Any) -> Subject:
    if target.card is not None:
        return Subject(target.card.name, target.dim, target.card.equation, target.card.kind, target.options)
    from npdg.evolution import Evolution
    from npdg.pair import Pair
    from npdg.runs.execute import build

    problem, equation = build(target)
    kind = "evolution" if isinstance(problem, Evolution) else "transport" if isinstance(problem, Pair) else "equation"
    return Subject(problem.name, problem.dim, equation, kind, {})


def _candidates(subject: Subject, request: Any) -> Sequence[Any]:
    """The settings a run may use; an `InputError` if there are none."""
    from npdg.presets import candidates
    from npdg.transport_settings import choose_transport

    asked = (subject.name, subject.dim, request.method, request.preset, request.settings)
    if subject.kind == "transport":
        return [choose_transport(*asked)]
    return candidates(*asked, subject.options if subject.kind == "evolution" else None)


def _command() -> str:
    return shlex.join(["npdg", *sys.argv[1:]])


def _end(console: Console, result: dict[str, Any], as_json: bool) -> None:
    """Say how a run ended, and leave with the exit code of that."""
    if as_json:
        print(json.dumps(result))
    else:
        _summary(console, result)
    reason = result["stop_reason"]
    if reason == "diverged":
        _complain(f"diverged: {result['detail']}")
        raise typer.Exit(DIVERGED)
    if reason in EXIT_CODES:
        raise typer.Exit(EXIT_CODES[reason])


def _summary(console: Console, result: dict[str, Any]) -> None:
    """The figures that matter, in words."""
    bold: list[str] = []
    if result["rel_l2"] is not None:
        bold.append(f"relative L² error {result['rel_l2']:.2e}, relative H¹ error {result['rel_h1']:.2e}")
    if result.get("rmse"):
        worst = max(result["rmse"], key=result["rmse"].get)
        bold.append(f"root mean square error at most {result['rmse'][worst]:.2e}, at t = {worst}")
    if result.get("map_l2") is not None:
        bold.append(
            f"L² error of the map {result['map_l2']:.2e}, UVP {result['uvp']:.2g} %, cosine {result['cos']:.4f}"
        )
    if "sliced_w2" in result:
        bold.append(
            f"distance W₂ {result['distance']:.5g}; the map's image is at sliced W₂ {result['sliced_w2']:.2e} of the "
            f"target, fresh samples of it at {result['sliced_w2_floor']:.2e}"
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


if __name__ == "__main__":
    main()

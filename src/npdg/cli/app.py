"""The command line. jax is imported only once the input has been checked."""

import json
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Annotated, Any

import typer
from rich.table import Table

from npdg.cli import results, train
from npdg.cli.common import Assignments, Dim, Json, Method, Out, Preset, Problem
from npdg.errors import InputError
from npdg.runs.crash import record_crash
from npdg.runs.signals import EXIT_CODES, Interrupt
from npdg.runs.terminal import answer, complain, open_missing_streams
from npdg.runs.terminal import console as new_console

MISTAKE, INPUT, FILES = 1, 2, 4

app = typer.Typer(
    name="npdg",
    help="Solve partial differential equations with neural networks, by natural primal-dual hybrid gradients.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.command("list")
def list_() -> None:
    """Problems, methods and presets."""
    from npdg.catalogue import CARDS
    from npdg.methods.registry import PRESETS, method_titles

    console = new_console()
    for title, rows in (
        ("Problems", {name: card.title for name, card in CARDS.items()}),
        ("Methods", method_titles()),
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
    from npdg.runs.request import read_request

    request, target = read_request(
        {"problem": problem, "dim": dim, "method": method, "preset": preset}, set_ or [], None
    )

    from npdg.runs.execute import plan_of

    plan = plan_of(request, target)
    shown, settings = plan.problem, plan.settings
    console = new_console()
    console.print(f"{shown.name}, dimension {shown.dim}", style="bold", highlight=False)
    console.print(target.card.equation if target.card is not None else shown.written, highlight=False)
    counts = plan.method.counts(settings, shown.dim)
    sizes = {
        "parameters": ", ".join(f"{name} {count}" for name, count in counts.items()),
        "memory": f"about {plan.method.memory(settings, shown.dim) / 2**20:.0f} MB",
    }
    table = Table(box=None, show_header=False)
    for key, value in {**settings.flat(), **sizes}.items():
        table.add_row(f"  {key}", f"{value:g}" if isinstance(value, float) else str(value))
    console.print(table)
    if len(plan.candidates) > 1:
        console.print("A run of given seconds tries these networks in turn, and takes the first that does well:")
        for option in plan.candidates:
            console.print(f"  {option.in_words()}", highlight=False)


train.add_to(app)  # here, for the order of `npdg --help`


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
    from npdg.methods.registry import method_titles
    from npdg.runs.request import read_request, whole_number

    values = {"problem": problem, "dim": dim, "preset": preset, "seconds": seconds, "out": out}
    request, target = read_request(values, set_ or [], None)
    names = [] if methods is None else [name.strip() for name in methods.split(",")]
    for name in names:
        if name not in method_titles():
            raise unknown("method", name, method_titles())
    count = whole_number("seeds", seeds, 1, 1000)

    from npdg.runs import compare as comparison
    from npdg.runs.execute import Surroundings
    from npdg.runs.files import plain

    console, interrupt = new_console(stderr=as_json), Interrupt()
    with redirect_stdout(sys.stderr if as_json else sys.stdout):  # a user's file may print
        result = comparison.compare(request, target, names, count, Surroundings(console, interrupt.reason))
    if as_json:
        answer(json.dumps(plain(result)))
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
        new_console().print(table)
        return
    if target is None:
        raise InputError("target: none was given; give one of `npdg reproduce --list`.")
    if target not in TARGETS:
        raise unknown("target", target, TARGETS)
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)

    from npdg.reproduce.reproduction import run

    interrupt = Interrupt()
    run(TARGETS[target], scale, out, new_console(), interrupt.reason)
    if interrupt.asked:
        raise typer.Exit(EXIT_CODES[interrupt.asked])


@app.command()
def doctor(
    clear: Annotated[bool, typer.Option("--clear", help="Remove the kept programs instead.")] = False,
) -> None:
    """Devices, versions, kept programs, and a self-test of a few seconds."""
    if clear:
        from npdg.compilation import remove_programs

        new_console().print(f"removed {remove_programs() / 2**20:.0f} MB of compiled programs", highlight=False)
        return
    from npdg.runs import doctor as check

    raise typer.Exit(0 if check.examine(new_console()) else 1)


results.add_to(app)


def main() -> None:
    """Run the command line; every foreseen mistake is one line on standard error and an exit code."""
    open_missing_streams()
    warnings.showwarning = lambda message, *_, **__: complain(f"warning: {message}")
    sys.exit(_guarded(lambda: app(standalone_mode=False)))


def _guarded(run: Callable[[], Any]) -> int:
    try:
        code = run()
        return code if isinstance(code, int) else 0
    except InputError as error:
        complain(str(error))
        return INPUT
    except typer.TyperException as error:
        complain(" ".join(error.format_message().split()))
        return INPUT
    except OSError as error:
        complain(f"cannot write or read {error.filename or 'a file'}: {error.strerror or error}")
        return FILES
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_CODES["interrupted"]
    except MemoryError as error:
        record_crash(error)
        complain("there is not enough memory; give a smaller width or n_interior, or allow more memory.")
        return MISTAKE
    except Exception as error:
        complain(f"{type(error).__name__}: {error}; this should not have happened, {record_crash(error)}.")
        return MISTAKE

"""Commands for runs that are there: report, export, evaluate. jax is imported only once the input has been checked."""

import math
from pathlib import Path
from typing import Annotated

import typer

from npdg.errors import InputError
from npdg.runs.terminal import answer, complain

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")]
OwnProblem = Annotated[
    str | None, typer.Option("--problem", help="Your own equation, if the run was of one.", metavar="FILE.py:NAME")
]


def add_to(app: typer.Typer) -> None:
    """Give the application these commands."""
    for command in (report, export, evaluate):
        app.command()(command)


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Run directories.")],
    out: Annotated[
        Path | None, typer.Option(help="A new file; report.html here for several runs.", metavar="FILE")
    ] = None,
) -> None:
    """One page that needs no network: of a run, rewritten in its directory, or of several, compared."""
    from npdg.runs.files import write_new
    from npdg.runs.reading import read_run
    from npdg.runs.report import build as pages

    found = [read_run(run) for run in runs]
    if len({run.directory.resolve() for run in found}) < len(found):
        raise InputError("run: a directory was given twice; give each run once.")
    if len(found) > 1 or out is not None:
        out = Path(pages.REPORT) if out is None else out
        if out.exists():
            raise InputError(f"out: {str(out)!r} exists already and is never overwritten; give --out FILE.")
    if any(pages.incomplete(run) for run in found):
        from npdg.runs.load import completed

        found = [completed(run, complain) for run in found]
    if out is None:
        out = pages.write(found[0])
    else:
        page = pages.page_of(found[0]) if len(found) == 1 else pages.comparison(found)
        write_new(out, page.html())
    answer(f"report: {out}")


def export(
    run: RunArgument,
    npz: Annotated[bool, typer.Option("--npz", help="Points, values, gradients as arrays for numpy.")] = False,
    vtk: Annotated[bool, typer.Option("--vtk", help="Image data for ParaView.")] = False,
    axes: Annotated[
        str | None, typer.Option(help="Coordinates to vary, such as 1,2; the first three if not given.", metavar="K,…")
    ] = None,
    points: Annotated[str | None, typer.Option(help="Points along each axis.", metavar="N")] = None,
    out: Annotated[Path | None, typer.Option(help="A new directory; RUN/export if not given.", metavar="DIR")] = None,
    problem: OwnProblem = None,
) -> None:
    """A saved solution on a grid through the centre of its domain; a march at every time it kept."""
    from npdg.runs.export.write import export as write
    from npdg.runs.export.write import read_axes
    from npdg.runs.load import open_saved
    from npdg.runs.request import whole_number

    kinds = [name for name, wanted in (("npz", npz), ("vtk", vtk)) if wanted]
    if not kinds:
        raise InputError("export: no format was given; give --vtk, --npz or both.")
    chosen, count = read_axes(axes), None if points is None else whole_number("points", points, 2, 100_000)
    directory = run / "export" if out is None else out
    if directory.exists():
        raise InputError(f"out: {str(directory)!r} exists already and is never overwritten; give --out DIR.")
    for path in write(open_saved(run, problem), directory, chosen, count, kinds):
        answer(str(path))


def evaluate(
    run: RunArgument,
    points: Annotated[Path, typer.Argument(metavar="POINTS", help="A .npy, .npz or .csv file, one point a row.")],
    gradient: Annotated[bool, typer.Option("--gradient", help="The derivatives too.")] = False,
    time: Annotated[str | None, typer.Option(help="A time of a march.", metavar="T")] = None,
    out: Annotated[Path | None, typer.Option(help="A new .npy or .csv file.", metavar="FILE")] = None,
    problem: OwnProblem = None,
) -> None:
    """Values of a saved solution at points from a file, as CSV on standard output or to a file."""
    from npdg.runs.export import points as files
    from npdg.runs.load import open_saved
    from npdg.runs.reading import read_config

    moment = None if time is None else _number("time", time)
    files.check_output(out)
    where = files.read_points(points, read_config(run).run["dim"])
    solved = open_saved(run, problem)
    values, names = files.values_at(solved, where, moment, gradient)
    if outside := files.outside(solved, where):
        complain(f"{outside} of {len(where)} points are outside of the domain of u")
    if out is None:
        answer(files.to_csv(values, names).rstrip("\n"))
    else:
        files.write_values(out, values, names)
        answer(f"values: {out}")


def _number(key: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{key}: {text!r} is not allowed; give a number.")
    return number

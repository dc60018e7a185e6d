"""What the commands share: their options, what a target is about, and how a mistake is said."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

Problem = Annotated[str, typer.Argument(metavar="PROBLEM", help="A name from `npdg list`, or FILE.py:NAME.")]
Dim = Annotated[str | None, typer.Option(help="Dimension.", metavar="D")]
Method = Annotated[str, typer.Option(help="A method from `npdg list`.", metavar="M")]
Preset = Annotated[str, typer.Option(help="default, or paper for the paper's own setting.", metavar="P")]
Assignments = Annotated[list[str] | None, typer.Option("--set", help="Change one setting.", metavar="KEY=VALUE")]
Out = Annotated[Path | None, typer.Option(help="A new directory for the results.", metavar="DIR")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")]


def complain(message: str) -> None:
    """Say what is wrong in one line on standard error."""
    print("npdg: " + " ".join(message.split()), file=sys.stderr)


class Subject(NamedTuple):
    """What a target is about: its name, dimension, equation, kind and own options."""

    name: str
    dim: int
    equation: str
    kind: str
    options: dict[str, Any]


def subject_of(target: Any) -> Subject:
    """A problem of the catalogue is known without jax; a user's own file has to be built."""
    if target.card is not None:
        return Subject(target.card.name, target.dim, target.card.equation, target.card.kind, target.options)
    from npdg.evolution import Evolution
    from npdg.pair import Pair
    from npdg.runs.execute import build

    problem, equation = build(target)
    kind = "evolution" if isinstance(problem, Evolution) else "transport" if isinstance(problem, Pair) else "equation"
    return Subject(problem.name, problem.dim, equation, kind, {})


def candidates_of(subject: Subject, request: Any) -> Sequence[Any]:
    """The settings a run may use; an `InputError` if there are none."""
    from npdg.presets import candidates
    from npdg.transport_settings import choose_transport

    asked = (subject.name, subject.dim, request.method, request.preset, request.settings)
    if subject.kind == "transport":
        return [choose_transport(*asked)]
    return candidates(*asked, subject.options if subject.kind == "evolution" else None)

"""The options that commands share."""

from pathlib import Path
from typing import Annotated

import typer

Problem = Annotated[str, typer.Argument(metavar="PROBLEM", help="A name from `npdg list`, or FILE.py:NAME.")]
Dim = Annotated[str | None, typer.Option(help="Dimension.", metavar="D")]
Method = Annotated[str, typer.Option(help="A method from `npdg list`.", metavar="M")]
Preset = Annotated[str, typer.Option(help="default, or paper for the paper's own setting.", metavar="P")]
Assignments = Annotated[list[str] | None, typer.Option("--set", help="Change one setting.", metavar="KEY=VALUE")]
Out = Annotated[Path | None, typer.Option(help="A new directory for the results.", metavar="DIR")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")]

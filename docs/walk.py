"""Print the modules that a command passes through, in the order in which they are first entered.

    python docs/walk.py                          npdg solve poisson --dim 10 --steps 2
    python docs/walk.py solve ot-1d --steps 2    another command

A module that was left is named again only if it is entered for something else: another function of it.
"""

import contextlib
import io
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

import npdg

ROOT = str(Path(npdg.__file__).parent)


def walk(arguments: list[str]) -> list[tuple[str, str]]:
    """Modules and functions of the package, in the order in which they are first called."""
    seen: dict[tuple[str, str], None] = {}

    def note(frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT) and code.co_name[0] not in "<_":
            module = code.co_filename.removeprefix(ROOT)[1:-3].replace("/", ".")
            seen.setdefault((module, code.co_name))

    from npdg.cli.app import app

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        sys.setprofile(note)
        try:
            app([*arguments, "--out", f"{folder}/run", "--json"], standalone_mode=False)
        finally:
            sys.setprofile(None)
    return list(seen)


def main() -> None:
    arguments = sys.argv[1:] or ["solve", "poisson", "--dim", "10", "--steps", "2"]
    calls = walk(arguments)
    order = list(dict.fromkeys(module for module, _ in calls))
    print(f"npdg {' '.join(arguments)} passes through {len(order)} modules:")
    for number, module in enumerate(order, start=1):
        functions = [function for other, function in calls if other == module]
        print(f"{number:3}  {module:32} {', '.join(functions)}")


if __name__ == "__main__":
    main()

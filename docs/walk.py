"""Print the modules that a command passes through, in the order in which they are first entered.

    python docs/walk.py                          npdg solve poisson --dim 10 --steps 2
    python docs/walk.py solve ot-1d --steps 2    another command

What a run needs once it must ask for once: the last lines say how often each such function was entered.
"""

import contextlib
import io
import pkgutil
import sys
import tempfile
from collections import Counter
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import npdg

ROOT = str(Path(npdg.__file__).parent)
# Reading the request, making the problem and the settings, training, measuring, writing, reading back for the page.
ONCE = (
    *("runs.request:read_request", "catalogue.card:build", "driver:make_plan", "methods.equation:candidates"),
    *("driver:run", "training.stages.base:run_stages", "training.loop:_compile", "results.estimate:error_estimate"),
    *("runs.environment:environment", "runs.directory:write_config", "runs.save:write_result", "runs.reading:read_run"),
    *("runs.finalise:finalise", "runs.report.build:page_of"),
)


def walk(arguments: list[str]) -> Counter[tuple[str, str]]:
    """How often functions of the package are called, by module and name, in the order of their first calls."""
    for module in pkgutil.walk_packages(npdg.__path__, "npdg."):  # so that imports are not taken for calls
        if not module.name.endswith("__main__"):
            import_module(module.name)
    seen: Counter[tuple[str, str]] = Counter()

    def note(frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT) and code.co_name[0] != "<":
            seen[code.co_filename.removeprefix(ROOT)[1:-3].replace("/", "."), code.co_name] += 1

    from npdg.cli.app import app

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        sys.setprofile(note)
        try:
            app([*arguments, "--out", f"{folder}/run", "--json"], standalone_mode=False)
        finally:
            sys.setprofile(None)
    return seen


def main() -> None:
    arguments = sys.argv[1:] or ["solve", "poisson", "--dim", "10", "--steps", "2"]
    calls = walk(arguments)
    order = list(dict.fromkeys(module for module, _ in calls))
    print(f"npdg {' '.join(arguments)} passes through {len(order)} modules:")
    for number, module in enumerate(order, start=1):
        functions = [function for other, function in calls if other == module and function[0] != "_"]
        print(f"{number:3}  {module:32} {', '.join(functions)}")
    print("How often it asks for what it needs once:")
    for place in ONCE:
        module, _, function = place.partition(":")
        print(f"  {place:36} {calls[module, function]}")


if __name__ == "__main__":
    main()

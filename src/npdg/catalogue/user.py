"""A user's own equation, from `FILE.py:NAME`."""

import importlib.util
import sys
from pathlib import Path

import npdg
from npdg.errors import InputError
from npdg.problem.base import Problem


def load_file(path: Path, name: str, dim: int | None) -> Problem:
    """Run the file and take NAME from it: a `PDE`, an `Evolution`, a `Transport` of measures, or a
    function of the dimension that returns one."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent.resolve()))  # so that the file may import its neighbours
    try:
        spec.loader.exec_module(module)
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(f"problem: {path} does not import: {_one_line(error)}") from error
    finally:
        sys.path.pop(0)
    if not hasattr(module, name):
        raise InputError(
            f"problem: {path} has no {name!r}; give FILE.py:NAME, an npdg.PDE, npdg.Evolution or npdg.Pair."
        )
    found = getattr(module, name)
    if callable(found) and not isinstance(found, Problem):
        if dim is None:
            raise InputError(f"dim: {path}:{name} is a function of the dimension; give --dim.")
        try:
            found = found(dim)
        except InputError:
            raise
        except Exception as error:
            raise InputError(f"problem: {path}:{name}({dim}) failed: {_one_line(error)}") from error
    if not isinstance(found, Problem):
        raise InputError(
            f"problem: {path}:{name} is a {type(found).__name__}; it must be an npdg.PDE, npdg.Evolution or npdg.Pair."
        )
    if dim is not None and dim != found.dim:
        raise InputError(f"dim: {dim} was given but {path}:{name} has dimension {found.dim}; leave --dim out.")
    return found.named(f"{path.name}:{name}")


def neighbours(path: Path) -> list[str]:
    """The files that were imported from the directory of a user's file or from below it, as paths relative to it."""
    place, found = path.parent.resolve(), set()
    others = [Path(sys.prefix), Path(sys.base_prefix), Path(npdg.__file__).parent]  # which have versions of their own
    for module in list(sys.modules.values()):
        where = Path(getattr(module, "__file__", None) or "/")
        ours = where.is_relative_to(place) and where != path.resolve()
        if ours and "site-packages" not in where.parts and not any(where.is_relative_to(other) for other in others):
            found.add(str(where.relative_to(place)))
    return sorted(found)


def _one_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}".rstrip(": ")

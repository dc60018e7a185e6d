"""A layer over the file functions of Python, under which a command of npdg runs.

    python layer.py record JOURNAL DIR WORDS...     write down every call on files in DIR
    python layer.py fail NUMBER ERRNO DIR WORDS...  let the call of that number fail

The calls are those on names in DIR and on files that were opened there.
"""

from __future__ import annotations

import errno
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAMES = ("open", "write", "fsync", "replace", "link", "rename", "mkdir", "unlink", "ftruncate")
FAILING = ("open", "write", "fsync", "replace", "link", "rename", "mkdir")


class Layer:
    """Stands between a program and the file functions of `os`, for one directory."""

    def __init__(self, directory: Path, heard: Callable[[str, tuple], None]):
        self.directory, self.heard = os.path.abspath(directory), heard
        self.paths: dict[int, str] = {}
        self.real = {name: getattr(os, name) for name in (*NAMES, "close")}
        for name in NAMES:
            setattr(os, name, self._between(name))
        os.close = self._close

    def _within(self, path: Any) -> bool:
        return not isinstance(path, int) and os.path.abspath(os.fspath(path)).startswith(self.directory)

    def _between(self, name: str) -> Callable[..., Any]:
        real = self.real[name]

        def call(*arguments: Any, **keywords: Any) -> Any:
            first = arguments[0]
            ours = first in self.paths if isinstance(first, int) else self._within(first)
            if not ours or keywords.get("dir_fd") is not None:
                return real(*arguments, **keywords)
            named = [self.paths[first] if isinstance(first, int) else os.path.abspath(os.fspath(first))]
            if name in ("replace", "link", "rename"):
                named.append(os.path.abspath(os.fspath(arguments[1])))
            existed = os.path.lexists(named[0])
            self.heard(name, (*named, existed, *arguments[1:]))
            result = real(*arguments, **keywords)
            if name == "open":
                self.paths[result] = named[0]
            return result

        return call

    def _close(self, handle: int) -> None:
        self.paths.pop(handle, None)
        self.real["close"](handle)


def main() -> None:
    """Run npdg under the layer."""
    from npdg.cli.app import main as npdg

    kind, *rest = sys.argv[1:]
    if kind == "record":
        journal, directory, *words = rest
        calls: list[tuple[str, tuple]] = []

        def note(name: str, about: tuple) -> None:
            calls.append((name, tuple(bytes(part) if isinstance(part, memoryview) else part for part in about)))

        Layer(Path(directory), note)
        sys.argv = ["npdg", *words]
        try:
            npdg()
        finally:
            plain = [
                (name, tuple(p if isinstance(p, (str, bytes, int, bool)) else str(p) for p in a)) for name, a in calls
            ]
            Path(journal).write_bytes(pickle.dumps(plain))
    else:
        number, code, directory, *words = rest
        count = 0

        def fail(name: str, about: tuple) -> None:
            nonlocal count
            if name in FAILING:
                count += 1
                if count == int(number):
                    Path(f"{directory}.failed").write_text(f"{name} {about[-1] if name == 'open' else ''} {about[0]}")
                    raise OSError(int(code), os.strerror(int(code)), about[0])

        assert int(code) in errno.errorcode
        Layer(Path(directory), fail)
        sys.argv = ["npdg", *words]
        npdg()


if __name__ == "__main__":
    main()

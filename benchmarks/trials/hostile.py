"""Input that is wrong or means harm: configurations with one mistake, files that try to run code."""

import hashlib
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from npdg.methods.settings import Settings
from npdg.runs.checkpoint import MAGIC
from npdg.runs.request import RUN_KEYS


def bad_configuration() -> st.SearchStrategy[tuple[str, str]]:
    """A configuration with one mistake, and what a message must name."""
    good = '[run]\nproblem = "poisson"\ndim = 2\nsteps = 3\n'
    settings = Settings().flat()
    numbers = [key for key, value in settings.items() if type(value) in (int, float)]
    words = [key for key, value in settings.items() if isinstance(value, str)]
    letters = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=3, max_size=12)
    new_name = letters.filter(lambda k: k not in (*RUN_KEYS, *settings, "solution", "run", "options"))
    nonsense = st.one_of(
        st.just("nan"),
        st.just("inf"),
        st.just("true"),
        st.just("[1, 2]"),
        st.just("{a = 1}"),
        st.just("1979-05-27"),
        st.floats(max_value=-1e-3, allow_nan=False, allow_infinity=False).map(repr),
        letters.map(lambda text: f'"{text}"'),
        st.sampled_from(
            ["\"__import__('os').system('touch sprung')\"", '"().__class__.__bases__"', '"${HOME}"', '"1;2"']
        ),
    )
    return st.one_of(
        st.tuples(st.sampled_from(numbers), nonsense).map(lambda p: (f"{good}[settings]\n{p[0]} = {p[1]}\n", p[0])),
        st.tuples(st.sampled_from(words), letters).map(lambda p: (f'{good}[settings]\n{p[0]} = "{p[1]}"\n', p[0])),
        st.tuples(new_name, st.integers()).map(lambda p: (f"{good}[settings]\n{p[0]} = {p[1]}\n", p[0])),
        st.tuples(new_name, st.integers()).map(lambda p: (f"{good}{p[0]} = {p[1]}\n", p[0])),
        st.tuples(new_name, st.integers()).map(lambda p: (f"{good}[options]\n{p[0]} = {p[1]}\n", p[0])),
        new_name.map(lambda name: (f"{good}[{name}]\n", name)),
        new_name.map(lambda name: (f'[run]\nproblem = "{name}"\n', name)),
        nonsense.map(lambda value: (f'[run]\nproblem = "poisson"\nseed = {value}\n', "seed")),
        nonsense.map(lambda value: (f'[run]\nproblem = "poisson"\nsteps = {value}\n', "steps")),
        letters.map(lambda text: (f'{good}until = "{text}"\n', "until")),
        letters.map(lambda text: (f'[run]\nproblem = "../../{text}.py:pde"\n', "problem")),
        st.text(max_size=30).map(lambda text: (f"{good}[[{text}\x00\n", "config")),
    )


class Trap:
    """An object that makes a file when it is unpickled."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def evil_checkpoints(directory: Path, sprung: Path) -> list[bytes]:
    """Contents that would make the file `sprung` if anything in them were run."""
    trap = pickle.dumps(Trap(sprung))
    entry: dict[str, Any] = {"name": ".step", "dtype": "object", "shape": [1]}
    objects = directory / "objects.npz"
    np.savez(objects, a=np.array([Trap(sprung)], dtype=object))
    contents = [trap, objects.read_bytes()]
    contents += [
        _signed({"arrays": [{**entry, **change}]}, trap)
        for change in (
            {},
            {"dtype": "O"},
            {"dtype": "__import__('os').system('touch sprung')"},
            {"dtype": "float64", "shape": [2**60]},
        )
    ]
    contents.append(_signed({"arrays": [], "step": "__import__('os')", "run": {}}, b""))
    contents.append(_signed({"arrays": [{"name": "../../evil", "dtype": "bool", "shape": [0]}], "run": {}}, b""))
    return contents


def _signed(header: dict[str, Any], rest: bytes) -> bytes:
    return signed(json.dumps(header).encode() + b"\n" + rest)


def signed(body: bytes) -> bytes:
    """A checkpoint with this body, whose digest is right."""
    return MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def evil_configurations(directory: Path, sprung: Path) -> list[str]:
    """Texts that would make the file `sprung` in one way or another."""
    evil = directory / "evil.py"
    evil.write_text(f"open({str(sprung)!r}, 'w')\n")
    good = '[run]\nproblem = "poisson"\n'
    dunder = "__import__('os').system('touch sprung')"
    return [
        f'[run]\nproblem = "{evil}:pde"\n',
        f'[run]\nproblem = "../{directory.name}/evil.py:pde"\n',
        f'[run]\nproblem = "{evil}:pde"\nsha256 = "{"0" * 64}"\n',
        f'{good}out = "../../sprung"\n',
        f'{good}[settings]\nwidth = "{dunder}"\n',
        f'{good}[settings]\nactivation = "{dunder}"\n',
        f'{good}[options]\nsolution = "{dunder}"\n',
        f'{good}until = "rel_l2={dunder}"\n',
        f'{good}[settings]\n"{dunder}" = 1\n',
    ]

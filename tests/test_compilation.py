"""Compiled programs that are kept: in a directory of the user's own, bounded, and not at all where that is not safe."""

import os
import subprocess
import sys

from npdg import compilation

PROGRAM = """
import jax
from npdg.compilation import keep_programs
print(keep_programs(), jax.config.values["jax_compilation_cache_dir"])
"""


def told(home, **variables) -> list[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("JAX_")}
    environment |= {"XDG_CACHE_HOME": str(home), **variables}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_programs_are_kept_in_a_directory_that_nobody_else_can_write(tmp_path):
    ours, jaxs = told(tmp_path)
    assert ours == jaxs
    assert ours.startswith(str(tmp_path / "npdg" / "programs"))
    os.chmod(ours, 0o777)
    assert told(tmp_path) == ["None", "None"]


def test_a_directory_of_the_users_own_choice_is_left_alone(tmp_path):
    assert told(tmp_path, JAX_COMPILATION_CACHE_DIR="/elsewhere") == ["None", "/elsewhere"]
    assert not list(tmp_path.iterdir())
    assert told("/proc/none") == ["None", "None"]


def test_the_oldest_programs_are_removed_and_all_of_them_on_request(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(compilation, "LARGEST", 250)
    directory = compilation.programs_directory()
    directory.mkdir(parents=True)
    for number in range(4):
        (directory / f"{number}").write_bytes(bytes(100))
        os.utime(directory / f"{number}", (number, number))
    compilation._bound(directory)
    assert sorted(path.name for path in directory.iterdir()) == ["2", "3"]
    assert compilation.remove_programs() == 200
    assert not list(directory.iterdir())


def test_what_is_made_for_an_object_is_made_once_and_kept_for_a_few():
    class Subject:
        pass

    made = []
    make = compilation.once_for_each(lambda subject: made.append(subject) or len(made))
    first = Subject()
    assert make(first) == make(first) == 1
    others = [Subject() for _ in range(compilation.MOST_SUBJECTS)]
    assert [make(other) for other in others] == list(range(2, 2 + len(others)))
    assert make(first) == 2 + len(others)  # it had been forgotten


def test_an_option_that_xla_does_not_know_is_left_out(monkeypatch):
    monkeypatch.setattr(compilation, "QUICK", {"xla_no_such_option": 1})
    compilation.compiler_options.cache_clear()
    try:
        assert compilation.compiler_options() is None
        assert compilation.jit(lambda x: x + 1)(1.0) == 2.0
    finally:
        compilation.compiler_options.cache_clear()

"""Configuration files: preset < file < command line, and every mistake is one sentence that names its key."""

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as sized
from hypothesis import strategies as st

from npdg.errors import InputError
from npdg.methods.settings import Settings
from npdg.runs.execute import plan_of
from npdg.runs.request import RUN_KEYS, digest, read_request, to_toml
from npdg.runs.trust import trust


def read(tmp_path: Path, text: str | bytes, *assignments: str, **values):
    path = tmp_path / "c.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_request(values, list(assignments), None, path)


def test_the_command_line_goes_before_the_file_and_a_budget_replaces_a_budget(tmp_path):
    text = '[run]\nproblem = "poisson"\ndim = 3\nsteps = 7\nseed = 5\n[options]\nsolution = "cosines"\n'
    text += "[settings]\nwidth = 9\ndepth = 4\n"
    request, target = read(tmp_path, text)
    assert (request.dim, request.steps, request.seed, request.method) == (3, 7, 5, "npdg")
    assert request.settings == {"width": 9, "depth": 4}
    assert target.options == {"solution": "cosines"}
    request, target = read(tmp_path, text, "width=12", "solution=sines", dim="2", seconds="3", seed=None)
    assert (request.dim, request.steps, request.seconds, request.seed) == (2, None, 3.0, 5)
    assert request.settings == {"width": "12", "depth": 4}
    assert target.options == {"solution": "sines"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[rn]\n", "table: 'rn' is unknown; did you mean 'run'"),
        ("[run]\nproblem = 'poisson'\nstps = 3\n", "run: 'stps' is unknown; did you mean 'steps'"),
        ("[run]\nproblem = 'poisson'\n[settings]\nwidht = 3\n", "setting: 'widht' is unknown; did you mean 'width'"),
        ("[run]\nproblem = 'poisson'\n[options]\nsolutoin = 'sines'\n", "option: 'solutoin' is unknown; did you mean"),
        ("[run]\nproblem = 'poisson'\n[settings]\nwidth = true\n", "width: True is not allowed"),
        ("[run]\nproblem = 'poisson'\n[settings]\nwidth = [8]\n", "width: [8] is not allowed"),
        ("[run]\nproblem = 'allen-cahn-1d'\n[options]\ntime_steps = 2.5\n", "time_steps: 2.5 is not allowed"),
        ("[run]\nproblem = 'allen-cahn-1d'\n[options]\nepsilon = true\n", "epsilon: True is not allowed"),
        ("[run]\nproblem = 'poisson'\nseed = 1979-05-27\n", "seed: "),
        ("[run]\nproblem = 'poisson'\nseconds = nan\n", "seconds: nan is not allowed"),
        ("[run]\nproblem = 'poisson'\nrollbacks = 4\n", "rollbacks: 4 is not allowed"),
        ("[run]\nproblem = 'poisson'\nuntil = 'rel_l3=1'\n", "until: 'rel_l3' is unknown; did you mean 'rel_l2'"),
        ("[run]\nproblem = 'poisson'\nuntil = 'rel_l2=0'\n", "until: 'rel_l2=0' is not allowed"),
        ("[run]\nproblem = 3\n", "problem: 3 is not allowed; give a name"),
        ("[run]\nproblem = 'poisson'\nout = '/etc/x'\n", "run: 'out' is unknown"),
        ("[run]\nsteps = 3\n", "problem: none was given"),
        ("steps = 3\n", "steps: it stands outside of a table; put it under [run]"),
        ("run = 3\n", "run: 3 is not allowed; give a table"),
        ("[run\n", "config: "),
        (b"\xff\xfe", "config: "),
        ("x = " + "[" * 100_000, "config: "),
        ("[run]\nproblem = 'poisson'\nsteps = " + "9" * 5000 + "\n", "config: "),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_mistake_in_a_file_names_its_key(text, says, tmp_path):
    with pytest.raises(InputError) as raised:
        read(tmp_path, text)
    assert says in str(raised.value)
    assert len(str(raised.value)) < 2000


def test_a_configuration_alone_runs_no_python_file_unless_it_was_named_before_and_is_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    mine = tmp_path / "mine.py"
    mine.write_text("raise SystemExit('it ran')")
    with pytest.raises(InputError, match="does not run"):
        read(tmp_path, f"[run]\nproblem = '{mine}:pde'\n")
    with pytest.raises(InputError, match="does not run"):
        read(tmp_path, f"[run]\nproblem = '{tmp_path}/../{tmp_path.name}/mine.py:pde'\n")
    signed = f"[run]\nproblem = '{mine}:pde'\nsha256 = '{digest(mine)}'\n"
    with pytest.raises(InputError, match="if you trust it, give it on the command line"):
        read(tmp_path, signed)  # the digest comes from the same hand as the file
    trust(mine, digest(mine))
    assert read(tmp_path, signed)[1].file == (mine, "pde")
    assert read(tmp_path, "[run]\nsteps = 3\n", problem=f"{mine}:pde")[1].file == (mine, "pde")
    copy = tmp_path / "mailed" / "mine.py"  # whose directory may have a module that it imports
    copy.parent.mkdir()
    copy.write_bytes(mine.read_bytes())
    with pytest.raises(InputError, match="if you trust it"):
        read(tmp_path, signed.replace(str(mine), str(copy)))
    mine.write_text("raise SystemExit('another ran')")
    with pytest.raises(InputError, match="has changed"):
        read(tmp_path, signed)
    mine.unlink()
    with pytest.raises(InputError, match="does not exist"):
        read(tmp_path, signed)


def test_nested_names_are_the_same_as_flat_ones_and_the_command_line_goes_before_the_file(tmp_path):
    text = "[run]\nproblem = 'poisson'\ndim = 1\nsteps = 3\n[settings]\nwidth = 9\ndepth = 3\n"
    flat, nested = (plan_of(*read(tmp_path, text, word)).settings for word in ("width=24", "network.width=24"))
    assert flat == nested
    assert (nested.network.width, nested.network.depth) == (24, 3)
    for word, says in (
        ("network.widht=24", "setting: 'network.widht' is unknown; did you mean 'network.width'"),
        ("network=24", "setting: 'network' is unknown"),
        ("network.width=0", "width: '0' is not allowed; give a whole number from 1 to 65536"),
    ):
        with pytest.raises(InputError) as raised:
            read(tmp_path, text, word)
        assert says in str(raised.value)


def test_the_configuration_of_an_equation_of_ones_own_does_not_mean_one_of_ours(tmp_path):
    text = "[run]\nproblem = 'poisson'\nkind = 'equation'\nown = true\ndim = 2\nsteps = 3\n"
    with pytest.raises(InputError, match="'poisson' is your own equation"):
        read(tmp_path, text)
    (tmp_path / "mine.py").write_text("")
    assert read(tmp_path, text, problem=f"{tmp_path}/mine.py:pde")[1].file == (tmp_path / "mine.py", "pde")


TEXT = st.text(st.characters(exclude_categories=["Cs"]))  # half a surrogate pair is no text


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.one_of(TEXT, st.integers(), st.booleans())))
@sized(max_examples=100, deadline=None)
def test_toml_that_is_written_reads_back(values):
    assert tomllib.loads(to_toml({"run": values})) == {"run": values}


KEYS = st.one_of(
    st.sampled_from([*RUN_KEYS, *Settings.paths(), *map(".".join, Settings.paths().values())]), st.text(max_size=8)
)
VALUES = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.text(max_size=20))


@given(run=st.dictionaries(KEYS, VALUES, max_size=4), chosen=st.dictionaries(KEYS, VALUES, max_size=4))
@sized(max_examples=300, deadline=None)
def test_any_configuration_is_read_or_refused_in_one_sentence(run, chosen, tmp_path_factory):
    quoted = lambda table: {"'" + key.replace("'", "") + "'": value for key, value in table.items()}
    text = to_toml({"run": {"problem": "poisson", **quoted(run)}, "settings": quoted(chosen)})
    try:
        request, _ = read(tmp_path_factory.getbasetemp(), text.encode(errors="replace"))
    except InputError as error:
        sentence = str(error)
    else:
        sentence = f"problem: {request.problem}"
    assert re.match(r"[\w ]+: .", sentence)

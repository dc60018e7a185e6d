"""The command line as a user meets it: in a process of its own."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

NPDG = [sys.executable, "-m", "npdg.cli"]
QUICK = ["--set", "width=8", "--set", "n_interior=100", "--set", "n_boundary=50"]
KEYS = [
    "problem",
    "dim",
    "method",
    "preset",
    "seed",
    "precision",
    "steps",
    "seconds",
    "compile_seconds",
    "rel_l2",
    "rel_h1",
    "error_estimate",
    "stop_reason",
    "run_dir",
]
GOOD_FILE = """
import jax.numpy as jnp, npdg
from npdg import grad
def pde(dim):
    return npdg.PDE(npdg.Box(0.0, 1.0, dim=dim), flux=lambda u, x: grad(u)(x), source=lambda x: jnp.ones(()))
number = 3
wrong = lambda dim: npdg.PDE(npdg.Box(0.0, 1.0, dim=dim), flux=lambda u, x: u(x))
"""


def npdg(*arguments: str, cwd: Path, **keywords) -> subprocess.CompletedProcess:
    return subprocess.run([*NPDG, *arguments], cwd=cwd, capture_output=True, text=True, timeout=300, **keywords)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One finished run: its process and its directory."""
    cwd = tmp_path_factory.mktemp("cli")
    done = npdg(
        "solve",
        "poisson",
        "--dim",
        "2",
        "--steps",
        "4",
        "--seed",
        "7",
        "--json",
        "--out",
        "out",
        *QUICK,
        cwd=cwd,
    )
    return done, cwd / "out"


def test_json_is_one_object_with_what_is_promised(run):
    done, directory = run
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert [key for key in KEYS if key not in result] == []
    assert (result["problem"], result["dim"], result["method"], result["preset"]) == (
        "poisson",
        2,
        "npdg",
        "default",
    )
    assert (result["seed"], result["steps"], result["stop_reason"]) == (7, 4, "steps")
    assert result["rel_l2"] > 0
    assert result["seconds"] > 0
    assert result["compile_seconds"] > 0
    assert "give more with --steps" in result["advice"][0]
    assert result == json.loads((directory / "result.json").read_text())
    assert "compiled in" in done.stderr
    assert "ETA" in done.stderr


def test_run_directory_holds_everything(run):
    _, directory = run
    config = tomllib.loads((directory / "config.toml").read_text())
    assert config["run"]["seed"] == 7
    assert config["settings"]["width"] == 8
    assert json.loads((directory / "env.json").read_text())["packages"]["jax"]
    rows = list(csv.DictReader((directory / "metrics.csv").open()))
    assert int(rows[-1]["step"]) == 4
    assert float(rows[-1]["rel_l2"]) > 0
    assert float(rows[-1]["residual u"]) >= 0
    assert "npdg solve poisson --dim 2 --steps 4 --seed 7" in (directory / "report.html").read_text()
    assert (directory / "figures" / "slice.png").exists()


def test_a_saved_run_loads(run):
    import npdg as library

    solution = library.load(run[1])
    assert solution.steps == 4
    assert abs(solution.error().rel_l2 - json.loads(run[0].stdout)["rel_l2"]) < 1e-12


@pytest.mark.slow
def test_a_users_file_runs_and_its_unknown_errors_are_null(tmp_path):
    (tmp_path / "mine.py").write_text(GOOD_FILE)
    done = npdg(
        "solve",
        "mine.py:pde",
        "--dim",
        "2",
        "--steps",
        "2",
        "--json",
        "--precision",
        "float32",
        *QUICK,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["rel_l2"], result["problem"], result["precision"]) == (None, "mine.py:pde", "float32")
    assert (tmp_path / result["run_dir"] / "report.html").exists()


SOLVE = ["solve", "poisson"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["solve", "poissn"], "did you mean 'poisson'"),
        ([*SOLVE, "--method", "npgd"], "did you mean 'npdg'"),
        ([*SOLVE, "--preset", "papr"], "did you mean 'paper'"),
        ([*SOLVE, "--set", "widht=3"], "did you mean 'width'"),
        ([*SOLVE, "--set", "network.widht=3"], "did you mean 'network.width'"),
        ([*SOLVE, "--set", "network.width=0"], "width"),
        ([*SOLVE, "--set", "width"], "key=value"),
        ([*SOLVE, "--set", "width=0"], "width"),
        ([*SOLVE, "--set", "width=many"], "width"),
        ([*SOLVE, "--set", "tau_u=1e400"], "tau_u"),
        ([*SOLVE, "--set", "tau_u=-1"], "tau_u"),
        ([*SOLVE, "--set", "minres_rtol=nan"], "minres_rtol"),
        ([*SOLVE, "--set", "activation=relu"], "tanh, softplus, prelu or sine"),
        ([*SOLVE, "--set", "solver=lsmr", "--set", "damping=0"], "damping"),
        ([*SOLVE, "--set", "momentum=1"], "momentum"),
        ([*SOLVE, "--set", "dual=network", "--set", "momentum=0.5"], "momentum"),
        ([*SOLVE, "--set", "late=true"], "late"),
        ([*SOLVE, "--set", "activation=prelu"], "second derivatives"),
        ([*SOLVE, "--set", "solution=wave"], "sines or cosines"),
        ([*SOLVE, "--dim", "0"], "dim"),
        ([*SOLVE, "--dim", "-3"], "dim"),
        ([*SOLVE, "--dim", "ten"], "dim"),
        ([*SOLVE, "--dim", "1e400"], "dim"),
        ([*SOLVE, "--seconds", "0"], "seconds"),
        ([*SOLVE, "--seconds", "nan"], "seconds"),
        ([*SOLVE, "--steps", "0"], "steps"),
        ([*SOLVE, "--seed", "-1"], "seed"),
        ([*SOLVE, "--precision", "float16"], "float32 or float64"),
        ([*SOLVE, "--out", "."], "never overwritten"),
        ([*SOLVE, "--track", "tensorbord"], "did you mean 'tensorboard'"),
        ([*SOLVE, "--dimm", "3"], "--dim"),
        (["solve"], "PROBLEM"),
        (["slove", "poisson"], "solve"),
        (["solve", "nowhere.py:pde"], "does not exist"),
        (["solve", "mine.py"], "FILE.py:NAME"),
        (["solve", "mine.py:nothing"], "has no 'nothing'"),
        (["solve", "mine.py:number"], "is a int"),
        (["solve", "mine.py:pde"], "give --dim"),
        (["solve", "mine.py:wrong", "--dim", "2"], "flux: returned shape"),
        (["solve", "mine.py:pde", "--dim", "2", "--preset", "paper"], "not in the paper"),
        (["solve", "broken.py:pde"], "ModuleNotFoundError"),
        (["show", "poisson", "--dim", "0"], "dim"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_exit_2_and_one_line_and_nothing_is_written(arguments, says, tmp_path):
    (tmp_path / "mine.py").write_text(GOOD_FILE)
    (tmp_path / "broken.py").write_text("import there_is_no_such_module")
    before = set(tmp_path.iterdir())
    done = npdg(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert says in done.stderr
    assert {p for p in tmp_path.iterdir() if p.name != "__pycache__"} == before


def test_divergence_is_exit_3_and_says_what_went_bad(tmp_path):
    rates = ["--set", "tau_u=1e30", "--set", "tau_phi=1e30", "--set", "tau_psi=1e30"]
    done = npdg(
        "solve",
        "poisson",
        "--dim",
        "2",
        "--method",
        "npdg-flat",
        "--steps",
        "50",
        "--json",
        *rates,
        *QUICK,
        cwd=tmp_path,
    )
    assert done.returncode == 3
    result = json.loads(done.stdout)
    assert result["stop_reason"] == "diverged"
    assert result["steps"] < 50
    assert "not finite in step" in done.stderr.splitlines()[-1]


def test_a_directory_that_cannot_be_made_is_exit_4(tmp_path):
    (tmp_path / "file").write_text("")
    done = npdg(*SOLVE, "--dim", "2", "--steps", "1", "--out", "file/run", cwd=tmp_path)
    assert done.returncode == 4
    assert len(done.stderr.splitlines()) == 1


def test_ctrl_c_keeps_the_run(tmp_path):
    process = subprocess.Popen(
        [*NPDG, "solve", "poisson", "--dim", "2", "--seconds", "500", "--out", "o", *QUICK], cwd=tmp_path
    )
    deadline = time.time() + 120
    while not (tmp_path / "o" / "metrics.csv").exists() and time.time() < deadline:
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    try:
        assert process.wait(timeout=120) == 130
    finally:
        process.kill()
    assert json.loads((tmp_path / "o" / "result.json").read_text())["stop_reason"] == "interrupted"


@pytest.mark.parametrize("words", [["--help"], ["list"]], ids=" ".join)
def test_help_and_listing_do_not_import_jax(words, tmp_path):
    code = (
        "import sys; from npdg.cli.app import app\n"
        f"try: app({words!r}, standalone_mode=False)\n"
        "except SystemExit: pass\n"
        "assert 'jax' not in sys.modules and 'numpy' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert ("solve" if words == ["--help"] else "poisson") in done.stdout


def test_import_does_not_touch_64_bit_mode_or_load_jax(tmp_path):
    code = (
        "import npdg, sys; assert 'jax' not in sys.modules; npdg.PDE\n"
        "import jax; assert not jax.config.read('jax_enable_x64')"
    )
    environment = {**os.environ}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr


def test_show_prints_equation_sizes_and_memory(tmp_path):
    done = npdg("show", "poisson", "--dim", "50", "--preset", "paper", cwd=tmp_path)
    assert done.returncode == 0
    for words in ("−Δu", "276480", "memory", "minres_rtol"):
        assert words in done.stdout

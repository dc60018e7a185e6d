"""Comparisons, and the tables and figures of the paper: what they write, with cheap runs in place of long ones."""

import csv
import io
import json
import math
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.image
import numpy as np
import pytest
from matplotlib.figure import Figure
from rich.console import Console

from npdg import reproduce
from npdg.catalogue import allen_cahn, find
from npdg.cli.app import _guarded, app
from npdg.driver import make_plan
from npdg.methods.monge import start_fields
from npdg.reproduce import allen_cahn as ac_figures
from npdg.reproduce import reproduction
from npdg.reproduce.pictures import shell_errors
from npdg.reproduce.tables import solution_norms
from npdg.results.error import Errors
from npdg.results.solution import Solution
from npdg.results.trajectory import Trajectory
from npdg.results.transport_map import TransportMap
from npdg.runs import race
from npdg.runs.figures import transport as transport_figures
from npdg.runs.race import Entry, RaceRun
from npdg.training.progress import Budget, Events, Progress
from npdg.training.records import Record, TimeStep
from npdg.training.step import State
from npdg.training.stopping import StopReason


def command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess:
    program = [sys.executable, "-m", "npdg.cli", *arguments]
    return subprocess.run(program, cwd=cwd, capture_output=True, text=True, timeout=300)


def state_of(fields) -> State:
    return State(dict(fields), {}, jax.random.key(0), jnp.asarray(10))


def at_rest(plan, events=None):
    """What a plan comes to if nothing is trained."""
    return {"equation": untrained, "transport": resting}[plan.problem.kind](plan, events)


def untrained(plan, events=None) -> Solution:
    """A solution as a run returns it, whose network never learnt anything and whose errors halve every second."""
    chosen = plan.settings.changed(width=4)
    counts = {"u": 3, "phi": 2, "psi": 1}
    history = [
        Record(k, float(k), {"pairing": 0.1}, counts, dict.fromkeys(counts, 0.1), {"rel_l2": 2.0**-k, "rel_h1": 1.0})
        for k in range(1, 11)
    ]
    recipe = plan.method.recipe(plan.problem, chosen)
    state = state_of(plan.method.start(plan.problem, chosen)(jax.random.key(plan.seed)))
    ended = Progress(state, recipe, chosen, history, 10.0, 1.0, StopReason.SECONDS)
    return plan.method.result(plan.problem, ended, plan.seed)


def untrained_on(problem) -> Solution:
    return untrained(make_plan(problem, "npdg", Budget()))


def standing(evolution, method="npdg", *, seconds=None, should_stop=None, **how) -> Trajectory:
    """A trajectory as a march returns it, whose network never learnt anything."""
    plan = make_plan(evolution, method, Budget(seconds), **how)
    chosen = plan.settings.changed(width=4)
    recipe = plan.method.recipe(evolution, chosen)
    state = state_of({"u": recipe.start(jax.random.key(0))["u"]})
    history = [Record(k, float(k), {}, {}, {}, {"rmse": 2.0**-k}) for k in range(1, 5)]
    times = [float(t) for t in evolution.times]
    steps = tuple(
        TimeStep(k, t, 0.1, "tolerance", "", 1.0, 0.0, history, 0.5 / (1 + k), 1.0 / (1 + k))
        for k, t in enumerate(times)
    )
    kept = tuple((t, state.fields["u"]) for t in times)
    return plan.method.result(evolution, Progress(state, recipe, chosen, trail=steps, kept=kept), 0)


def resting(plan, events=None) -> TransportMap:
    """A transport map as a run returns it, which never moved from its start."""
    pair, seconds = plan.problem, plan.budget.seconds
    chosen = plan.settings.changed(width=4, depth=2)
    recipe, state = plan.method.recipe(pair, chosen), state_of(start_fields(pair, chosen, jax.random.key(0)))
    history = [Record(k, float(k), {}, {}, {}, {"map_l2": 2.0**-k, "uvp": 1.0}) for k in range(1, 5)]
    for k in range(1, 5):
        (events or Events()).checkpoints.between(Progress(state, recipe, chosen, seconds=seconds * k / 4))
    ended = Progress(state, recipe, chosen, history, seconds, 1.0, StopReason.SECONDS)
    return plan.method.result(pair, ended, plan.seed)


QUICK = ("table1", "table2", "fig-nonlinear2", "fig-ac3", "fig-ma50d-steps")  # one of every kind; the others are slow


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in reproduce.TARGETS]
)
def test_every_target_writes_its_numbers_its_picture_and_a_summary(name, tmp_path, monkeypatch):
    monkeypatch.setattr(race, "carry_out", at_rest)
    monkeypatch.setattr(ac_figures, "march", standing)
    scores = dict.fromkeys(("map_l2", "uvp", "sliced_w2", "gap"), 0.5)
    monkeypatch.setattr(TransportMap, "score", lambda self: scores)
    monkeypatch.setattr(transport_figures, "GRID", 12)
    monkeypatch.setattr(transport_figures, "DRAWN", 200)
    monkeypatch.setattr(allen_cahn, "INTERVALS", {1: 800, 2: 100})
    monkeypatch.setattr(jax, "clear_caches", lambda: None)
    monkeypatch.setattr(Solution, "error", lambda self: Errors(0.5, 0.7))
    console = Console(file=(tmp_path / "out.txt").open("w"), width=200)
    directory = reproduction.run(reproduce.TARGETS[name], "quick", tmp_path / "new", console)
    assert (directory / "summary.txt").read_text().startswith(name)
    tables = list(directory.glob("*.csv"))
    assert tables
    assert all(list(csv.DictReader(path.open())) for path in tables)
    if name not in ("table1", "table2", "table3"):
        pictures = list(directory.glob("*.png"))
        assert pictures
        assert all(matplotlib.image.imread(path)[..., :3].std() > 0.01 for path in pictures)
    if name in ("table3", "table4"):
        assert "paper" in (directory / "summary.txt").read_text()


def test_settings_are_those_of_tables_1_and_2(tmp_path):
    for name in ("table1", "table2"):
        directory = reproduction.run(reproduce.TARGETS[name], "quick", tmp_path / name, Console(quiet=True))
        rows = list(csv.DictReader((directory / f"{name}.csv").open()))
        assert [row for row in rows if float(row["ours"]) != float(row["paper"])] == []


def test_norms_are_the_closed_forms():
    value, slope = solution_norms(find("poisson").build(10), 200_000)
    mean, square = 2 / math.pi, 0.5
    np.testing.assert_allclose(value, (10 * square + 90 * mean**2) ** 0.5, rtol=2e-3)
    np.testing.assert_allclose(slope, (10 * math.pi**2 / 8) ** 0.5, rtol=2e-3)


def test_shells_are_those_of_the_maximum_norm():
    """The error of 0 is |u*|: on the outermost shell of 1-D, mean of x⁴/4 over 0.98 < |x| < 1."""
    pde = find("varcoeff").build(2)
    solution = untrained_on(pde)
    zero = jax.tree.map(lambda leaf: 0 * leaf, solution.u)
    shells = shell_errors(replace(solution, u=zero), points=20_000)
    sizes, errors = zip(*shells, strict=True)
    np.testing.assert_allclose(sizes, np.arange(1, 51) / 50)
    # On |x|_∞ = s: half of the points have |x₁| = s and x₂ uniform, the other half the reverse.
    s, t = 0.99, np.linspace(-0.99, 0.99, 2001)
    one, two = (s**2 / 2 + t**2 / 8) ** 2, (t**2 / 2 + s**2 / 8) ** 2
    np.testing.assert_allclose(errors[-1], np.sqrt((one.mean() + two.mean()) / 2), rtol=0.03)
    np.testing.assert_allclose(errors[24] / errors[-1], (0.49 / 0.99) ** 2, rtol=0.03)


def test_time_to_an_accuracy_is_the_first_time():
    lap = RaceRun(Entry("x"), untrained_on(find("poisson").build(2)), {"rel_l2": 0.5, "rel_h1": 0.5})
    assert lap.time_to(0.3) == 2.0
    assert lap.time_to(1e-9) is None
    assert race.median_time([lap, lap, lap], 0.25) == 2.0


def test_a_race_that_was_stopped_at_once_has_an_empty_picture():
    race.figure([], "nothing").savefig(io.BytesIO())
    axes = Figure().subplots()
    race.draw(axes, [])
    assert axes.get_xlabel() == "training seconds"


TINY = ["--set", "width=8", "--set", "n_interior=50", "--set", "n_boundary=20"]


@pytest.mark.slow
def test_compare_gives_a_table_curves_and_json(tmp_path):
    done = command(
        *["compare", "poisson", "--dim", "2", "--methods", "pinn,wan", "--seconds", "0.5", "--seeds", "2"],
        *["--json", "--out", "out", *TINY],
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert list(result["methods"]) == ["pinn", "wan"]
    for entry in result["methods"].values():
        assert [run["seed"] for run in entry["runs"]] == [0, 1]
        assert entry["rel_l2_min"] <= entry["rel_l2"] <= entry["rel_l2_max"]
        assert "1e-01" in entry["seconds_to"]
    assert result == json.loads((tmp_path / "out" / "compare.json").read_text())
    rows = list(csv.DictReader((tmp_path / "out" / "curves.csv").open()))
    assert {row["entry"] for row in rows} == {"pinn", "wan"}
    assert (tmp_path / "out" / "curves.png").exists()


@pytest.mark.slow
def test_maps_are_compared_by_their_own_errors(tmp_path):
    small = ["--set", "width=8", "--set", "n_interior=64", "--set", "n_metric=32"]
    done = command(
        *["compare", "ot-1d", "--methods", "npdg,pd-adam", "--seconds", "0.5", "--json", "--out", "out", *small],
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    methods = json.loads(done.stdout)["methods"]
    assert list(methods) == ["npdg", "pd-adam"]
    # Natural steps are ahead of Adam's first half second, by every figure.
    assert all(methods["npdg"][key] < methods["pd-adam"][key] for key in ("map_l2", "uvp", "sliced_w2"))
    assert {"map_l2", "sliced_w2"} <= set(next(csv.DictReader((tmp_path / "out" / "curves.csv").open())))
    assert (tmp_path / "out" / "curves.png").exists()


@pytest.mark.slow
def test_a_method_that_diverges_is_a_row(tmp_path):
    done = command(
        *["compare", "poisson", "--dim", "2", "--methods", "pinn,deep-ritz", "--seconds", "0.5", *TINY],
        *["--set", "tau_u=1e30"],
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("diverged") >= 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["compare", "poisson", "--methods", "pinn,wam"], "did you mean 'wan'"),
        (["compare", "nonlinear", "--methods", "pinn,deep-ritz"], "energy"),
        (["compare", "ot-1d", "--methods", "npdg,pinn"], "'pinn' is not allowed for transport"),
        (["compare", "allen-cahn-1d", "--set", "tolerance=-1"], "tolerance: '-1' is not allowed"),
        (["compare", "poisson", "--seconds", "0"], "seconds"),
        (["compare", "poisson", "--seeds", "0"], "seeds"),
        (["compare", "poisson", "--seeds", "two"], "seeds"),
        (["compare", "varcoeff", "--dim", "3"], "even"),
        (["solve", "nonlinear", "--method", "deep-ritz"], "energy"),
        (["solve", "poisson", "--method", "natural-pinn", "--preset", "paper"], "not in the paper"),
        (["solve", "poisson", "--method", "pinn", "--set", "dual=exact"], "dual"),
        (["solve", "poisson", "--method", "pinn", "--set", "activation=prelu"], "second derivatives"),
        (["solve", "poisson", "--set", "metric=operator"], "metric"),
        (["reproduce"], "--list"),
        (["reproduce", "table5"], "table4"),
        (["reproduce", "table1", "--scale", "huge"], "scale"),
    ],
)
def test_bad_input_is_one_line_and_nothing_written(arguments, says, tmp_path):
    done = command(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert list(Path(tmp_path).iterdir()) == []


HEAT = """
import jax.numpy as jnp
import npdg

def heat(exact):
    return npdg.Evolution(
        lambda t: npdg.PDE(
            npdg.Box(0.0, 1.0, dim=1),
            flux=lambda u, x: 0.1 * npdg.grad(u)(x),
            boundary=npdg.Neumann(0.0),
            exact=(lambda x: jnp.exp(-0.1 * jnp.pi**2 * t) * jnp.cos(jnp.pi * x[0])) if exact else None,
        ),
        start=lambda x: jnp.cos(jnp.pi * x[0]),
        until=0.5,
        steps=2,
    )

known, unknown = heat(True), heat(False)
"""


@pytest.mark.slow
def test_marches_are_compared_by_their_root_mean_square_error(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "mine.py").write_text(HEAT)
    words = ["compare", f"{tmp_path / 'mine.py'}:known", "--methods", "natural-pinn,pinn", "--seconds", "60"]
    settings = ["width=8", "depth=2", "n_interior=60", "n_boundary=10", "tolerance=1e-2", "step_max=20"]
    words += [word for setting in settings for word in ("--set", setting)]
    assert _guarded(lambda: app([*words, "--out", str(tmp_path / "out")], standalone_mode=False)) == 0
    out = capsys.readouterr().out
    result = json.loads((tmp_path / "out" / "compare.json").read_text())
    assert list(result["methods"]) == ["natural-pinn", "pinn"]
    for name, entry in result["methods"].items():
        [run] = entry["runs"]
        assert run["stop_reason"] == "done"
        assert entry["rmse"] == entry["rmse_min"] == entry["rmse_max"] == run["rmse"]
        [row] = [line.split() for line in out.splitlines() if line.split()[:1] == [name]]  # of the table
        assert row[1] == f"{entry['rmse']:.2e}"
    assert re.search(r"^ *method +root mean square +min – max", out, re.MULTILINE)
    # What two steps of implicit Euler leave, whoever solves them.
    decay = 0.1 * math.pi**2
    left = abs((1 + decay / 4) ** -2 - math.exp(-decay / 2)) / 2**0.5
    assert result["methods"]["natural-pinn"]["rmse"] == pytest.approx(left, rel=0.2)
    rows = list(csv.DictReader((tmp_path / "out" / "curves.csv").open()))
    assert [(row["entry"], row["step"]) for row in rows] == [(n, k) for n in result["methods"] for k in "012"]
    for name, entry in result["methods"].items():
        assert max(float(row["rmse"]) for row in rows if row["entry"] == name) == entry["rmse"]
    assert (tmp_path / "out" / "curves.png").exists()


def test_a_march_whose_truth_is_not_known_is_not_compared(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(HEAT)
    words = ["compare", f"{tmp_path / 'mine.py'}:unknown", "--out", str(tmp_path / "never")]
    assert _guarded(lambda: app(words, standalone_mode=False)) == 2
    complaint = capsys.readouterr().err
    assert complaint.startswith("npdg: exact: this evolution has no exact solution to compare with")
    assert len(complaint.splitlines()) == 1
    assert not (tmp_path / "never").exists()


def test_a_directory_is_never_overwritten(tmp_path):
    (tmp_path / "out").mkdir()
    done = command("reproduce", "table1", "--out", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert "exists" in done.stderr
    shutil.rmtree(tmp_path / "out")

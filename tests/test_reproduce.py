"""Comparisons, and the tables and figures of the paper: what they write, with cheap runs in place of long ones."""

import csv
import io
import json
import math
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.image
import numpy as np
import pytest
from matplotlib.figure import Figure
from rich.console import Console
from test_cli import npdg as command

from npdg import reproduce
from npdg.hooks import KEEP_NOTHING
from npdg.loop import Outcome, Record, State
from npdg.marching import TimeStep
from npdg.methods import primal
from npdg.presets import choose
from npdg.problems import allen_cahn, find
from npdg.reproduce import allen_cahn as ac_figures
from npdg.reproduce.pictures import shell_errors
from npdg.reproduce.tables import solution_norms
from npdg.runs import race, transport_plots
from npdg.runs.race import Entry, Lap
from npdg.solution import Solution
from npdg.trajectory import Trajectory
from npdg.transport_recipe import start
from npdg.transport_settings import choose_transport
from npdg.transportation import TransportSolution


def untrained(pde, method="npdg", *, preset="default", seconds=None, steps=None, seed=0, should_stop=None, **settings):
    """A solution as a run returns it, whose network never learnt anything and whose errors halve every second."""
    chosen = choose(pde.name, pde.dim, method, preset, {**settings, "width": 4})
    counts = {"u": 3, "phi": 2, "psi": 1}
    history = [
        Record(k, float(k), {"pairing": 0.1}, counts, dict.fromkeys(counts, 0.1), {"rel_l2": 2.0**-k, "rel_h1": 1.0})
        for k in range(1, 11)
    ]
    u = primal(pde, chosen, jax.random.key(seed))
    return Solution(pde, u, method, preset, chosen, seed, "seconds", "", 10, 10.0, 1.0, history)


def standing(evolution, method="npdg", *, preset="default", seconds=None, should_stop=None, **settings):
    """A trajectory as a march returns it, whose network never learnt anything."""
    chosen = choose(evolution.name, evolution.dim, method, preset, {**settings, "width": 4}, evolution.options)
    u = primal(evolution.at(jnp.zeros(())), chosen, jax.random.key(0))
    history = [Record(k, float(k), {}, {}, {}, {"rmse": 2.0**-k}) for k in range(1, 5)]
    steps = [
        TimeStep(k, float(t), 0.1, "tolerance", "", 1.0, 0.0, history, 0.5 / (1 + k), 1.0 / (1 + k))
        for k, t in enumerate(evolution.times)
    ]
    times = [float(t) for t in evolution.times]
    return Trajectory(evolution, method, preset, chosen, 0, steps, times, [u] * len(times))


def resting(pair, method="npdg", *, preset="default", seconds=60.0, keep=KEEP_NOTHING, **settings):
    """A transport map as a run returns it, which never moved from its start."""
    for budget in ("steps", "seed", "should_stop"):
        settings.pop(budget)
    small = {**settings, "width": 4, "depth": 2}
    chosen = choose_transport(pair.name, pair.dim, method, preset, small)
    fields = start(pair, chosen, jax.random.key(0))
    history = [Record(k, float(k), {}, {}, {}, {"map_l2": 2.0**-k, "uvp": 1.0}) for k in range(1, 5)]
    for k in range(1, 5):
        state = State(dict(fields), {}, jax.random.key(0), jnp.zeros((), int))
        keep.between(Outcome(state, "seconds", seconds=seconds * k / 4))
    return TransportSolution(pair, method, preset, chosen, fields, 0, "seconds", "", 4, seconds, 1.0, history)


@pytest.mark.parametrize("name", list(reproduce.TARGETS))
def test_every_target_writes_its_numbers_its_picture_and_a_summary(name, tmp_path, monkeypatch):
    monkeypatch.setattr(race, "solve", untrained)
    monkeypatch.setattr(ac_figures, "march", standing)
    monkeypatch.setattr(race, "carry", resting)
    scores = dict.fromkeys(("map_l2", "uvp", "sliced_w2", "gap"), 0.5)
    monkeypatch.setattr(TransportSolution, "score", lambda self: scores)
    monkeypatch.setattr(transport_plots, "GRID", 12)
    monkeypatch.setattr(transport_plots, "DRAWN", 200)
    monkeypatch.setattr(allen_cahn, "INTERVALS", {1: 800, 2: 100})
    monkeypatch.setattr(jax, "clear_caches", lambda: None)
    monkeypatch.setattr(Solution, "error", lambda self: type("Errors", (), {"rel_l2": 0.5, "rel_h1": 0.7}))
    console = Console(file=(tmp_path / "out.txt").open("w"), width=200)
    directory = reproduce.run(reproduce.TARGETS[name], "quick", tmp_path / "new", console)
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
        directory = reproduce.run(reproduce.TARGETS[name], "quick", tmp_path / name, Console(quiet=True))
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
    solution = untrained(pde)
    zero = jax.tree.map(lambda leaf: 0 * leaf, solution.u)
    shells = shell_errors(Solution(pde, zero, "npdg", "default", solution.settings, 0, "steps"), points=20_000)
    sizes, errors = zip(*shells, strict=True)
    np.testing.assert_allclose(sizes, np.arange(1, 51) / 50)
    # On |x|_∞ = s: half of the points have |x₁| = s and x₂ uniform, the other half the reverse.
    s, t = 0.99, np.linspace(-0.99, 0.99, 2001)
    one, two = (s**2 / 2 + t**2 / 8) ** 2, (t**2 / 2 + s**2 / 8) ** 2
    np.testing.assert_allclose(errors[-1], np.sqrt((one.mean() + two.mean()) / 2), rtol=0.03)
    np.testing.assert_allclose(errors[24] / errors[-1], (0.49 / 0.99) ** 2, rtol=0.03)


def test_time_to_an_accuracy_is_the_first_time():
    lap = Lap(Entry("x"), untrained(find("poisson").build(2)), {"rel_l2": 0.5, "rel_h1": 0.5})
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
        (["compare", "allen-cahn-1d"], "npdg.Pair"),
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


def test_a_directory_is_never_overwritten(tmp_path):
    (tmp_path / "out").mkdir()
    done = command("reproduce", "table1", "--out", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert "exists" in done.stderr
    shutil.rmtree(tmp_path / "out")

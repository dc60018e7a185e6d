"""Runs that stop and go on: bit for bit, from what is on the disk, or refused in one sentence."""

import io
import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

import npdg
from npdg.catalogue import find
from npdg.errors import InputError
from npdg.measures.points import Points
from npdg.methods.registry import make_method, method_names
from npdg.methods.ritz import DeepRitz
from npdg.results.arrays import from_arrays, to_arrays
from npdg.runs import execute
from npdg.runs.checkpoint import Folder, read
from npdg.runs.directory import RunDirectory
from npdg.runs.execute import Surroundings
from npdg.runs.request import read_request
from npdg.runs.resume import read_resumption
from npdg.runs.snapshots import Writer, keep
from npdg.training.loop import advance
from npdg.training.progress import Events, Limits, Progress
from npdg.training.records import Record
from npdg.training.step import Recipe, initial
from npdg.training.stopping import on_plateau, read_until

TINY = {"width": 4, "psi_width": 4, "n_interior": 20, "n_boundary": 8}
# The cheapest to compile; without second derivatives there is no certificate.
METHOD = "deep-ritz"
RUN = ["width=4", "activation=prelu", "n_interior=20", "depth=2"]


def quiet(should_stop=lambda: None) -> Surroundings:
    """No terminal, and somebody who may ask to stop."""
    return Surroundings(Console(file=io.StringIO()), should_stop)


def solve_in(directory: Path, *, should_stop=lambda: None, **values: Any) -> dict[str, Any]:
    defaults = {"problem": "poisson", "dim": "1", "out": directory, "checkpoint_seconds": "0", "method": METHOD}
    request, target = read_request({**defaults, **values}, RUN, None)
    return execute.solve(request, target, quiet(should_stop), "npdg solve").figures


def resume_in(directory: Path, *, should_stop=lambda: None, **budget: str) -> tuple[dict[str, Any], str]:
    request, target = read_resumption(directory, budget.get("seconds"), budget.get("steps"))
    said = io.StringIO()
    around = Surroundings(Console(file=said, width=500), should_stop)
    return execute.resume(directory, request, target, around).figures, said.getvalue()


def last_state(directory: Path) -> dict[str, np.ndarray]:
    """The arrays of the newest checkpoint."""
    return read(max((directory / "checkpoints").glob("*.checkpoint"))).arrays


def assert_equal_bit_for_bit(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> None:
    assert first.keys() == second.keys()
    for name, array in first.items():
        assert array.tobytes() == second[name].tobytes(), name


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A run of 30 steps that nobody disturbed."""
    directory = tmp_path_factory.mktemp("runs") / "whole"
    assert solve_in(directory, steps="30")["stop_reason"] == "steps"
    return directory


def test_a_killed_run_goes_on_bit_for_bit_and_a_run_is_repeated_from_its_configuration(tmp_path):
    directory = tmp_path / "killed"
    words = [part for text in RUN for part in ("--set", text)]
    arguments = ["solve", "poisson", "--dim", "1", "--method", METHOD, "--steps", "1000000", *words]
    arguments += ["--checkpoint-seconds", "0", "--out", str(directory)]
    process = subprocess.Popen([sys.executable, "-m", "npdg.cli", *arguments])
    deadline = time.time() + 120
    while not list(directory.glob("checkpoints/*.checkpoint")) and time.time() < deadline:
        time.sleep(0.05)
    with pytest.raises(InputError, match=f"in use by process {process.pid}"):
        resume_in(directory)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (directory / "result.json").exists()
    reached = read(max((directory / "checkpoints").glob("*.checkpoint"))).facts["step"]
    result, said = resume_in(directory, steps=str(reached + 30))
    assert "going on from step-" in said
    assert (result["steps"], result["stop_reason"]) == (reached + 30, "steps")
    rows = [int(line.split(",")[0]) for line in (directory / "metrics.csv").read_text().splitlines()[1:]]
    assert rows == sorted(set(rows))
    assert rows[-1] == reached + 30
    # Repeated without a break, from what the resumed run wrote down.
    request, target = read_request({"out": tmp_path / "again"}, [], None, directory / "config.toml")
    execute.solve(request, target, quiet(), "")
    assert_equal_bit_for_bit(last_state(directory), last_state(tmp_path / "again"))
    with np.load(directory / "solution.npz") as first, np.load(tmp_path / "again" / "solution.npz") as second:
        assert_equal_bit_for_bit(dict(first), dict(second))


def test_a_finished_run_is_refused_unless_the_budget_is_larger(whole):
    for budget in ({}, {"steps": "30"}, {"seconds": "1e-9"}):
        with pytest.raises(InputError, match="give a larger total"):
            resume_in(whole, **budget)
    with pytest.raises(InputError, match=r"config\.toml is missing"):
        resume_in(whole.parent)


def test_stopping_between_chunks_and_another_platform_and_a_damaged_checkpoint(whole, tmp_path):
    directory = tmp_path / "run"
    asked = iter([None, None, "terminated"])
    result = solve_in(directory, steps="30", should_stop=lambda: next(asked))
    assert result["stop_reason"] == "terminated"
    newest = max((directory / "checkpoints").glob("*.checkpoint"))
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(bytes(content))
    environment = json.loads((directory / "env.json").read_text())
    assert environment["precision"] == "float32"
    (directory / "env.json").write_text(json.dumps({**environment, "python": "2.7"}))
    result, said = resume_in(directory)
    assert f"{newest.name} is damaged" in said
    assert "python differ from env.json" in said
    assert result["stop_reason"] == "steps"
    assert_equal_bit_for_bit(last_state(whole), last_state(directory))


def test_a_checkpoint_of_another_configuration_is_refused(whole, tmp_path):
    directory = tmp_path / "run"
    directory.mkdir()
    (directory / "checkpoints").mkdir()
    for path in [*whole.glob("*.*"), *whole.glob("checkpoints/*")]:
        (directory / path.relative_to(whole)).write_bytes(path.read_bytes())
    (directory / "result.json").unlink()
    text = (directory / "config.toml").read_text()
    for old, new, says in (
        ("seed = 0", "seed = 1", "seed: config.toml says 1"),
        ("width = 4", "width = 5", "does not fit config.toml"),
    ):
        (directory / "config.toml").write_text(text.replace(old, new))
        with pytest.raises(InputError, match=says):
            resume_in(directory)


def test_settings_under_nested_names_are_read_back_while_the_network_is_not_decided(tmp_path):
    values = {"problem": "poisson", "dim": "2", "seconds": "9"}
    request, target = read_request(values, ["solver.damping=1e-2"], None)
    plan = execute.plan_of(request, target)
    assert not plan.decided
    RunDirectory.new(tmp_path, request, target, plan)
    again = execute.plan_of(*read_resumption(tmp_path, None, None))
    assert again.candidates == plan.candidates
    assert {settings.solver.damping for settings in again.candidates} == {1e-2}


@pytest.mark.slow
def test_a_march_goes_on_at_the_next_time_step_bit_for_bit(tmp_path):
    def evolve(directory: Path, stop_after: float) -> dict[str, Any]:
        words = ["width=6", "n_interior=30", "time_steps=2", "until=0.02", "step_max=8", "epsilon=0.1"]
        values = {"problem": "allen-cahn-1d", "out": directory, "checkpoint_seconds": "0"}
        request, target = read_request(values, words, None)
        steps = lambda: len(list(directory.glob("checkpoints/*")))
        stop = lambda: "interrupted" if steps() >= stop_after else None
        return execute.solve(request, target, quiet(stop), "").figures

    assert evolve(tmp_path / "whole", math.inf)["stop_reason"] == "done"
    assert evolve(tmp_path / "halved", 2)["stop_reason"] == "interrupted"
    text = (tmp_path / "halved" / "config.toml").read_text()
    (tmp_path / "halved" / "config.toml").write_text(text.replace("time_steps = 2", "time_steps = 4"))
    with pytest.raises(InputError, match=r"time_steps: config\.toml says 4"):
        resume_in(tmp_path / "halved")
    (tmp_path / "halved" / "config.toml").write_text(text)
    with pytest.raises(InputError, match="steps: a march goes on"):
        resume_in(tmp_path / "halved", steps="5")
    result, _ = resume_in(tmp_path / "halved")
    assert (result["stop_reason"], result["time_steps"]) == ("done", 2)
    assert_equal_bit_for_bit(last_state(tmp_path / "whole"), last_state(tmp_path / "halved"))
    first, second = (npdg.load(tmp_path / name) for name in ("whole", "halved"))
    assert [(s.number, s.rmse, s.steps) for s in first.steps] == [(s.number, s.rmse, s.steps) for s in second.steps]


def recipe_of(method: str, **overrides: Any) -> Recipe:
    made = make_method("equation", method, **{**TINY, "precision": "float32", **overrides})
    pde = find("poisson").build(2)
    return made.recipe(pde, made.candidates(pde)[0])


@pytest.mark.parametrize("method", [*method_names("equation"), "npdg tangent", "npdg network"])
def test_every_state_comes_back_as_it_was_down_to_its_types(method, tmp_path):
    """So that the same program is compiled for a state that was read as for one that was made."""
    name, _, dual = method.partition(" ")
    recipe = recipe_of(name, **({"dual": dual, "solver": "cg", "damping": 1e-3} if dual else {}))
    state = initial(recipe, 1)
    Folder(tmp_path).write(0, None, {}, to_arrays(state))
    arrays = read(tmp_path / "step-000000000.checkpoint").arrays
    restored = from_arrays(initial(recipe, 2), arrays, tmp_path)
    assert jax.tree.structure(restored) == jax.tree.structure(state)
    for a, b in zip(jax.tree.leaves(restored), jax.tree.leaves(state), strict=True):
        assert a.aval == b.aval  # with its weak type
        first, second = (jax.random.key_data(k) if k.dtype == state.key.dtype else k for k in (a, b))
        np.testing.assert_array_equal(first, second)
    missing = {k: v for k, v in arrays.items() if k != ".step"}
    for wrong in (missing, {**arrays, "more": np.zeros(1)}, {**arrays, ".step": np.zeros(3)}):
        with pytest.raises(InputError, match=r"does not fit config\.toml"):
            from_arrays(state, wrong, tmp_path)


def test_more_care_is_ten_times_the_damping_or_half_the_steps():
    pde, npdg_method, pinn = find("poisson").build(2), make_method("equation", "npdg"), make_method("equation", "pinn")
    damped, plain = (method.candidates(pde)[0] for method in (npdg_method, pinn))
    careful = lambda method, settings, times: method.careful(settings, times)[0]
    dampings = [careful(npdg_method, damped, k).solver.damping for k in range(3)]
    assert dampings == pytest.approx([1e-3, 1e-2, 1e-1])
    assert careful(npdg_method, damped, 2).steps.u == damped.steps.u
    assert careful(pinn, plain, 3).steps.u == plain.steps.u / 8


@pytest.mark.slow
def test_a_fault_is_rolled_back_with_more_care_and_never_checkpointed(tmp_path, monkeypatch):
    real, rates = DeepRitz.recipe, []

    def recipe(self, problem, settings):
        rate = settings.steps.u
        rates.append(rate)
        made = real(self, problem, settings)

        def lower(data):
            faulty = lambda fields, point: jnp.where(rate > 0.3, jnp.nan, 0.0)
            saddle = made.lower(data)
            return replace(saddle, given={**saddle.given, "the weather": ("interior", faulty)})

        return replace(made, lower=lower)

    monkeypatch.setattr(DeepRitz, "recipe", recipe)
    folder, notes = Folder(tmp_path / "checkpoints"), []
    kept = keep(Writer(folder, 0.0, {"run": {}}), None, [])
    numbers = {**TINY, "tau_u": 1.0, "activation": "prelu"}
    pde = find("poisson").build(1)
    solution = npdg.solve(pde, METHOD, steps=2, rollbacks=3, checkpoints=kept, on_note=notes.append, **numbers)
    assert [rate for rate, _ in groupby(rates)] == [1.0, 0.5, 0.25]  # the first is also tried before the run begins
    assert (solution.stop_reason, solution.steps) == ("steps", 2)
    assert notes[0] == "the weather was not finite in step 1: rolled back to step 0 with tau_u=0.5"
    assert solution.detail == "; ".join(notes)
    found, _ = folder.newest()
    assert found is not None
    assert (found.facts["step"], found.facts["rollbacks"]) == (2, 2)
    with pytest.warns(RuntimeWarning, match="the weather was not finite"):
        solution = npdg.solve(pde, METHOD, steps=2, rollbacks=1, checkpoints=kept, **numbers)
    assert solution.stop_reason == "diverged"
    assert len(list(folder.directory.iterdir())) == 2  # as before


def advanced(recipe: Recipe, **changes: Any) -> Progress:
    """Five steps of a recipe whose saddle is changed."""
    changed = replace(recipe, lower=lambda data: replace(recipe.lower(data), **changes))
    return advance(Progress(initial(recipe, 0), changed, None), Limits(steps=5), Events())


def test_a_bad_sample_is_named():
    recipe = recipe_of(METHOD)
    measures = recipe.lower({}).measures
    interior = measures["interior"]

    class Holed:
        def sample(self, key: jax.Array, n: int) -> Points:
            return Points(interior.sample(key, n).x.at[0].set(jnp.inf))

    progress = advanced(recipe, measures={**measures, "interior": Holed()})
    assert progress.detail.startswith("a sample of the interior was not finite in step 1")


def test_a_bad_gram_product_is_named():
    recipe = recipe_of("natural-pinn", solver="cg")
    broken = lambda feature: replace(feature, feature=lambda f, p: feature.feature(f, p) * jnp.nan)
    players = [replace(player, metric=tuple(map(broken, player.metric))) for player in recipe.lower({}).players]
    progress = advanced(recipe, players=tuple(players))
    assert progress.detail.startswith("a Gram product of u was not finite in step 1")


def records(residuals: list[float]) -> list[Record]:
    return [Record(k + 1, float(k), {}, {}, {}, {"rel_l2": r}, rms_residual=r) for k, r in enumerate(residuals)]


def test_until_waits_for_what_it_says():
    falling = records([1 / k for k in range(1, 201)])
    met = read_until("rel_l2=1e-2").met
    assert (met(falling[:90]), met(falling[:100])) == (None, "until rel_l2")
    met = read_until("residual=1e-2").met
    assert (met(falling[:90]), met(falling)) == (None, "until residual")
    assert not on_plateau(falling)
    assert not on_plateau(records([1.0] * 40))  # too few to tell
    assert on_plateau(records([1 + 1 / k for k in range(1, 201)]))
    known = find("poisson").build(1)
    unknown = replace(known, exact=None)
    make_method("equation", "npdg").check_until(known, read_until("rel_h1=1"))
    make_method("equation", "npdg").check_until(unknown, read_until("residual=1e-2"))
    with pytest.raises(InputError, match="exact solution"):
        make_method("equation", "npdg").check_until(unknown, read_until("rel_h1=1"))
    with pytest.raises(InputError, match="no residual"):
        make_method("equation", "deep-ritz").check_until(known, read_until("plateau"))


def test_a_users_file_goes_on_by_its_path_and_is_refused_when_it_has_changed(tmp_path, monkeypatch):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "import npdg\nfrom npdg import grad\npde = npdg.PDE(npdg.Box(0.0, 1.0, dim=1), flux=lambda u, x: grad(u)(x))\n"
    )
    asked = iter([None, "interrupted"])
    monkeypatch.chdir(tmp_path)
    stop = lambda: next(asked, None)
    solve_in(Path("run"), problem="mine.py:pde", dim=None, steps="4", should_stop=stop)
    monkeypatch.chdir(os.sep)
    result, _ = resume_in(tmp_path / "run")
    assert (result["steps"], result["problem"]) == (4, "mine.py:pde")
    mine.write_text(mine.read_text() + "\n")
    with pytest.raises(InputError, match="has changed"):
        read_resumption(tmp_path / "run", None, "9")
    mine.unlink()
    with pytest.raises(InputError, match="does not exist"):
        read_resumption(tmp_path / "run", None, "9")

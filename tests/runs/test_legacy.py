"""Run directories and configurations of version 0.1.0, which had flat settings and another layout: they still load."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import npdg
from npdg.cli.app import _guarded, app

KEPT = Path(__file__).parents[1] / "legacy"
VALUES = json.loads((KEPT / "values.json").read_text())
PLANE, LINE = np.array([[0.1, 0.7], [0.4, 0.3]]), np.array([[0.3], [1.1]])


def run(*arguments: str) -> int:
    return _guarded(lambda: app(list(arguments), standalone_mode=False))


@pytest.mark.parametrize("name", ["equation", "corrected"])
def test_a_saved_solution_has_the_values_it_had(name):
    solution = npdg.load(KEPT / name)
    np.testing.assert_allclose(solution(PLANE), VALUES[name], rtol=1e-12)
    assert solution.polished == (name == "corrected")
    assert solution.history
    assert solution.settings.network.width == 4


def test_a_saved_march_and_saved_maps_have_the_values_they_had():
    march = npdg.load(KEPT / "evolution")
    np.testing.assert_allclose(march(0.7, LINE), VALUES["evolution"], rtol=1e-12)
    assert len(march.steps) == 3
    np.testing.assert_allclose(npdg.load(KEPT / "transport").map(LINE), VALUES["transport"], atol=1e-4)
    np.testing.assert_allclose(npdg.load(KEPT / "samples").map(PLANE), VALUES["samples"], atol=1e-4)


@pytest.mark.parametrize("name", ["equation", "evolution", "transport"])
def test_its_report_is_made_anew(name, tmp_path, capsys):
    copy = shutil.copytree(KEPT / name, tmp_path / name)
    assert run("report", str(copy)) == 0
    assert (copy / "report.html").stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.parametrize("name", ["equation", "evolution", "transport"])
def test_its_configuration_is_run_again(name, tmp_path, capsys):
    assert run("solve", "--config", str(KEPT / name / "config.toml"), "--out", str(tmp_path / "again"), "--json") == 0
    before, after = json.loads((KEPT / name / "result.json").read_text()), json.loads(capsys.readouterr().out)
    assert after["steps"] == before["steps"]
    for key in ("rel_l2", "map_l2"):
        if before.get(key) is not None:
            assert after[key] == pytest.approx(before[key], rel=1e-3)


@pytest.mark.slow
def test_a_run_that_was_interrupted_goes_on(tmp_path, capsys):
    copy = shutil.copytree(KEPT / "interrupted", tmp_path / "run")
    assert run("resume", str(copy), "--steps", "4700", "--json") == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 4700


@pytest.mark.slow
def test_a_march_that_was_killed_goes_on(tmp_path, capsys):
    copy = shutil.copytree(KEPT / "killed_evolution", tmp_path / "run")
    assert run("resume", str(copy), "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert result["time_steps"] == 2
    assert result["stop_reason"] == "done"

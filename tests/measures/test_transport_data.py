"""Transport of a user's own data: any units, flat clouds, file names with commas, files that have changed."""

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_transport import FLAGS, SMALL

import npdg
from npdg.cli.app import _guarded, app
from npdg.errors import InputError
from npdg.methods.monge import start_fields, units_of
from npdg.methods.registry import make_method
from npdg.problem.units import Moved, Units
from npdg.results.scores import MapScorer
from npdg.runs.request import _two_files

RNG = np.random.default_rng(0)
SOURCE, TARGET = RNG.normal(size=(300, 2)), RNG.normal(size=(400, 2)) @ np.diag([2.0, 0.5]) + [1.0, 0.0]


def command(*words: object) -> int:
    return _guarded(lambda: app([str(word) for word in words], standalone_mode=False))


@pytest.fixture(scope="module")
def solutions():
    """The same data as it is, and in other units; 512 is a power of the base, so that all roundings are the same."""
    keywords: dict[str, Any] = {"steps": 3, **SMALL}
    return npdg.transport(SOURCE, TARGET, **keywords), npdg.transport(512 * SOURCE + 4096, 512 * TARGET, **keywords)


@pytest.mark.slow
def test_units_do_not_matter(solutions):
    one, other = solutions
    x, y = SOURCE[:50], TARGET[:50]
    np.testing.assert_allclose(other.map(512 * x + 4096), 512 * one.map(x), rtol=1e-3, atol=0.5)
    np.testing.assert_allclose(other.inverse(512 * y), 512 * one.inverse(y) + 4096, rtol=1e-3, atol=0.5)
    first, second = one.score(), other.score()
    for key in ("sliced_w2", "sliced_w2_floor"):
        assert second[key] == pytest.approx(512 * first[key], rel=1e-3)


@pytest.mark.slow
def test_the_potential_belongs_to_the_map(solutions):
    """Its gradient leads back from y, in any units."""
    _, solution = solutions
    y, step = 512 * TARGET[:20], 0.5
    for axis in range(2):
        aside = step * np.eye(2)[axis]
        slope = (solution.potential(y + aside) - solution.potential(y - aside)) / (2 * step)
        np.testing.assert_allclose(slope, solution.inverse(y)[:, axis] - y[:, axis], rtol=2e-2, atol=20)


def test_problems_of_size_one_are_left_as_they_are():
    pair = npdg.Pair(npdg.Gaussian([0.0, 0.0], np.eye(2)), npdg.Gaussian([0.0, 0.0], 2 * np.eye(2)))
    inside = Units.of(pair, translate=True).inside(pair)
    assert inside.source is pair.source
    assert inside.target is pair.target


def test_a_moved_measure_has_its_moments_and_its_density():
    gaussian = npdg.Gaussian([100.0, -50.0], [[400.0, 30.0], [30.0, 100.0]])
    moved = Moved(gaussian, gaussian.mean, 8.0)
    x = np.asarray(moved.sample(jax.random.key(0), 4096).x)
    np.testing.assert_allclose(np.cov(x, rowvar=False), moved.covariance, rtol=0.03)
    same = npdg.Gaussian([0.0, 0.0], gaussian.covariance / 64)
    at = jnp.array([0.3, -0.2])
    np.testing.assert_allclose(np.asarray(moved.log_density(at)), same.log_density(at), rtol=1e-4)


def test_the_monge_ampere_equation_holds_for_gaussians_of_any_size():
    pair = npdg.Pair(npdg.Gaussian([900.0, 0.0], 1e4 * np.eye(2)), npdg.Gaussian([0.0, 70.0], 4e4 * np.eye(2)))
    method = make_method("transport", "npdg", **SMALL, precision="float64")
    [settings] = method.candidates(pair)
    assert units_of(pair, settings).scale == 64
    with jax.enable_x64(True):
        fields = start_fields(pair, settings, jax.random.key(0))
        found = MapScorer(pair, 500, 0, densities=200).score(method.trained_map(pair, settings, fields))
    assert found["monge_ampere"] is not None
    assert found["monge_ampere"] < 0.1  # the start is the answer but for its faint networks
    assert found["distance"] == pytest.approx((900**2 + 70**2 + 2 * 100**2) ** 0.5, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("flat", ["source", "target", "both"])
def test_flat_clouds(flat, tmp_path, capsys):
    """A constant column is ordinary data."""
    clouds = {"source": SOURCE.copy(), "target": TARGET.copy()}
    for side in clouds if flat == "both" else [flat]:
        clouds[side][:, 1] = 3.0
    for side, points in clouds.items():
        np.save(tmp_path / f"{side}.npy", points)
    words = ("transport", tmp_path / "source.npy", tmp_path / "target.npy", "--steps", 2, "--out", tmp_path / "run")
    assert command(*words, "--json", *FLAGS) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["sliced_w2"] < 2.5
    assert (tmp_path / "run" / "figures" / "map.png").is_file()
    moved = npdg.load(tmp_path / "run").map(clouds["source"])
    assert np.std(moved[:, 1]) < 0.1  # of a line, or onto it


@pytest.mark.slow
def test_a_comma_in_a_name_and_samples_that_have_changed(tmp_path, capsys):
    folder = tmp_path / "a,b.npy,c"
    folder.mkdir()
    np.save(folder / "x.npy", SOURCE)
    np.save(folder / "y.npy", TARGET)
    assert _two_files(f"{folder / 'x.npy'},{folder / 'y.npy'}") == (folder / "x.npy", folder / "y.npy")
    assert _two_files("x.npy") is None
    words = ("transport", folder / "x.npy", folder / "y.npy", "--steps", 1, "--out", tmp_path / "run", "--json", *FLAGS)
    assert command(*words) == 0
    result = json.loads(capsys.readouterr().out)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "sup" in page
    assert "div" not in page.split("<math")[1].split("</math>")[0]  # not the general form of an equation
    config = tmp_path / "run" / "config.toml"
    assert command("solve", "--config", config, "--out", tmp_path / "again", "--json") == 0
    assert json.loads(capsys.readouterr().out)["sliced_w2"] == result["sliced_w2"]
    np.save(folder / "y.npy", TARGET + 1)
    for words in (
        ("solve", "--config", config, "--out", tmp_path / "never"),
        ("resume", tmp_path / "run", "--steps", 3),
    ):
        assert command(*words) == 2
        assert "has changed since this configuration was written" in capsys.readouterr().err
    assert not (tmp_path / "never").exists()


def test_too_much_memory_is_refused_before_anything_is_written(tmp_path, capsys):
    np.save(tmp_path / "x.npy", SOURCE)
    large = ("--set", "n_interior=10000000", "--set", "width=4096", "--out", tmp_path / "never")
    for words in (("transport", tmp_path / "x.npy", tmp_path / "x.npy"), ("solve", "poisson"), ("compare", "ot-1d")):
        assert command(*words, *large) == 2
        assert "GB" in capsys.readouterr().err
        assert not (tmp_path / "never").exists()


def test_a_comparison_in_which_no_method_can_play_is_refused(tmp_path, capsys):
    words = ("compare", "ot-1d", "--set", "activation=prelu", "--set", "refine=3", "--out", tmp_path / "never")
    assert command(*words) == 2
    assert capsys.readouterr().err.startswith("npdg: activation: 'prelu'")
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x: x * 1e300, "above 1e.100"),
        (lambda x: x * 1e150, "above 1e.100"),
        (lambda x: x * 1e-300, "spread is .*e-300"),
        (lambda x: x + 1e12, "subtract its mean"),
    ],
)
def test_samples_of_which_no_digits_would_be_left_are_refused(change, said):
    x = np.random.default_rng(0).normal(size=(100, 2))
    with pytest.raises(InputError, match=said):
        npdg.Transport(change(x), x)


def test_samples_are_scored_in_double_precision_far_from_zero():
    x, y = np.random.default_rng(0).normal(size=(2, 500, 2))
    near, far = (MapScorer(npdg.Transport(x + c, y + c), 500, 1, densities=0).floors for c in (0.0, 1e9))
    assert far["sliced_w2_floor"] == pytest.approx(near["sliced_w2_floor"], rel=1e-5)

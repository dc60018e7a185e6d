"""The transport problems: their truths, presets, runs from the command line, saved maps, pictures."""

import json
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from small_transport import FLAGS, SMALL

import npdg
from npdg.catalogue import find
from npdg.cli.app import _guarded, app
from npdg.errors import InputError
from npdg.fields.base import Frozen, parameter_count
from npdg.fields.maps import Stretch, Sum
from npdg.measures.empirical import Empirical
from npdg.measures.moments import independent
from npdg.measures.sobol import shifted_sobol
from npdg.methods.monge import start_fields
from npdg.methods.registry import make_method
from npdg.methods.settings import TransportSettings
from npdg.methods.transport import TransportAdam
from npdg.problem.transport import Transport
from npdg.reference.transport_maps import assignment, ring


def chosen(pair: Transport, method: str = "npdg", preset: str = "default", **changes: Any) -> TransportSettings:
    """The settings of a run."""
    [found] = make_method("transport", method, preset=preset, **changes).candidates(pair)
    return found


@given(seed=st.integers(0, 2**32 - 1), dim=st.integers(1, 6), power=st.integers(1, 8))
@settings(max_examples=20, deadline=None)
def test_shifted_points_are_still_a_net(seed, dim, power):
    """Every interval of length 1/n of every axis holds exactly one of n = 2^k points."""
    n = 2**power
    points = np.asarray(shifted_sobol(jax.random.key(seed), n, dim))
    assert points.shape == (n, dim)
    for column in points.T:
        np.testing.assert_array_equal(np.sort((column * n).astype(int)), np.arange(n))


def test_independent_samples_have_the_moments_and_differ():
    gaussian = npdg.Gaussian([1.0, -1.0], [[2.0, 0.3], [0.3, 0.5]])
    x = np.asarray(independent(gaussian).sample(jax.random.key(0), 20_000).x)
    np.testing.assert_allclose(np.cov(x, rowvar=False), gaussian.covariance, atol=0.06)
    array = Empirical(x)
    assert independent(array) is array


def test_the_one_dimensional_truth_carries_one_distribution_function_to_the_other():
    pair = find("ot-1d").build(1)
    assert pair.truth is not None
    x, y = pair.truth(2000)
    mixture = 2 / 3 * norm.cdf((y + 1) / 0.5) + 1 / 3 * norm.cdf((y - 1) / 0.5)
    np.testing.assert_allclose(mixture, norm.cdf(x), atol=1e-6)


@pytest.mark.parametrize(("dim", "kind"), [(5, "paper"), (3, "rotated")])
def test_the_gaussian_truth_pushes_forward(dim, kind):
    pair = find("ot-gaussian").build(dim, pair=kind)
    assert pair.truth is not None
    x, y = pair.truth(2**14)
    np.testing.assert_allclose(np.cov(y, rowvar=False), pair.target.covariance, atol=0.15)
    if kind == "paper":
        np.testing.assert_allclose(y[:, 0], 2 * x[:, 0], atol=1e-5)
        np.testing.assert_allclose(y[:, 3], 0.75 * x[:, 3] + 0.25 * x[:, 4], atol=1e-5)
    with pytest.raises(InputError, match="at least 4"):
        find("ot-gaussian").build(3)


def test_the_assignment_is_optimal_and_respects_the_weights():
    weights = (1 / 20, 1 / 5) * 4
    x, y = assignment(weights, 3.0, 0.16, 400)
    assert np.all((x[:, 1] >= 0) & (x[:, 1] <= x[:, 0]))
    cost = np.sum((x - y) ** 2)
    rng = np.random.default_rng(0)
    for _ in range(20):  # no exchange of partners is cheaper
        i, j = rng.choice(400, (2, 200), replace=False)
        assert np.all(
            np.sum((x[i] - y[i]) ** 2 + (x[j] - y[j]) ** 2 - (x[i] - y[j]) ** 2 - (x[j] - y[i]) ** 2, 1) < 1e-9
        )
    assert cost < np.sum((x - y[::-1]) ** 2)
    # In the wedge lie half of a heavy mode and half of a light one.
    nearest = np.argmin(np.linalg.norm(y[:, None] - ring(8, 3.0)[None], axis=2), axis=1)
    np.testing.assert_allclose(np.mean(nearest == 0), 0.2, atol=0.02)


def test_paper_presets():
    line = chosen(find("ot-1d").build(1), preset="paper")
    network, steps = line.network, line.steps
    assert (network.width, network.depth, line.samples.interior, steps.u, steps.omega) == (50, 3, 800, 0.15, 1.0)
    assert (network.activation, line.solver.kind, line.start.affine, line.functional.refine) == (
        "prelu",
        "minres",
        False,
        0,
    )
    fifty = chosen(find("ot-mixture").build(50), preset="paper")
    network, steps = fifty.network, fifty.steps
    assert (network.width, network.depth, steps.omega, steps.phi, fifty.solver.rtol) == (120, 6, 5.0, 0.005, 1e-4)
    adam = chosen(find("ot-gaussian").build(5), "pd-adam", "paper")
    assert (adam.steps.u, adam.steps.omega, adam.steps.repeats_u, adam.samples.interior) == (0.5e-4, 0.0, 1, 2000)


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["gradient", "identity"])
def test_the_paper_preset_learns_with_both_of_its_metrics(metric):
    solution = npdg.solve(find("ot-1d").build(1), preset="paper", steps=100, metric=metric)
    assert solution.history[0].errors["map_l2"] > 0.3
    assert solution.history[-1].errors["map_l2"] < 0.15


def test_the_quadratic_part_of_the_potential_is_trained_where_it_does_not_start_at_the_best():
    pair = find("ot-gaussian").build(5)
    best, plain, paper = (
        start_fields(pair, settings, jax.random.key(0))
        for settings in (chosen(pair), chosen(pair, affine=False), chosen(pair, preset="paper"))
    )
    nets = [fields["phi"].net for fields in (best, plain, paper)]
    assert [isinstance(net, Sum) and isinstance(net.base, Stretch) for net in nets] == [False, True, False]
    assert all(isinstance(fields["phi"].base, Frozen) for fields in (best, plain, paper))
    assert parameter_count(plain["phi"]) == parameter_count(best["phi"]) + 5 * 5 + 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "wan"}, "method: 'wan' is not allowed for transport"),
        ({"method": "npgd"}, "did you mean 'npdg'"),
        ({"preset": "papr"}, "did you mean 'paper'"),
        ({"omegga": 1}, "did you mean 'omega'"),
        ({"width": 0}, "width: 0 is not allowed"),
        ({"activation": "prelu"}, "second derivatives"),
        ({"residual": False}, "affine"),
    ],
)
def test_bad_choices(arguments, message):
    with pytest.raises(InputError, match=message):
        chosen(find("ot-1d").build(1), **arguments)


def test_measures_of_ones_own_are_not_in_the_paper():
    gaussian = npdg.Gaussian([0.0], [[1.0]])
    for name in ("transport", "ot-1d"):  # under whatever name
        with pytest.raises(InputError, match="not in the paper"):
            chosen(npdg.Transport(gaussian, gaussian, name=name), preset="paper")


def test_first_order_methods_play_the_same_saddle():
    pair = find("ot-1d").build(1)
    solution = npdg.solve(pair, "pd-adam", steps=3, repeats_phi=2, **{**SMALL, "n_interior": 64})
    assert solution.steps == 3
    assert {"cost", "carried", "pushed", "target"} == set(solution.history[-1].terms)
    before = npdg.solve(pair, "pd-adam", steps=1, repeats_phi=2, **{**SMALL, "n_interior": 64})
    assert not jnp.array_equal(before.map(np.array([[0.3]])), solution.map(np.array([[0.3]])))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two files of samples, and the run of the command line on them."""
    folder = tmp_path_factory.mktemp("transport")
    rng = np.random.default_rng(0)
    np.save(folder / "a.npy", rng.normal(size=(300, 2)))
    np.savetxt(folder / "b.csv", rng.normal(size=(200, 2)) * [2.0, 0.5] + [1.0, 0.0], delimiter=",", header="x,y")
    return folder


@pytest.mark.slow
def test_two_files_of_samples(files, capsys):
    run = files / "run"
    arguments = ["transport", str(files / "a.npy"), str(files / "b.csv"), "--steps", "3", "--out", str(run), "--json"]
    assert _guarded(lambda: app([*arguments, *FLAGS], standalone_mode=False)) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["map_l2"] is None
    assert result["sliced_w2"] < 0.5
    assert result["steps"] == 3
    assert (run / "report.html").is_file()
    assert (run / "figures" / "map.png").is_file()
    assert "timing" not in json.loads((run / "report.json").read_text())  # a run does not wait for it
    assert "compilation" in (run / "report.html").read_text().split("the whole run")[1]
    loaded = npdg.load(run)
    x = np.load(files / "a.npy")[:5]
    assert loaded.map(x).shape == (5, 2)
    np.testing.assert_allclose(loaded.score()["distance"], result["distance"], rtol=1e-5)
    assert loaded.history[-1].errors["sliced_w2"] > 0
    saved = loaded.save(files / "again")
    np.testing.assert_array_equal(npdg.load(saved).map(x), loaded.map(x))


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("a.npy", "c.npy", "target: the file"),
        ("a.txt", "a.npy", "source: "),
        ("a.npy", "one.npy", "target: 1 point"),
        ("missing.csv", "a.npy", "source: the file"),
        ("nan.npy", "a.npy", "source: number 1 is not finite"),
        ("a.npy", "three.npy", "target: dimension 3"),
        ("a.npy", "objects.npy", "target: "),
        ("words.csv", "a.npy", "source: "),
        ("flat.npy", "a.npy", "source: shape (4,)"),
    ],
)
def test_bad_files(files, capsys, source, target, message):
    np.save(files / "one.npy", np.ones((1, 2)))
    np.save(files / "nan.npy", np.full((4, 2), np.nan))
    np.save(files / "three.npy", np.ones((4, 3)))
    np.save(files / "flat.npy", np.ones(4))
    np.save(files / "objects.npy", np.array([[{}, 1], [2, 3]], dtype=object), allow_pickle=True)
    (files / "words.csv").write_text("1,2\n3,four\n")
    (files / "a.txt").write_text("1 2\n")
    arguments = ["transport", str(files / source), str(files / target), "--out", str(files / "never")]
    assert _guarded(lambda: app(arguments, standalone_mode=False)) == 2
    complaint = capsys.readouterr().err
    assert complaint.startswith("npdg: " + message)
    assert len(complaint.splitlines()) == 1
    assert not (files / "never").exists()


@pytest.mark.slow
def test_a_pair_from_a_file_and_from_a_card(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(
        "from npdg import Gaussian, Pair\n"
        "pair = Pair(Gaussian([0.0], [[1.0]]), Gaussian([2.0], [[4.0]]), lambda x: 2 + 2 * x)\n"
    )
    arguments = ["solve", f"{tmp_path / 'mine.py'}:pair", "--steps", "2", "--out", str(tmp_path / "run"), "--json"]
    assert _guarded(lambda: app([*arguments, *FLAGS], standalone_mode=False)) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["map_l2"] < 0.05  # the affine start is the answer
    assert result["cos"] > 0.99
    assert {"rel_l2", "error_estimate", "uvp", "sliced_w2", "run_dir"} <= set(result)


@pytest.mark.slow
def test_a_fault_of_a_map_is_rolled_back_with_more_care(monkeypatch):
    real = TransportAdam.recipe

    def recipe(self, problem, settings):
        made = real(self, problem, settings)
        saddle = made.lower({})
        faulty = lambda fields, point: jnp.where(settings.steps.u > 0.3, jnp.nan, 0.0)
        given = {**saddle.given, "the weather": ("source", faulty)}
        return replace(made, lower=lambda data: replace(saddle, given=given))

    monkeypatch.setattr(TransportAdam, "recipe", recipe)
    pair, notes = find("ot-1d").build(1), []
    small = {"width": 4, "n_interior": 32, "tau_u": 1.0, "tau_phi": 0.01}
    solution = npdg.solve(pair, "pd-adam", steps=2, rollbacks=3, on_note=notes.append, **small)
    assert (solution.stop_reason, solution.steps) == ("steps", 2)
    assert notes[-1] == "the weather was not finite in step 1: rolled back to step 0 with tau_u=0.25"
    assert solution.detail == "; ".join(notes)
    with pytest.warns(RuntimeWarning, match="the weather was not finite"):
        assert npdg.solve(pair, "pd-adam", steps=2, rollbacks=1, **small).stop_reason == "diverged"

"""Saved solutions on grids for other programs, and at points from a file."""

import base64
import csv
import io
import pickle
from pathlib import Path
from xml.etree import ElementTree

import jax
import numpy as np
import pytest

from npdg.catalogue import find
from npdg.cli import app
from npdg.methods.building import primal
from npdg.methods.registry import make_method
from npdg.precision import precision
from npdg.results.solution import Solution
from npdg.results.trajectory import Trajectory
from npdg.runs.export.grids import read_slices
from npdg.runs.reading import read_run
from npdg.training.records import Record, TimeStep
from npdg.training.stopping import StopReason

SMALL = {"width": 8, "n_interior": 50, "n_boundary": 20}


def run(*arguments: object) -> int:
    return app._guarded(lambda: app.app([str(word) for word in arguments], standalone_mode=False))


@pytest.fixture(scope="module")
def solution() -> Solution:
    """A network that has not been trained: where its values come from does not matter here."""
    pde = find("nonlinear").build(3)
    method = make_method("equation", "pinn", **SMALL)
    settings = method.candidates(pde)[0]
    u = primal(pde.domain, settings.network, jax.random.key(3))
    last = Record(10, 1.0, {"residual": 0.1}, {"u": 0}, {"u": 0.0}, {"rel_l2": 0.5, "rel_h1": 0.5})
    return Solution(
        problem=pde,
        u=u,
        method="pinn",
        preset="default",
        settings=settings,
        seed=0,
        stop_reason=StopReason.DIVERGED,  # of which no certificate is made, which would take longer than all the tests
        steps=10,
        seconds=1.0,
        history=[last],
        trainer=method,
    )


@pytest.fixture(scope="module")
def saved(solution, tmp_path_factory) -> Path:
    return solution.save(tmp_path_factory.mktemp("saved") / "run")


@pytest.fixture(scope="module")
def trajectory() -> Trajectory:
    evolution = find("allen-cahn-1d").build(1, until=0.7, time_steps=1)
    method = make_method("evolution", "npdg", **SMALL, precision="float32")
    settings = method.candidates(evolution)[0]
    with precision("float32"):
        fields = [primal(evolution.domain, settings.network, jax.random.key(k)) for k in range(2)]
    steps = [TimeStep(k, 0.7 * k, 1e-3, "tolerance", "", 0.5, 0.0, []) for k in range(2)]
    return Trajectory(
        problem=evolution,
        method="npdg",
        preset="default",
        settings=settings,
        seed=0,
        stop_reason=StopReason.DONE,
        steps=steps,
        times=[0.0, 0.7],
        fields=fields,
        trainer=method,
    )


@pytest.fixture(scope="module")
def marched(trajectory, tmp_path_factory) -> Path:
    return trajectory.save(tmp_path_factory.mktemp("marched") / "run")


def image(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """The attributes and arrays of a .vti file, the first coordinate moving fastest."""
    found = ElementTree.parse(path).getroot().find("ImageData")
    assert found is not None
    arrays = {}
    for array in found.iter("DataArray"):
        data = base64.b64decode(array.text or "")
        assert int.from_bytes(data[:8], "little") == len(data) - 8
        arrays[array.attrib["Name"]] = np.frombuffer(data[8:], "<f8").reshape(
            -1, int(array.get("NumberOfComponents", 1))
        )
    return found.attrib, arrays


def test_a_slice_as_arrays_and_as_image_data_is_the_solution(saved, solution, tmp_path, capsys):
    out = tmp_path / "out"
    assert run("export", saved, "--npz", "--vtk", "--points", 7, "--axes", "1,3", "--out", out) == 0
    assert capsys.readouterr().out.split() == [str(out / "slice.npz"), str(out / "slice.vti")]
    arrays = np.load(out / "slice.npz", allow_pickle=False)
    points = arrays["points"]
    assert points.shape == (7, 7, 3)
    assert np.all(points[..., 1] == 0)
    np.testing.assert_array_equal(points[2, 5], [-1.0, 0.0, 2.0])
    inside = np.linalg.norm(points, axis=-1) <= 3
    assert not inside.all()
    np.testing.assert_allclose(arrays["u"][inside], solution(points[inside]), rtol=1e-6)
    np.testing.assert_allclose(arrays["gradient"][inside], solution.gradient(points[inside]), rtol=1e-5, atol=1e-6)
    exact = np.cos(np.pi / 2 * np.linalg.norm(points, axis=-1))
    np.testing.assert_allclose(arrays["error"][inside], abs(arrays["u"] - exact)[inside], atol=1e-5)
    assert np.all(np.isnan(arrays["u"]) == ~inside)
    about, fields = image(out / "slice.vti")
    assert about["WholeExtent"] == "0 6 0 6 0 0"
    assert about["Spacing"] == "1.0 1.0 1.0"
    np.testing.assert_array_equal(fields["u"][5 * 7 + 2, 0], arrays["u"][2, 5])
    np.testing.assert_array_equal(fields["gradient"][5 * 7 + 2], [*arrays["gradient"][2, 5][[0, 2]], 0.0])


def test_three_axes_are_a_volume_and_nothing_is_overwritten(saved, tmp_path, capsys):
    assert run("export", saved, "--vtk", "--points", 4, "--out", tmp_path / "cube") == 0
    about, fields = image(tmp_path / "cube" / "slice.vti")
    assert about["WholeExtent"] == "0 3 0 3 0 3"
    assert fields["u"].shape == (64, 1)
    assert run("export", saved, "--vtk", "--out", tmp_path / "cube") == 2
    assert "never overwritten" in capsys.readouterr().err


def test_a_march_gives_a_file_a_time_and_a_series(marched, trajectory, tmp_path):
    assert run("export", marched, "--npz", "--vtk", "--points", 5, "--out", tmp_path / "out") == 0
    for k, time in enumerate((0.0, 0.7)):
        arrays = np.load(tmp_path / "out" / f"slice-{k:04d}.npz", allow_pickle=False)
        assert arrays["time"] == time
        np.testing.assert_allclose(arrays["u"].ravel(), trajectory(time, arrays["points"]), rtol=1e-5)
    assert "exact" in np.load(tmp_path / "out" / "slice-0000.npz")  # the start is known, what comes of it is not
    assert "exact" not in np.load(tmp_path / "out" / "slice-0001.npz")
    series = ElementTree.parse(tmp_path / "out" / "slice.pvd").getroot()
    found = [(float(e.attrib["timestep"]), e.attrib["file"]) for e in series.iter("DataSet")]
    assert found == [(0.0, "slice-0000.vti"), (0.7, "slice-0001.vti")]


@pytest.mark.parametrize("kind", [".npy", ".npz", ".csv"])
def test_points_from_a_file_of_any_kind(kind, saved, solution, tmp_path, capsys):
    points = np.random.default_rng(0).uniform(-1, 1, (5, 3))
    path = tmp_path / f"points{kind}"
    if kind == ".npy":
        np.save(path, points)
    elif kind == ".npz":
        np.savez(path, other=np.zeros(2), points=points)
    else:
        path.write_text("x,y,z\n" + "\n".join(",".join(map(repr, row)) for row in points.tolist()) + "\n")
    assert run("evaluate", saved, path, "--gradient") == 0
    header, *rows = csv.reader(io.StringIO(capsys.readouterr().out))
    assert header == ["u", "du1", "du2", "du3"]
    table = np.array(rows, dtype=float)
    np.testing.assert_allclose(table[:, 0], solution(points), rtol=1e-6)
    np.testing.assert_allclose(table[:, 1:], solution.gradient(points), rtol=1e-5, atol=1e-6)
    for out in ("values.npy", "values.csv"):
        assert run("evaluate", saved, path, "--out", tmp_path / out) == 0
        assert run("evaluate", saved, path, "--out", tmp_path / out) == 2
    np.testing.assert_allclose(np.load(tmp_path / "values.npy"), solution(points), rtol=1e-6)


def test_a_march_is_evaluated_at_a_time_and_points_outside_are_counted(marched, trajectory, tmp_path, capsys):
    np.save(tmp_path / "p.npy", [[0.5], [9.0]])
    assert run("evaluate", marched, tmp_path / "p.npy", "--time", "0.1") == 0
    output = capsys.readouterr()
    values = [float(line) for line in output.out.split()[1:]]
    np.testing.assert_allclose(values, trajectory(0.1, np.load(tmp_path / "p.npy")), rtol=1e-5)
    assert "1 of 2 points are outside" in output.err
    for words, says in (([], "give --time"), (["--time", "0.8"], "kept times"), (["--time", "x"], "give a number")):
        assert run("evaluate", marched, tmp_path / "p.npy", *words) == 2
        assert says in capsys.readouterr().err


class Trap:
    """A pickle that leaves a mark if it is ever opened."""

    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("p.npy", np.zeros((4, 2)), "shape (4, 2)"),
        ("p.npy", np.zeros(3), "shape (3,)"),
        ("p.npy", np.zeros((0, 3)), "at least one"),
        ("p.npy", np.array([[0, 0, 0], [0, np.nan, 0]]), "number 2 is not finite"),
        ("p.npy", np.zeros((2, 3), complex), "real numbers"),
        ("p.npy", b"\x93NUMPY", "cannot be read"),
        ("p.npz", b"PK\x03\x04", "cannot be read"),
        ("p.csv", b"1,2,3\n1,2\n", "line 2"),
        ("p.csv", b"x,y,z\n1,2,three\n", "line 2"),
        ("p.csv", b"", "at least one"),
        ("p.txt", b"1 2 3", "ends in"),
        ("q.npy", None, "does not exist"),
        ("p.npy", "object", "cannot be read"),
        ("p.npy", "pickle", "cannot be read"),
        ("p.npz", "pickle", "cannot be read"),
    ],
)
def test_bad_points_are_one_line_and_never_executed(name, content, says, saved, tmp_path, capsys):
    mark = tmp_path / "mark"
    if isinstance(content, np.ndarray):
        np.save(tmp_path / name, content)
    elif content == "object":
        np.save(tmp_path / name, np.array([Trap(mark)], dtype=object), allow_pickle=True)
    elif content == "pickle":
        (tmp_path / name).write_bytes(pickle.dumps(Trap(mark)))
    elif content is not None:
        (tmp_path / name).write_bytes(content)
    assert run("evaluate", saved, tmp_path / name) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert len(output.err.splitlines()) == 1
    assert says in output.err
    assert not mark.exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["export", "RUN"], "--vtk, --npz"),
        (["export", "RUN", "--vtk", "--points", "1"], "points"),
        (["export", "RUN", "--vtk", "--points", "9999"], "fewer"),
        (["export", "RUN", "--vtk", "--axes", "1,1"], "different"),
        (["export", "RUN", "--vtk", "--axes", "4"], "has 3 coordinates"),
        (["export", "RUN", "--vtk", "--problem", "poisson"], "leave --problem out"),
        (["export", "nowhere", "--vtk"], "does not exist"),
    ],
)
def test_bad_exports_are_one_line_and_write_nothing(words, says, saved, capsys):
    before = set(saved.iterdir())
    assert run(*(saved if word == "RUN" else word for word in words)) == 2
    assert says in capsys.readouterr().err
    assert set(saved.iterdir()) == before


def test_a_solution_that_is_damaged_is_one_line(solution, tmp_path, capsys):
    directory = solution.save(tmp_path / "run")
    np.save(tmp_path / "p.npy", np.zeros((1, 3)))
    (directory / "solution.npz").write_bytes(b"PK\x03\x04")
    assert run("evaluate", directory, tmp_path / "p.npy") == 2
    assert "damaged" in capsys.readouterr().err


def test_a_saved_solution_gets_its_slices_its_timing_and_its_page(solution, saved, trajectory, marched, capsys):
    assert run("report", saved) == 0
    found = read_run(saved)
    assert found.slices is not None
    assert np.isnan(found.slices.u[0, 0])  # the corner of the square around the disc
    parts = found.notes["timing"]
    assert parts["step"] == 0.1
    assert parts["sampling"] + parts["gradients"] + parts["solves"] == pytest.approx(0.1)
    assert min(parts.values()) > 0
    assert run("report", marched) == 0
    slices = read_slices(marched / "figures" / "slices.npz")
    assert slices.exact is not None
    assert slices.u.shape == slices.exact.shape == (2, 401)  # the grid of the reference
    np.testing.assert_allclose(slices.u[1, 200], trajectory(0.7, np.array([1.0])), rtol=1e-5)

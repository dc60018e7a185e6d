"""Callbacks for tracking services: TensorBoard's files for real, the calls to the others by stand-ins."""

import importlib
import importlib.machinery
import struct
import sys
from types import ModuleType
from typing import Any

import pytest

import npdg
from npdg.runs.tracking.services import trackers
from npdg.training.records import Record, TimeStep

RECORDS = [
    Record(step, step / 10, {"pairing": -0.5 / step}, {"u": 4}, {"u": 1e-3}, {"rel_l2": 0.1 / step}) for step in (1, 10)
]
TIME_STEP = TimeStep(3, 0.3, 1e-4, "tolerance", "", 2.0, 0.0, [], rmse=None, energy=5.0)


def events(path) -> list[Any]:
    """The events of a TensorBoard file: records of a length, its check, the data, their check."""
    event: Any = importlib.import_module("tensorboardX.proto.event_pb2")  # made when it is imported
    data, found = path.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        found.append(event.Event.FromString(data[12 : 12 + length]))
        data = data[16 + length :]
    return found


def test_tensorboard_holds_every_number_of_every_record(tmp_path):
    track = npdg.tracker("tensorboard", tmp_path, about={"width": 8})
    for record in RECORDS:
        track(record.step, record)
    track.close()
    (file,) = (tmp_path / "tensorboard").iterdir()
    values = {
        (v.tag, e.step): v.simple_value for e in events(file) for v in e.summary.value if v.HasField("simple_value")
    }
    for record in RECORDS:
        for name, value in record.scalars().items():
            assert values[name, record.step] == pytest.approx(value)
    assert len(values) == 2 * len(RECORDS[0].scalars()) == 10


def test_the_numbers_of_a_time_step_are_those_that_were_measured():
    assert TIME_STEP.scalars() == {"seconds": 2.0, "time": 0.3, "residual": 1e-4, "energy": 5.0}
    assert RECORDS[0].scalars()["term/pairing"] == -0.5


class StandIn(ModuleType):
    """A module that writes down what is called on it."""

    def __init__(self, name: str):
        super().__init__(name)
        self.__spec__ = importlib.machinery.ModuleSpec(name, None)
        self.calls: list[tuple[str, tuple, dict]] = []

    def __getattr__(self, name: str) -> Any:
        def call(*arguments, **keywords):
            self.calls.append((name, arguments, keywords))
            return self

        return call


@pytest.mark.parametrize(
    ("service", "first", "logged", "last"),
    [("mlflow", "start_run", "log_metrics", "end_run"), ("wandb", "init", "log", "finish")],
)
def test_a_run_is_begun_logged_and_ended_also_when_it_fails(service, first, logged, last, monkeypatch, tmp_path):
    module = StandIn(service)
    monkeypatch.setitem(sys.modules, service, module)

    def failing_run() -> None:
        with trackers([service], tmp_path, "my run", {"width": 8}) as made:
            made[0](10, RECORDS[1])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing_run()
    names = [name for name, _, _ in module.calls]
    assert (names[0], names[-1]) == (first, last)
    assert (logged, (RECORDS[1].scalars(),), {"step": 10}) in module.calls
    assert "my run" in module.calls[0][2].values()
    assert any({"width": 8} in (*arguments, *keywords.values()) for _, arguments, keywords in module.calls)


def test_a_service_that_fails_does_not_end_the_run(monkeypatch, tmp_path, capsys):
    module = StandIn("wandb")
    monkeypatch.setitem(sys.modules, "wandb", module)

    def broken(*arguments, **keywords):
        raise OSError("no network")

    with trackers(["wandb"], tmp_path, "run", {}) as made:
        monkeypatch.setattr(module, "log", broken)
        made[0](1, RECORDS[0])
        made[0](10, RECORDS[1])
    assert capsys.readouterr().err == "npdg: wandb failed and gets no more: no network\n"
    monkeypatch.setattr(module, "init", broken)
    with pytest.raises(npdg.InputError, match="cannot begin a run: OSError: no network"):
        npdg.tracker("wandb")


def test_a_missing_package_or_an_unknown_service_is_one_sentence(monkeypatch):
    monkeypatch.setattr("npdg.runs.tracking.services.find_spec", lambda name: None)
    with pytest.raises(npdg.InputError, match="pip install wandb"):
        npdg.tracker("wandb")
    with pytest.raises(npdg.InputError, match="did you mean 'tensorboard'"):
        npdg.tracker("tensorbord")


def test_solve_tells_a_tracker(tmp_path):
    pde = npdg.PDE(npdg.Box(0.0, 1.0, dim=1), flux=lambda u, x: npdg.grad(u)(x), source=lambda x: x[0])
    track = npdg.tracker("tensorboard", tmp_path)
    npdg.solve(pde, "pinn", steps=3, width=4, n_interior=10, n_boundary=4, callbacks=[track])
    track.close()
    (file,) = (tmp_path / "tensorboard").iterdir()
    assert max(event.step for event in events(file)) == 3

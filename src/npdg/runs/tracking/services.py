"""Opt-in callbacks that send what is measured to TensorBoard, MLflow or Weights & Biases."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from npdg.errors import InputError, unknown

if TYPE_CHECKING:
    from npdg.training.records import Report

# The package of each service, to import and to install.
PACKAGES = {"tensorboard": "tensorboardX", "mlflow": "mlflow", "wandb": "wandb"}


@runtime_checkable
class Tracker(Protocol):
    """A callback `tracker(step, record)` that is closed when the run has ended."""

    def __call__(self, step: int, record: Report) -> None: ...

    def close(self) -> None: ...


def check(services: Sequence[str]) -> None:
    """Refuse a service that is unknown or whose package is not there; imports nothing."""
    for service in services:
        if service not in PACKAGES:
            raise unknown("track", service, PACKAGES)
        package = PACKAGES[service]
        if find_spec(package) is None:
            raise InputError(f"track: {service} needs the package {package}; install it with: pip install {package}")


def tracker(
    service: str, directory: str | Path = ".", *, name: str = "npdg", about: Mapping[str, Any] | None = None
) -> Tracker:
    """A callback for `solve` or `march` that logs to a tracking service. Call `close()` when the run has ended.

    Arguments:
        service: "tensorboard", "mlflow" or "wandb".
        directory: where files of TensorBoard and W&B go; MLflow goes where its own configuration says.
        name: the name of the run.
        about: its parameters.
    """
    check([service])
    module = import_module(PACKAGES[service])
    try:
        return _TRACKERS[service].start(module, Path(directory), name, dict(about or {}))
    except Exception as error:  # whatever a service raises, such as for want of a network
        raise InputError(f"track: {service} cannot begin a run: {type(error).__name__}: {error}") from error


@contextmanager
def trackers(services: Sequence[str], directory: Path, name: str, about: Mapping[str, Any]) -> Iterator[list[Tracker]]:
    """Trackers for some services, closed at the end whatever happens; one that fails says so, and the run goes on."""
    with ExitStack() as stack:
        made: list[Tracker] = []
        for service in services:
            made.append(_Lenient(service, tracker(service, directory, name=name, about=about)))
            stack.callback(made[-1].close)
        yield made


@dataclass
class _Lenient:
    """A tracker that is left alone after its first failure: hours of training are worth more than their log."""

    service: str
    tracker: Tracker
    failed: bool = False

    def __call__(self, step: int, record: Report) -> None:
        self._attempt(lambda: self.tracker(step, record))

    def close(self) -> None:
        self._attempt(self.tracker.close)

    def _attempt(self, act: Callable[[], None]) -> None:
        if self.failed:
            return
        try:
            act()
        except Exception as error:
            self.failed = True
            print(f"npdg: {self.service} failed and gets no more: {' '.join(str(error).split())}", file=sys.stderr)


@dataclass(frozen=True)
class _TensorBoard:
    writer: Any

    @staticmethod
    def start(module: Any, directory: Path, name: str, about: dict[str, Any]) -> Tracker:
        writer = module.SummaryWriter(str(directory / "tensorboard"))
        writer.add_text("run", "\n".join(f"    {key} = {value}" for key, value in {"name": name, **about}.items()))
        return _TensorBoard(writer)

    def __call__(self, step: int, record: Report) -> None:
        for name, value in record.scalars().items():
            self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        self.writer.close()


@dataclass(frozen=True)
class _MLflow:
    module: Any

    @staticmethod
    def start(module: Any, directory: Path, name: str, about: dict[str, Any]) -> Tracker:
        module.start_run(run_name=name)
        module.log_params(about)
        return _MLflow(module)

    def __call__(self, step: int, record: Report) -> None:
        self.module.log_metrics(record.scalars(), step=step)

    def close(self) -> None:
        self.module.end_run()


@dataclass(frozen=True)
class _WandB:
    run: Any

    @staticmethod
    def start(module: Any, directory: Path, name: str, about: dict[str, Any]) -> Tracker:
        return _WandB(module.init(project="npdg", name=name, config=about, dir=str(directory)))

    def __call__(self, step: int, record: Report) -> None:
        self.run.log(record.scalars(), step=step)

    def close(self) -> None:
        self.run.finish()


_TRACKERS = {"tensorboard": _TensorBoard, "mlflow": _MLflow, "wandb": _WandB}

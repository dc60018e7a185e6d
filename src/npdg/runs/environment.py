"""The machine and the versions that a result depends on."""

import os
import platform
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax

PACKAGES = ("npdg", "jax", "jaxlib", "equinox", "optax", "numpy", "scipy")
# What the bits of a run depend on.
COMPARED = ("python", "platform", "cpu", "cores", "devices", "commit", "variables", "packages")
VARIABLES = ("XLA_", "JAX_", "OMP_", "OPENBLAS_", "MKL_", "TF_")  # First letters of variables that change programs.
HARMLESS = ("JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_", "JAX_ENABLE_COMPILATION_CACHE", "TF_CPP_")


def environment() -> dict[str, Any]:
    """Versions and devices, and when this was asked."""
    return {
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": _cpu_model(),
        "cores": cores(),
        "devices": [str(device) for device in jax.devices()],
        "commit": _commit(),
        "variables": variables(),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def cores() -> int:
    """How many cores this process may use, which decides how sums are split."""
    affinity = getattr(os, "sched_getaffinity", None)
    return os.cpu_count() or 1 if affinity is None else len(affinity(0))


def variables() -> dict[str, str]:
    """The variables of the environment by which compiled programs may differ."""
    found = {key: value for key, value in os.environ.items() if key.startswith(VARIABLES)}
    return {key: found[key] for key in sorted(found) if not key.startswith(HARMLESS)}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _commit() -> str | None:
    """The commit of the source this runs from; none for an installed package."""
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True, timeout=5).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None

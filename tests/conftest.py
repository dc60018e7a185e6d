"""Rank promotion raises everywhere, also in processes that tests start; what one test compiled others reuse; and the
shapes that public functions promise are checked."""

import os
import tempfile

os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["JAX_COMPILATION_CACHE_DIR"] = tempfile.mkdtemp(prefix="npdg-tests-")
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="npdg-tests-")  # the user's own is not touched
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
# The tests compile far longer than they compute: LLVM need not optimise what runs once.
os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0"

import jax
import pytest
from jaxtyping import install_import_hook

CHECKED = ("calculus", "problem", "fields", "saddle", "results")
install_import_hook([f"npdg.{package}" for package in CHECKED], "shapes.checked")


@pytest.fixture
def x64():
    """The test computes in float64."""
    with jax.enable_x64(True):
        yield

"""Rank promotion raises everywhere, also in processes that tests start."""

import os

os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"

import jax
import pytest


@pytest.fixture
def x64():
    """The test computes in float64."""
    with jax.enable_x64(True):
        yield

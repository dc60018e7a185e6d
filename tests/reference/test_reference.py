"""Finite differences against manufactured solutions, with their measured orders."""

import numpy as np
import pytest

from npdg.reference.reaction_diffusion import laplacian, march

EPSILON = 0.1
REACTION, SLOPE = lambda u: (u**3 - u) / EPSILON, lambda u: (3 * u**2 - 1) / EPSILON


def manufactured(dim: int, nodes: int, steps: int) -> float:
    """The largest error at t = 1 for u = e^{−t} Π cos(πx_k) on [0, 2]^d."""
    axes = [np.linspace(0, 2, nodes)] * dim
    shape = np.prod(np.meshgrid(*[np.cos(np.pi * axis) for axis in axes], indexing="ij"), axis=0)
    exact = lambda t: np.exp(-t) * shape
    source = lambda t: (-1 + EPSILON * dim * np.pi**2) * exact(t) + REACTION(exact(t))
    grids = march(
        exact(0.0),
        [axes[0][1]] * dim,
        diffusion=EPSILON,
        reaction=REACTION,
        slope=SLOPE,
        step=1 / steps,
        steps=steps,
        source=source,
    )
    return float(np.max(np.abs(grids[-1] - exact(1.0))))


def test_first_order_in_time():
    errors = [manufactured(1, 801, steps) for steps in (40, 80, 160)]
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(slopes, 1, atol=0.1)


def smooth(dim: int, nodes: int) -> np.ndarray:
    """The state at t = 0.1 from a sum of cosines, with the same twenty time steps on every grid."""
    axis = np.linspace(0, 2, nodes)
    start = np.sum(np.meshgrid(*[np.cos(np.pi * axis) / dim] * dim, indexing="ij"), axis=0)
    reaction = {"reaction": lambda u: u**3 - u, "slope": lambda u: 3 * u**2 - 1}
    return march(start, [axis[1]] * dim, diffusion=EPSILON, step=0.005, steps=20, **reaction)[-1]


@pytest.mark.parametrize("dim", [1, 2])
def test_second_order_in_space(dim):
    """The error of time is the same on every grid: what differs between grids is that of space."""
    fine = smooth(dim, 129)
    differences = []
    for nodes in (9, 17, 33):
        nested = fine[(slice(None, None, 128 // (nodes - 1)),) * dim]
        differences.append(np.max(np.abs(smooth(dim, nodes) - nested)))
    slopes = np.log2(np.array(differences[:-1]) / differences[1:])
    np.testing.assert_allclose(slopes, 2, atol=0.2)


def test_constants_have_no_laplacian_and_mass_is_kept():
    matrix = laplacian((5, 4), (0.3, 0.2))
    np.testing.assert_allclose(matrix @ np.ones(20), 0, atol=1e-12)
    nothing = lambda u: 0 * u
    grids = march(
        np.cos(np.linspace(0, 3, 50)),
        [3 / 49],
        diffusion=0.5,
        reaction=nothing,
        slope=nothing,
        step=0.1,
        steps=3,
    )
    weights = np.ones(50)
    weights[[0, -1]] = 0.5  # the trapezoidal rule
    np.testing.assert_allclose([weights @ grid for grid in grids], weights @ grids[0], rtol=1e-10)


def test_a_step_too_long_for_newton_is_said():
    with pytest.raises(ArithmeticError, match="smaller step"):
        march(
            np.array([0.1, -0.2, 0.3]),
            [1.0],
            diffusion=0.0,
            reaction=lambda u: 1 + u**2,
            slope=lambda u: 2 * u,
            step=10.0,
            steps=1,
        )

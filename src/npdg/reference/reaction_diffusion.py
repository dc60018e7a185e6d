"""Implicit finite differences for ∂u/∂t = ε Δu − reaction(u) + source on a box, with no flux through its boundary.

Implicit Euler in time, second differences in space on a grid whose outermost nodes lie on the boundary and are
mirrored across it, Newton's method with a sparse factorisation in every step: first order in time, second in space.
"""

from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

Grid = np.ndarray
TOLERANCE = 1e-11  # of the largest Newton update
NEWTON_STEPS = 50


def laplacian(shape: Sequence[int], spacings: Sequence[float]) -> sp.csc_matrix:
    """Second differences on a grid of d axes with mirrored ends, as one sparse matrix."""
    whole = sp.csr_matrix((int(np.prod(shape)),) * 2)
    for axis, (n, h) in enumerate(zip(shape, spacings, strict=True)):
        left, right = np.ones(n - 1), np.ones(n - 1)
        left[-1] = right[0] = 2.0  # the neighbour across the boundary is the mirror image
        one = sp.diags([left, -2 * np.ones(n), right], [-1, 0, 1])  # pyright: ignore[reportArgumentType]
        before, after = int(np.prod(shape[:axis])), int(np.prod(shape[axis + 1 :]))
        whole = whole + sp.kron(sp.kron(sp.eye(before), one / h**2), sp.eye(after))
    return sp.csc_matrix(whole)


def march(
    start: Grid,
    spacings: Sequence[float],
    *,
    diffusion: float,
    reaction: Callable[[Grid], Grid],
    slope: Callable[[Grid], Grid],
    step: float,
    steps: int,
    source: Callable[[float], Grid] | None = None,
) -> list[Grid]:
    """The grids at times 0, step, 2·step, …; `slope` is the derivative of `reaction`."""
    stiffness = diffusion * laplacian(start.shape, spacings)
    identity = sp.identity(start.size, format="csc")
    grids = [np.asarray(start, dtype=float)]
    for number in range(1, steps + 1):
        known = grids[-1].ravel() + (0.0 if source is None else step * source(number * step).ravel())
        u = grids[-1].ravel().copy()
        for _ in range(NEWTON_STEPS):
            residual = u - step * (stiffness @ u - reaction(u)) - known
            matrix = identity - step * stiffness + sp.diags_array(step * slope(u))
            update = splu(sp.csc_matrix(matrix), permc_spec="MMD_AT_PLUS_A").solve(residual)
            u -= update
            if np.max(np.abs(update)) <= TOLERANCE:
                break
        else:
            raise ArithmeticError(f"Newton's method did not converge in time step {number}; give a smaller step")
        grids.append(u.reshape(start.shape))
    return grids

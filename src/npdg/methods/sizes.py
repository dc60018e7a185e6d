"""How large a run is, by counting: numbers of parameters and bytes, without building anything."""

import os
from typing import Any

from npdg.errors import InputError
from npdg.methods.settings import Settings
from npdg.methods.transport_settings import TransportSettings

BYTES = {"float32": 4, "float64": 8}


def parameters(dim: int, width: int, depth: int, last_bias: bool) -> int:
    """Trained numbers of MLP(dim, width, 1, depth)."""
    sizes = [dim, *[width] * (depth - 1), 1]
    count = sum((n_in + 1) * n_out for n_in, n_out in zip(sizes[:-1], sizes[1:], strict=True))
    return count if last_bias else count - 1


def equation_memory(settings: Settings, dim: int, size: int) -> int:
    """Bytes of the largest intermediate results of a step, for a network u of so many parameters."""
    samples, functional = settings.samples, settings.functional
    if settings.solver.kind == "dense":
        # A Jacobian of one row a residual and 1 + d a boundary point, and a few copies of the matrix.
        traces = {"l2": 1, "h1": 1 + dim, "h1-sampled": 2}[functional.boundary_norm]
        rows = samples.interior * (1 if functional.dual in ("exact", "none") else dim) + traces * samples.boundary
        solver = 2 * rows * size + 4 * size * size
    else:
        # The linearised gradient of a network keeps about eight numbers per unit and point.
        solver = 8 * _hidden(settings.network) * (samples.interior + samples.boundary)
    # The strong residual pushes d directions through every layer, two of which live at a time.
    strong = 2 * dim * settings.network.width * samples.interior if functional.pairing == "strong" else 0
    return (solver + strong) * BYTES[settings.precision]


def transport_memory(settings: TransportSettings) -> int:
    """The same for a transport run."""
    # The refinement linearises ∇φ at every point of the source: about sixteen numbers per unit and point.
    points = settings.samples.interior + settings.samples.metric
    return 16 * _hidden(settings.network) * points * BYTES[settings.precision]


def _hidden(network: Any) -> int:
    return network.width * max(network.depth - 1, 1)


def check_memory(needed: int, size: int, *, dense: bool) -> None:
    """Refuse a run that this machine cannot hold, before it is killed for it."""
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > there:
        instead = ", or set solver=cg" if dense else ""
        raise InputError(
            f"width: a network of {size} parameters needs about {needed / 2**30:.0f} GB a step like this, and "
            f"this machine has {there / 2**30:.0f}; give a smaller width, depth or n_interior{instead}."
        )

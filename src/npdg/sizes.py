"""How large a run is, by counting: numbers of parameters and bytes, without building anything."""

import os

from npdg.errors import InputError
from npdg.settings import Settings
from npdg.transport_settings import TransportSettings

BYTES = {"float32": 4, "float64": 8}


def parameters(dim: int, width: int, depth: int, last_bias: bool) -> int:
    """Trained numbers of MLP(dim, width, 1, depth)."""
    sizes = [dim, *[width] * (depth - 1), 1]
    count = sum((n_in + 1) * n_out for n_in, n_out in zip(sizes[:-1], sizes[1:], strict=True))
    return count if last_bias else count - 1


def shape(settings: Settings | TransportSettings) -> str:
    """A network in words."""
    squares = " and squares" if settings.squares else ""
    return f"{settings.activation}{squares}, width {settings.width}, depth {settings.depth}"


def estimate(method: str, settings: Settings | TransportSettings, dim: int) -> dict[str, str]:
    """Parameters of each network, and roughly how much memory a step needs."""
    if isinstance(settings, TransportSettings):
        potential = parameters(dim, settings.width, settings.depth, False)
        counts = {"T": potential + (dim - 1) * settings.width + dim, "φ": potential}
    else:
        counts = {"u": parameters(dim, settings.width, settings.depth, settings.last_bias)}
    if isinstance(settings, Settings) and settings.dual == "network":
        counts["φ"] = parameters(dim, settings.width, settings.depth, True)
        if method != "wan":
            counts["ψ"] = parameters(dim, settings.psi_width, settings.depth, False)
    return {
        "parameters": ", ".join(f"{name} {count}" for name, count in counts.items()),
        "memory": f"about {memory(settings, dim) / 2**20:.0f} MB",
    }


def memory(settings: Settings | TransportSettings, dim: int) -> int:
    """Bytes of the largest intermediate results of a step."""
    hidden = settings.width * max(settings.depth - 1, 1)
    if isinstance(settings, TransportSettings):
        # The refinement linearises ∇φ at every point of the source: about sixteen numbers per unit and point.
        return 16 * hidden * (settings.n_interior + settings.n_metric) * BYTES[settings.precision]
    if settings.solver == "dense":
        # A Jacobian of one row a residual and 1 + d a boundary point, and a few copies of the matrix.
        size = parameters(dim, settings.width, settings.depth, True)
        traces = {"l2": 1, "h1": 1 + dim, "h1-sampled": 2}[settings.boundary_norm]
        rows = settings.n_interior * (1 if settings.dual in ("exact", "none") else dim) + traces * settings.n_boundary
        solver = 2 * rows * size + 4 * size * size
    else:
        # The linearised gradient of a network keeps about eight numbers per unit and point.
        solver = 8 * hidden * (settings.n_interior + settings.n_boundary)
    # The strong residual pushes d directions through every layer, two of which live at a time.
    strong = 2 * dim * settings.width * settings.n_interior if settings.pairing == "strong" else 0
    return (solver + strong) * BYTES[settings.precision]


def check_memory(settings: Settings | TransportSettings, dim: int) -> None:
    """Refuse a run that this machine cannot hold, before it is killed for it."""
    needed, there = memory(settings, dim), os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > there:
        count = parameters(dim, settings.width, settings.depth, True)
        instead = ", or set solver=cg" if settings.solver == "dense" else ""
        raise InputError(
            f"width: a network of {count} parameters needs about {needed / 2**30:.0f} GB a step like this, and "
            f"this machine has {there / 2**30:.0f}; give a smaller width, depth or n_interior{instead}."
        )

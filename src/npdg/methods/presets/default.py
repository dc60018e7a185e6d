"""Our numbers for the natural primal-dual method, by dimension, and those that several other methods share.

How they were chosen is in docs/notebook.md and docs/baselines.md.
"""

import math
from typing import Any

# Up to here the residual metric with dense solves is ahead; above, a batch tells too little of a larger network's
# parameters, and the gradient metric is.
EXACT_DUAL_UP_TO = 12

# From here on, products of functions of one coordinate are tried where the source is a sum of a few; below, sums of
# random features have them.
PRODUCTS_FROM = 3

# Above, a trial of a few seconds is a few steps, which do not tell.
SEVERAL_UP_TO = 30

# A user who sets one of these has chosen the network; nothing is tried then.
SHAPE_KEYS = frozenset({"width", "depth", "activation", "squares", "dual", "features", "rank", "degree"})

# What comes after the hand-over has its own of these; who sets one means the whole run.
HANDOVER_KEYS = frozenset({"dual", "solver", "boundary_norm", "n_interior", "n_boundary", "momentum"})

EXACT: dict[str, Any] = {
    "dual": "exact",
    "solver": "dense",
    "n_interior": 1500,
    "n_boundary": 200,
    "damping": 1e-3,
    "precision": "float64",
    "polish": True,
}
# Three shapes of u, of about the same cost a second: ridge waves; a function of squares and ridges, for what is not a
# sum of one-dimensional functions; and steep ridges, for layers.
WAVES: dict[str, Any] = {"width": 48, "depth": 2, "activation": "sine", "squares": True}
DEEP: dict[str, Any] = {"width": 32, "depth": 3, "activation": "tanh", "squares": True}
STEPS: dict[str, Any] = {"width": 48, "depth": 2, "activation": "tanh", "squares": True}
# What is marched: bends spread over the domain. In two dimensions one hidden layer is not enough; in more, waves are
# better.
RIDGES: dict[str, Any] = {"activation": "tanh", "squares": False, "axes": False, "steepness": 6.0}
LINE: dict[str, Any] = {"width": 96, "depth": 2}
PLANE: dict[str, Any] = {"width": 24, "depth": 3, "n_interior": 2000}
SPACE: dict[str, Any] = {"width": 64, "depth": 2, "activation": "sine"}
PRODUCT_PARAMETERS, FEWEST_PRODUCTS, MOST_PRODUCTS = 700, 3, 8
WIDE_WAVES: dict[str, Any] = {**WAVES, "width": 128, "axes": True}
WIDE_DEEP: dict[str, Any] = {**DEEP, "width": 64}
# The strong residual takes d derivatives a point: fewer points leave time for more and better steps.
MANY: dict[str, Any] = {**WIDE_WAVES, "n_interior": 1000, "minres_max": 120}
TANGENT: dict[str, Any] = {
    "dual": "tangent",
    "solver": "cg",
    "tau_u": 1.0,
    "n_interior": 4000,
    "n_metric": 1000,
    "damping": 1e-3,
    "late": True,
    "polish": True,
}
# For methods without test networks, and for Adam on the saddle: chosen on 10-D Poisson at 15 s, each number by itself.
ALONE: dict[str, Any] = {
    "dual": "none",
    "boundary_norm": "l2",
    "lam": 1e2,
    "width": 64,
    "depth": 3,
    "pairing": "weak",
    "rate_decay": 1e-3,
}
ADAM: dict[str, Any] = {"tau_u": 1e-3, "tau_phi": 1e-3, "tau_psi": 1e-3, "omega": 0.0}


def default_presets(dim: int) -> list[dict[str, Any]]:
    """Settings for any equation of a given dimension; where there are several, a short trial decides."""
    if dim <= EXACT_DUAL_UP_TO:
        return [{**EXACT, **shape} for shape in (WAVES, DEEP, STEPS)]
    base = {**TANGENT, "n_boundary": min(max(400, 20 * dim), 1000)}
    if dim <= SEVERAL_UP_TO:
        return [{**base, **shape} for shape in (WIDE_WAVES, WIDE_DEEP)]
    # Squares and waves along every axis have room.
    return [{**base, **MANY, "width": 128 if dim <= 64 else 256}]


def products_preset(dim: int, degree: int) -> dict[str, Any]:
    """Settings for an equation whose source is nearly a sum of a few products of functions of one coordinate each."""
    rank = min(max(PRODUCT_PARAMETERS // (dim * (degree + 1)), FEWEST_PRODUCTS), MOST_PRODUCTS)
    return {**EXACT, "rank": rank, "degree": degree, "sought": 0.5}


def marching_preset(dim: int) -> dict[str, Any]:
    """Settings for the steps of a march: one network for all times, spread over the domain from the start on."""
    shape = {1: LINE, 2: PLANE}.get(dim, SPACE)
    return {**default_presets(dim)[0], **RIDGES, **shape, "boundary_norm": "l2", "late": False, "polish": False}


def small_batches(parameters: int) -> dict[str, Any]:
    """Batches for a network of this size that remember: many cheap steps, of which each holds to the last."""
    # Smaller batches win and lose by luck: docs/notebook.md, “Small batches that remember”.
    interior = max(800, math.ceil(0.55 * parameters))
    boundary = interior // 4
    # A batch with three rows per parameter has little to remember.
    momentum = 0.9 if interior + 2 * boundary < 3 * parameters else 0.5
    return {"n_interior": interior, "n_boundary": boundary, "boundary_norm": "h1-sampled", "momentum": momentum}

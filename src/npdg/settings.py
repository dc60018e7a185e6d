"""The numbers of a run, typed and checked before jax is imported."""

import math
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from npdg.errors import InputError, unknown

# Every method by name; `methods.py` builds them.
METHODS: dict[str, str] = {
    "npdg": "natural primal-dual hybrid gradient",
    "npdg-flat": "the same saddle with plain gradients (the paper's ablation)",
    "pd-adam": "the same saddle with Adam for every player, no extrapolation",
    "pinn": "physics-informed network: least squares of the residual, with Adam",
    "pinn-lbfgs": "the same with L-BFGS on fixed samples",
    "natural-pinn": "the same with the natural gradient (Gauss-Newton)",
    "deep-ritz": "minimisation of the equation's energy, with Adam",
    "wan": "weak adversarial networks: the norm of the weak residual as a ratio, with Adam",
}
# The kinds of dual players that a method may have.
DUALS: dict[str, tuple[str, ...]] = {
    "npdg": ("network", "tangent", "exact"),
    "npdg-flat": ("network",),
    "pd-adam": ("network",),
    "wan": ("network",),
    "pinn": ("none",),
    "pinn-lbfgs": ("none",),
    "natural-pinn": ("none",),
    "deep-ritz": ("none",),
}
PRESETS: dict[str, str] = {
    "default": "ours: the best accuracy per second, nothing to set",
    "paper": "the paper's setting to the number",
}
ACTIVATIONS: dict[str, str] = {
    "tanh": "tanh(z)",
    "softplus": "log(1 + exp(βz))/β, β = softplus_beta",
    "prelu": "max(z, 0) + s·min(z, 0), one learnable s",
    "sine": "sin(z)",
}

Model = TypeVar("Model", bound=BaseModel)
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False, description="a positive number")]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False, description="a number of at least 0")]
Count = Annotated[int, Field(ge=1, le=10_000_000, description="a whole number from 1 to 10000000")]


class Settings(BaseModel):
    """Every number a method may use. A preset gives them all; `--set key=value` changes one."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    tau_u: Positive
    tau_phi: Positive
    tau_psi: Positive
    omega: NonNegative
    nu: NonNegative
    lam: Positive
    n_interior: Count
    n_boundary: Count
    n_metric: Count = 1000
    width: Annotated[int, Field(ge=1, le=65536, description="a whole number from 1 to 65536")]
    psi_width: Annotated[int, Field(ge=1, le=65536, description="a whole number from 1 to 65536")]
    depth: Annotated[int, Field(ge=1, le=64, description="a whole number of linear maps, from 1 to 64")]
    activation: Annotated[
        Literal["tanh", "softplus", "prelu", "sine"], Field(description="tanh, softplus, prelu or sine")
    ]
    softplus_beta: Positive = 1.0
    steepness: NonNegative = 0.0
    axes: Annotated[bool, Field(description="true or false")] = False
    squares: Annotated[bool, Field(description="true or false")] = False
    centred: Annotated[bool, Field(description="true or false")] = False
    last_bias: Annotated[bool, Field(description="true or false")] = True
    dual: Annotated[
        Literal["network", "tangent", "exact", "none"], Field(description="network, tangent, exact or none")
    ] = "network"
    pairing: Annotated[Literal["weak", "strong"], Field(description="weak or strong")]
    metric: Annotated[
        Literal["gradient", "energy", "identity", "operator", "reaction-diffusion", "reaction"],
        Field(description="gradient, energy, identity, operator, reaction-diffusion or reaction"),
    ] = "gradient"
    residual_weight: NonNegative = 0.0
    neumann: Annotated[Literal["tested", "natural"], Field(description="tested or natural")] = "tested"
    boundary_norm: Annotated[Literal["l2", "h1", "h1-sampled"], Field(description="l2, h1 or h1-sampled")]
    solver: Annotated[Literal["minres", "cg", "lsmr", "dense"], Field(description="minres, cg, lsmr or dense")]
    minres_rtol: Annotated[float, Field(gt=0, lt=1, description="a number between 0 and 1")]
    minres_max: Count
    minres_stop: Annotated[Literal["residual", "scipy"], Field(description="residual or scipy")]
    damping: NonNegative = 0.0
    momentum: Annotated[float, Field(ge=0, lt=1, description="a number from 0 to below 1")] = 0.0
    rate_decay: NonNegative = 0.0
    line_search: Annotated[bool, Field(description="true or false")] = True
    late: Annotated[bool, Field(description="true or false")] = False
    polish: Annotated[bool, Field(description="true or false")] = False
    tolerance: Positive = 2e-5
    patience: Count = 12
    step_max: Count = 100
    precision: Annotated[Literal["float32", "float64"], Field(description="float32 or float64")] = "float32"


def resolve(method: str, preset: dict[str, Any], overrides: dict[str, Any]) -> Settings:
    """A preset with some values changed, or an `InputError` that names the key and what is allowed."""
    for key in overrides:
        if key not in Settings.model_fields:
            raise unknown("setting", key, Settings.model_fields)
    settings = parse(Settings, {**preset, **overrides})
    exact = settings.dual in ("tangent", "exact")
    if settings.dual not in DUALS[method]:
        raise InputError(f"dual: '{settings.dual}' is not allowed for {method}; give {' or '.join(DUALS[method])}.")
    least_squares = settings.dual == "none" and method != "deep-ritz"
    if (exact or least_squares or settings.pairing == "strong") and settings.activation == "prelu":
        remedy = ", or set dual=network and pairing=weak" if method == "npdg" else ""
        raise InputError(
            "activation: 'prelu' has no second derivatives, which the strong residual needs; "
            f"give tanh, softplus or sine{remedy}."
        )
    if exact and settings.metric not in ("gradient", "energy"):
        raise InputError(
            f"metric: '{settings.metric}' is not allowed with dual={settings.dual}; give gradient or energy, "
            "or set dual=network."
        )
    if settings.dual != "network" and (settings.neumann == "natural" or settings.residual_weight > 0):
        key = "neumann" if settings.neumann == "natural" else "residual_weight"
        raise InputError(f"{key}: it is of no use with dual={settings.dual}; set dual=network, or leave it out.")
    if settings.momentum > 0 and settings.dual != "exact" and method != "natural-pinn":
        raise InputError(f"momentum: it is of no use for {method} with dual={settings.dual}; leave it out.")
    if settings.late and settings.dual != "tangent":
        raise InputError(f"late: it is of no use for {method} with dual={settings.dual}; leave it out.")
    if settings.solver == "lsmr" and settings.damping == 0:
        raise InputError(
            "damping: 0 is not allowed with solver=lsmr, which solves damped least squares; give 1e-6, say."
        )
    if (exact or method == "natural-pinn") and settings.damping == 0:
        which = f"dual={settings.dual}" if exact else method
        raise InputError(f"damping: 0 is not allowed with {which}, which adapts it; give 0.001, say.")
    return settings


def parse(model: type[Model], values: dict[str, Any]) -> Model:
    """Validate into a model; the first mistake becomes one sentence."""
    for key, value in values.items():
        field = model.model_fields.get(key)
        if isinstance(value, bool) and field is not None and field.annotation is not bool:  # pydantic reads it as 1
            raise InputError(f"{key}: {value!r} is not allowed; give {field.description}.")
    try:
        return model.model_validate(values)
    except ValidationError as error:
        mistake = error.errors()[0]
        key = str(mistake["loc"][0]) if mistake["loc"] else "input"
        field = model.model_fields.get(key)
        allowed = field.description if field is not None and field.description else mistake["msg"]
        raise InputError(f"{key}: {mistake['input']!r} is not allowed; give {allowed}.") from None


def default_presets(method: str, dim: int) -> list[dict[str, Any]]:
    """Our settings for any equation of a given dimension; where there are several, a short trial decides."""
    if method != "npdg":
        return [{**_NETWORKS, **_BASELINES[method](dim)}]
    if dim <= EXACT_DUAL_UP_TO:
        return [{**_NETWORKS, **_EXACT, **shape} for shape in (_WAVES, _DEEP, _STEPS)]
    base = {**_NETWORKS, **_TANGENT, "n_boundary": min(max(400, 20 * dim), 1000)}
    if dim <= SEVERAL_UP_TO:
        return [{**base, **shape} for shape in (_WAVES_128, _DEEP_64)]
    # Squares and waves along every axis have room.
    return [{**base, **_MANY, "width": 128 if dim <= 64 else 256}]


def marching_preset(method: str, dim: int) -> dict[str, Any]:
    """Our settings for the steps of a march: one network for all times, spread over the domain from the start on."""
    base = default_presets(method, dim)[0]
    if method != "npdg":
        return base
    shape = {1: _LINE, 2: _PLANE}.get(dim, _SPACE)
    return {**base, **_RIDGES, **shape, "boundary_norm": "l2", "late": False, "polish": False}


def small_batches(parameters: int) -> dict[str, Any]:
    """Batches for a network of this size that remember: many cheap steps, of which each holds to the last."""
    # With half the points and a momentum of 0.95 some seeds of Poisson 10-D are exact after 20 s, others stay at 2e-6.
    interior = max(800, math.ceil(0.55 * parameters))
    boundary = interior // 4
    # A batch of three rows a parameter has little to remember: with 0.9, Poisson 5-D had seeds between 4e-12 and 1e-8.
    momentum = 0.9 if interior + 2 * boundary < 3 * parameters else 0.5
    return {"n_interior": interior, "n_boundary": boundary, "boundary_norm": "h1-sampled", "momentum": momentum}


def late_settings(settings: Settings, parameters: int, traces: int) -> Settings:
    """The late phase of a training with the tangent dual: exact duals, and batches of 0.4 rows a parameter or more, of
    which a boundary point brings `traces`."""
    # In 30-D the error grows with 0.2 rows a parameter, and falls as fast by time with 0.4 as with 0.75.
    return settings.model_copy(
        update={
            "dual": "exact",
            "solver": "dense",
            "n_interior": max(500, math.ceil(0.25 * parameters)),
            "n_boundary": max(150, math.ceil(0.15 * parameters / traces)),
            "boundary_norm": "h1-sampled",
            "momentum": 0.9,
            "precision": "float64",
        }
    )


# Up to here the residual metric with dense solves is ahead; above, a batch tells too little of a larger network's
# parameters, and the gradient metric is (30-D Poisson at 50 s: 4.8e-3 against 1.4e-5).
EXACT_DUAL_UP_TO = 12

# Above, a trial of a few seconds is a few steps, which do not tell.
SEVERAL_UP_TO = 30

# A user who sets one of these has chosen the network; nothing is tried then.
SHAPE_KEYS = frozenset({"width", "depth", "activation", "squares", "dual"})

# The late phase has its own of these; who sets one means the whole run.
LATE_KEYS = frozenset({"dual", "solver", "boundary_norm", "n_interior", "n_boundary", "momentum"})

# (1 + ω) τ_φ ν = 1 makes the extrapolated dual the Riesz representative of the residual, so that u contracts by
# 1 − τ_u/ν a step whatever τ_φ is; a small τ_φ keeps the dual networks where their linearisation holds.
_NETWORKS: dict[str, Any] = {
    "tau_u": 0.5,
    "tau_phi": 0.095,
    "tau_psi": 0.095,
    "omega": 1 / 0.095 - 1,  # theory.riesz_omega(0.095)
    "nu": 1.0,
    "lam": 10.0,
    "n_interior": 2000,
    "n_boundary": 400,
    "width": 128,
    "psi_width": 64,
    "depth": 2,
    "activation": "tanh",
    "centred": True,
    "dual": "network",
    "metric": "energy",
    "pairing": "strong",
    "boundary_norm": "h1",
    "solver": "minres",
    "minres_rtol": 1e-2,
    "minres_max": 60,
    "minres_stop": "residual",
    "precision": "float32",
}
_EXACT: dict[str, Any] = {
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
_WAVES: dict[str, Any] = {"width": 48, "depth": 2, "activation": "sine", "squares": True}
_DEEP: dict[str, Any] = {"width": 32, "depth": 3, "activation": "tanh", "squares": True}
_STEPS: dict[str, Any] = {"width": 48, "depth": 2, "activation": "tanh", "squares": True}
# What is marched: bends spread over the domain. In two dimensions one hidden layer is not enough: the start of
# allen-cahn-2d after 15 s 6e-3 with 256 units in one, 3.5e-4 with 24 in each of two. In more, waves: Π cos(πx_k) in 5-D
# is fitted to 7e-3 by the latter, and to 2e-4 in 2 s by 64 sines.
_RIDGES: dict[str, Any] = {"activation": "tanh", "squares": False, "axes": False, "steepness": 6.0}
_LINE: dict[str, Any] = {"width": 96, "depth": 2}
_PLANE: dict[str, Any] = {"width": 24, "depth": 3, "n_interior": 2000}
_SPACE: dict[str, Any] = {"width": 64, "depth": 2, "activation": "sine"}
_WAVES_128: dict[str, Any] = {**_WAVES, "width": 128, "axes": True}
_DEEP_64: dict[str, Any] = {**_DEEP, "width": 64}
# The strong residual takes d derivatives a point: fewer points leave time for more and better steps.
_MANY: dict[str, Any] = {**_WAVES_128, "n_interior": 1000, "minres_max": 120}
_TANGENT: dict[str, Any] = {
    "dual": "tangent",
    "solver": "cg",
    "tau_u": 1.0,
    "n_interior": 4000,
    "n_metric": 1000,
    "damping": 1e-3,
    "late": True,
    "polish": True,
}
_ADAM: dict[str, Any] = {"tau_u": 1e-3, "tau_phi": 1e-3, "tau_psi": 1e-3, "omega": 0.0}
_ALONE: dict[str, Any] = {
    "dual": "none",
    "boundary_norm": "l2",
    "lam": 1e2,
    "width": 64,
    "depth": 3,
    "pairing": "weak",
    "rate_decay": 1e-3,
}
# Chosen on 10-D Poisson at 15 s among rates, weights λ, depths and batches, each by itself; docs/baselines.md.
_BASELINES: dict[str, Callable[[int], dict[str, Any]]] = {
    "npdg-flat": lambda d: {
        "tau_u": 1e-2,
        "tau_phi": 1e-2,
        "tau_psi": 1e-2,
        "omega": 1.0,
        "n_boundary": max(400, 40 * d),
    },
    "pd-adam": lambda d: {**_ADAM, "n_boundary": max(400, 40 * d)},
    "wan": lambda d: {**_ALONE, **_ADAM, "dual": "network", "tau_phi": 1e-2, "lam": 1e4, "rate_decay": 0.0},
    "pinn": lambda d: {**_ALONE, "tau_u": 1e-2, "n_interior": 300, "n_boundary": 200},
    "deep-ritz": lambda d: {**_ALONE, "tau_u": 1e-2, "lam": 1e3},
    "pinn-lbfgs": lambda d: {**_ALONE, "tau_u": 1.0, "n_interior": 1000, "precision": "float64"},
    "natural-pinn": lambda d: {
        **_ALONE,
        "depth": 2,
        "damping": 1e-3,
        "solver": "dense",
        "n_interior": 1500 if d <= EXACT_DUAL_UP_TO else 500,
        "n_boundary": 200,
        "precision": "float64",
    },
}

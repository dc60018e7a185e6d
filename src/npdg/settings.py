"""The numbers of a run, typed and checked before jax is imported."""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from npdg.errors import InputError, unknown

# Every method by name; `methods.py` builds them.
METHODS: dict[str, str] = {
    "npdg": "natural primal-dual hybrid gradient",
    "npdg-flat": "the same saddle with plain gradients (the paper's ablation)",
    "pd-adam": "the same saddle with Adam for every player, no extrapolation",
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
    squares: Annotated[bool, Field(description="true or false")] = False
    centred: Annotated[bool, Field(description="true or false")] = False
    dual: Annotated[Literal["network", "tangent", "exact"], Field(description="network, tangent or exact")] = "network"
    pairing: Annotated[Literal["weak", "strong"], Field(description="weak or strong")]
    metric: Annotated[Literal["gradient", "energy"], Field(description="gradient or energy")] = "gradient"
    boundary_norm: Annotated[Literal["l2", "h1", "h1-sampled"], Field(description="l2, h1 or h1-sampled")]
    solver: Annotated[Literal["minres", "cg", "lsmr", "dense"], Field(description="minres, cg, lsmr or dense")]
    minres_rtol: Annotated[float, Field(gt=0, lt=1, description="a number between 0 and 1")]
    minres_max: Count
    minres_stop: Annotated[Literal["residual", "scipy"], Field(description="residual or scipy")]
    damping: NonNegative = 0.0
    polish: Annotated[bool, Field(description="true or false")] = False
    precision: Annotated[Literal["float32", "float64"], Field(description="float32 or float64")] = "float32"


def resolve(preset: dict[str, Any], overrides: dict[str, Any]) -> Settings:
    """A preset with some values changed, or an `InputError` that names the key and what is allowed."""
    for key in overrides:
        if key not in Settings.model_fields:
            raise unknown("setting", key, Settings.model_fields)
    settings = parse(Settings, {**preset, **overrides})
    strong = settings.dual != "network" or settings.pairing == "strong"
    if strong and settings.activation == "prelu":
        raise InputError(
            "activation: 'prelu' has no second derivatives, which the strong residual needs; "
            "give tanh, softplus or sine, or set dual=network and pairing=weak."
        )
    if settings.solver == "lsmr" and settings.damping == 0:
        raise InputError(
            "damping: 0 is not allowed with solver=lsmr, which solves damped least squares; give 1e-6, say."
        )
    if settings.dual != "network" and settings.damping == 0:
        raise InputError(f"damping: 0 is not allowed with dual={settings.dual}, which adapts it; give 0.001, say.")
    return settings


def parse(model: type[Model], values: dict[str, Any]) -> Model:
    """Validate into a model; the first mistake becomes one sentence."""
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
        return [{**_NETWORKS, "n_boundary": max(400, 40 * dim), **_RATES[method]}]
    if dim <= EXACT_DUAL_UP_TO:
        return [{**_NETWORKS, **_EXACT, **shape} for shape in (_WAVES, _DEEP, _STEPS)]
    base = {**_NETWORKS, **_TANGENT, "n_boundary": min(max(400, 20 * dim), 1000)}
    return [{**base, **shape} for shape in ((_WAVES_128, _DEEP_64) if dim <= SEVERAL_UP_TO else (_STEPS_256,))]


# Up to here the residual metric with dense solves is ahead; above, a point's one residual tells too little against its
# d first derivatives, and the gradient metric is (20-D Poisson at 40 s: 2.7e-3 against 3.8e-5).
EXACT_DUAL_UP_TO = 12

# Above, a trial of a few seconds is a few steps, which do not tell.
SEVERAL_UP_TO = 30

# A user who sets one of these has chosen the network; nothing is tried then.
SHAPE_KEYS = frozenset({"width", "depth", "activation", "squares", "dual"})

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
_WAVES_128: dict[str, Any] = {**_WAVES, "width": 128}
_DEEP_64: dict[str, Any] = {**_DEEP, "width": 64}
_STEPS_256: dict[str, Any] = {**_STEPS, "width": 256}
_TANGENT: dict[str, Any] = {
    "dual": "tangent",
    "solver": "cg",
    "tau_u": 1.0,
    "n_interior": 4000,
    "n_metric": 1000,
    "damping": 1e-3,
    "polish": True,
}
_RATES: dict[str, dict[str, Any]] = {
    "npdg-flat": {"tau_u": 1e-2, "tau_phi": 1e-2, "tau_psi": 1e-2, "omega": 1.0},
    "pd-adam": {"tau_u": 1e-3, "tau_phi": 1e-3, "tau_psi": 1e-3, "omega": 0.0},
}

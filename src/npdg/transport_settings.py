"""The numbers of a transport run, typed and checked before jax is imported."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from npdg.errors import InputError, unknown
from npdg.settings import METHODS, PRESETS, Count, NonNegative, Positive, parse

# The methods that play the saddle of a map and a potential.
TRANSPORT_METHODS = ("npdg", "npdg-flat", "pd-adam")


class TransportSettings(BaseModel):
    """Every number of a transport run. u is the map T; N is `n_interior`; K₁ and K₂ are `repeats_u`, `repeats_phi`.

    Step k of φ is τ/(1 + k/settling), at most `reach` times √(tr Σ₀ + tr Σ₁) long; without `settling` it is τ.

    `scaled`: T and φ see points centred, and divided by a common factor where their spread is far from 1.

    `squares`: half of φ's first units are squares, and without `affine` its quadratic part is trained.

    `affine`, `translate`, `residual`, `matched` and `refine` are the aids: start from the best affine map, or from a
    shift; T = x + network; samples with the exact first two moments; T improved by so many Newton steps down
    ½|x − y|² + φ(y), also from T at as many points near x as there are `probes`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    tau_u: Positive = 1.0
    tau_phi: Positive = 0.7
    omega: NonNegative = 1.0
    settling: NonNegative = 15.0
    reach: Positive = 0.05
    repeats_u: Count = 1
    repeats_phi: Count = 1
    n_interior: Count = 16384
    n_metric: Count = 512
    width: Annotated[int, Field(ge=1, le=65536, description="a whole number from 1 to 65536")] = 64
    depth: Annotated[int, Field(ge=1, le=64, description="a whole number of linear maps, from 1 to 64")] = 3
    activation: Annotated[
        Literal["tanh", "softplus", "prelu", "sine"], Field(description="tanh, softplus, prelu or sine")
    ] = "softplus"
    squares: Annotated[bool, Field(description="true or false")] = True
    metric: Annotated[Literal["h1", "gradient", "identity"], Field(description="h1, gradient or identity")] = "h1"
    solver: Annotated[Literal["minres", "cg"], Field(description="minres or cg")] = "cg"
    minres_rtol: Annotated[float, Field(gt=0, lt=1, description="a number between 0 and 1")] = 1e-2
    minres_max: Count = 60
    minres_stop: Annotated[Literal["residual", "scipy"], Field(description="residual or scipy")] = "residual"
    damping: NonNegative = 1e-3
    refine: Annotated[int, Field(ge=0, le=100, description="a whole number from 0 to 100")] = 3
    probes: Annotated[int, Field(ge=0, le=100, description="a whole number from 0 to 100")] = 1
    scaled: Annotated[bool, Field(description="true or false")] = True
    affine: Annotated[bool, Field(description="true or false")] = True
    translate: Annotated[bool, Field(description="true or false")] = True
    residual: Annotated[bool, Field(description="true or false")] = True
    matched: Annotated[bool, Field(description="true or false")] = True
    points: Annotated[Literal["sobol", "independent"], Field(description="sobol or independent")] = "sobol"
    precision: Annotated[Literal["float32", "float64"], Field(description="float32 or float64")] = "float32"


# What the other methods need to play at all: plain samples of moderate number, the saddle as it is, no metric.
_FIRST_ORDER: dict[str, Any] = {"n_interior": 2000, "refine": 0, "omega": 0.0, "settling": 0.0}
_DEFAULTS: dict[str, dict[str, Any]] = {
    "npdg": {},
    "npdg-flat": {**_FIRST_ORDER, "tau_u": 1e-2, "tau_phi": 1e-2, "omega": 1.0},
    "pd-adam": {**_FIRST_ORDER, "tau_u": 1e-3, "tau_phi": 1e-3},
}
# Sec. 5.5: the saddle without any aid, but for T, which starts near the identity: from a network drawn at random, whose
# values are all close to one point, the natural steps of both metrics leave ρ₁ at once and do not come back.
_PAPER: dict[str, Any] = {
    "activation": "prelu",
    "solver": "minres",
    "minres_rtol": 1e-3,
    "minres_max": 1000,
    "minres_stop": "scipy",
    "settling": 0.0,
    "damping": 0.0,
    "refine": 0,
    "scaled": False,
    "affine": False,
    "translate": False,
    "residual": True,
    "squares": False,
    "matched": False,
    "points": "independent",
}


def paper_transport(problem: str, method: str, dim: int) -> dict[str, Any]:
    """Sec. 5.5 and the table of the appendix on PD-Adam."""
    if problem == "ot-1d":
        own = {"width": 50, "depth": 3, "n_interior": 800, "tau_u": 0.15, "tau_phi": 0.15, "metric": "gradient"}
        rate = 0.5e-3
    elif problem == "ot-gaussian":
        own = {"width": 80, "depth": 4, "n_interior": 2000, "tau_u": 0.05, "tau_phi": 0.095, "metric": "gradient"}
        rate = 0.5e-4
    elif dim < 50:
        own = {"width": 120, "depth": 6, "n_interior": 2000, "tau_u": 0.5e-2, "tau_phi": 0.95e-2, "metric": "identity"}
        rate = 0.5e-4
    else:
        steps = {"tau_u": 0.5e-2, "tau_phi": 0.5e-2, "omega": 5.0, "minres_rtol": 1e-4}
        own = {"width": 120, "depth": 6, "n_interior": 2000, "metric": "gradient", **steps}
        rate = 1e-5
    own["n_metric"] = own["n_interior"]
    adam = {"tau_u": rate, "tau_phi": rate, "omega": 0.0} if method == "pd-adam" else {}
    return {**_PAPER, **own, **adam}


def choose_transport(problem: str, dim: int, method: str, preset: str, overrides: dict[str, Any]) -> TransportSettings:
    """The settings a preset means for a transport problem, with some values changed, or an `InputError`."""
    if method not in METHODS:
        raise unknown("method", method, TRANSPORT_METHODS)
    if method not in TRANSPORT_METHODS:
        raise InputError(f"method: {method!r} is not allowed for transport; give {', '.join(TRANSPORT_METHODS)}.")
    if preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    for key in overrides:
        if key not in TransportSettings.model_fields:
            raise unknown("setting", key, TransportSettings.model_fields)
    if preset == "paper":
        if not problem.startswith("ot-") or method == "npdg-flat":
            missing = method if problem.startswith("ot-") else problem
            raise InputError(f"preset: 'paper' is not allowed for {missing}, which is not in the paper; give default.")
        values = paper_transport(problem, method, dim)
    else:
        values = _DEFAULTS[method]
    settings = parse(TransportSettings, {**values, **overrides})
    if settings.activation == "prelu" and settings.refine:
        raise InputError(
            "activation: 'prelu' has no second derivatives, which refine needs; give softplus or refine=0."
        )
    if settings.affine and not settings.residual:
        raise InputError("affine: it is of no use without residual=true, whose fixed part it is; set affine=false.")
    if settings.solver == "minres" and settings.settling > 0:
        raise InputError("solver: 'minres' is not allowed with settling > 0, whose solves are cg's; set settling=0.")
    return settings

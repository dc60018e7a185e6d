"""The numbers of methods, part by part: of those for equations, then of those for transport."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from npdg.errors import InputError
from npdg.methods.flat import (
    Activation,
    Count,
    Depth,
    Few,
    FlatSettings,
    Fraction,
    NonNegative,
    Part,
    Positive,
    Precision,
    Size,
    Switch,
    flat,
    shape_in_words,
)


class Network(Part):
    """The network u: an MLP of `depth` linear maps.

    `squares`: half of the first layer's units are squares. `steepness`: the first layer starts as ridges so steep,
    spread over the domain; `axes`: along the coordinate axes. `centred`: the network sees its domain as [−1, 1]^d.
    `psi_width` is that of the boundary's test network. `features`: instead, a sum of `width` random waves, ridges or
    bumps, whose coefficients alone are trained. `rank`: instead, a sum of so many products of functions of one
    coordinate each, polynomials of `degree`.
    """

    width: Size = 128
    depth: Depth = 2
    activation: Activation = "tanh"
    softplus_beta: Positive = 1.0
    steepness: NonNegative = 0.0
    axes: Switch = False
    squares: Switch = False
    centred: Switch = True
    last_bias: Switch = True
    psi_width: Size = 64
    features: Annotated[
        Literal["none", "waves", "ridges", "bumps"], Field(description="none, waves, ridges or bumps")
    ] = "none"
    rank: Few = 0
    degree: Size = 12


class BatchSizes(Part):
    """Points of a batch inside the domain, on its boundary, and for the metric where that has its own.

    `sought` is the part of those inside that is sought where the source is large.
    """

    interior: Count = flat("n_interior", 2000)
    boundary: Count = flat("n_boundary", 400)
    metric: Count = flat("n_metric", 1000)
    sought: Annotated[float, Field(ge=0, lt=1, description="a number from 0 to below 1")] = 0.0


class Functional(Part):
    """The functional: its weights ν and λ, the kind of dual players, pairing, metric and boundary norm.

    `residual_weight` · |residual|² is added to what u descends; a given flux is `tested` by ψ, or the weak form's own
    (`natural`).
    """

    dual: Annotated[
        Literal["network", "tangent", "exact", "none"], Field(description="network, tangent, exact or none")
    ] = "network"
    nu: NonNegative = 1.0
    lam: Positive = 10.0
    pairing: Annotated[Literal["weak", "strong"], Field(description="weak or strong")] = "strong"
    metric: Annotated[
        Literal["gradient", "energy", "identity", "operator", "reaction-diffusion", "reaction"],
        Field(description="gradient, energy, identity, operator, reaction-diffusion or reaction"),
    ] = "energy"
    residual_weight: NonNegative = 0.0
    neumann: Annotated[Literal["tested", "natural"], Field(description="tested or natural")] = "tested"
    boundary_norm: Annotated[Literal["l2", "h1", "h1-sampled"], Field(description="l2, h1 or h1-sampled")] = "h1"

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if self.dual in ("tangent", "exact") and self.metric not in ("gradient", "energy"):
            raise InputError(
                f"metric: '{self.metric}' is not allowed with dual={self.dual}; give gradient or energy, "
                "or set dual=network."
            )
        if self.dual != "network" and (self.neumann == "natural" or self.residual_weight > 0):
            key = "neumann" if self.neumann == "natural" else "residual_weight"
            raise InputError(f"{key}: it is of no use with dual={self.dual}; set dual=network, or leave it out.")
        return self


class Steps(Part):
    """Step sizes of u, φ and ψ, the extrapolation ω of the duals, momentum, and how a first-order method steps."""

    u: Positive = flat("tau_u", 0.5)
    phi: Positive = flat("tau_phi", 0.095)
    psi: Positive = flat("tau_psi", 0.095)
    # (1 + ω) τ_φ ν = 1 makes the extrapolated dual the Riesz representative of the residual, so that u contracts by
    # 1 − τ_u/ν a step whatever τ_φ is; a small τ_φ keeps the dual networks where their linearisation holds.
    omega: NonNegative = 1 / 0.095 - 1
    momentum: Annotated[float, Field(ge=0, lt=1, description="a number from 0 to below 1")] = 0.0
    rate_decay: NonNegative = 0.0
    line_search: Switch = True


class Solver(Part):
    """The linear solver of the Gram systems, when it stops, and their damping."""

    kind: Annotated[Literal["minres", "cg", "lsmr", "dense"], Field(description="minres, cg, lsmr or dense")] = flat(
        "solver", "minres"
    )
    rtol: Fraction = flat("minres_rtol", 1e-2)
    max_iterations: Count = flat("minres_max", 60)
    stop: Annotated[Literal["residual", "scipy"], Field(description="residual or scipy")] = flat(
        "minres_stop", "residual"
    )
    damping: NonNegative = 0.0

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if self.kind == "lsmr" and self.damping == 0:
            raise InputError(
                "damping: 0 is not allowed with solver=lsmr, which solves damped least squares; give 1e-6, say."
            )
        return self


class StageSwitches(Part):
    """Which stages follow the training: exact duals after the tangent dual, and a linear correction."""

    handover: Switch = flat("late", False)
    correction: Switch = flat("polish", False)


class Marching(Part):
    """When a time step ends: at a residual, after steps in which that fell by less than a tenth, or after so many."""

    tolerance: Positive = 2e-5
    patience: Count = 12
    step_max: Count = 100


class Settings(FlatSettings):
    """Every number that a method for equations may use. A preset gives them all; `--set key=value` changes one."""

    network: Network = Network()
    samples: BatchSizes = BatchSizes()
    functional: Functional = Functional()
    steps: Steps = Steps()
    solver: Solver = Solver()
    stages: StageSwitches = StageSwitches()
    march: Marching = Marching()
    precision: Precision = "float32"

    def in_words(self) -> str:
        """The network and the dual."""
        return f"{shape_in_words(self.network)}, {self.functional.dual} dual"

    def handed_over(self, parameters: int, rows: int) -> Settings:
        """Settings after the hand-over from the tangent dual: exact duals, and batches of at least 0.4 rows per
        parameter, of which a boundary point brings `rows`."""
        # Fewer rows than 0.4 per parameter make the error grow: docs/notebook.md, “The late phase”.
        return self.changed(
            dual="exact",
            solver="dense",
            n_interior=max(500, math.ceil(0.25 * parameters)),
            n_boundary=max(150, math.ceil(0.15 * parameters / rows)),
            boundary_norm="h1-sampled",
            momentum=0.9,
            precision="float64",
        )


class TransportNetwork(Part):
    """The networks of T and φ. `squares`: half of φ's first units are squares, and without `affine` its quadratic part
    is trained."""

    width: Size = 64
    depth: Depth = 3
    activation: Activation = "softplus"
    squares: Switch = True


class TransportBatchSizes(Part):
    """Points of each measure in a batch, and for the metric; Sobol points, or independent ones, with exact moments."""

    interior: Count = flat("n_interior", 16384)
    metric: Count = flat("n_metric", 512)
    points: Annotated[Literal["sobol", "independent"], Field(description="sobol or independent")] = "sobol"
    matched: Switch = True


class TransportFunctional(Part):
    """The metric of φ, and how T is improved: so many Newton steps down ½|x − y|² + φ(y), also from T at as many
    points near x as there are `probes`."""

    metric: Annotated[Literal["h1", "gradient", "identity"], Field(description="h1, gradient or identity")] = "h1"
    refine: Few = 3
    probes: Few = 1


class TransportSteps(Part):
    """Step sizes of T and φ, extrapolation ω, and how often each moves in a step.

    Step k of φ is τ/(1 + k/settling), at most `reach` times √(tr Σ₀ + tr Σ₁) long; without `settling` it is τ.
    """

    u: Positive = flat("tau_u", 1.0)
    phi: Positive = flat("tau_phi", 0.7)
    omega: NonNegative = 1.0
    settling: NonNegative = 15.0
    reach: Positive = 0.05
    repeats_u: Count = 1
    repeats_phi: Count = 1


class TransportSolver(Solver):
    """The same for transport, by products alone."""

    kind: Annotated[Literal["minres", "cg"], Field(description="minres or cg")] = flat("solver", "cg")  # pyright: ignore[reportIncompatibleVariableOverride]
    damping: NonNegative = 1e-3


class TransportStart(Part):
    """Where T starts: `affine`, at the best affine map; `translate`, at a shift; `residual`, as x + network.

    `scaled`: T and φ see points centred, and divided by a common factor where their spread is far from 1.
    """

    scaled: Switch = True
    affine: Switch = True
    translate: Switch = True
    residual: Switch = True

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if self.affine and not self.residual:
            raise InputError("affine: it is of no use without residual=true, whose fixed part it is; set affine=false.")
        return self


class TransportSettings(FlatSettings):
    """Every number of a transport run; u is the map T."""

    network: TransportNetwork = TransportNetwork()
    samples: TransportBatchSizes = TransportBatchSizes()
    functional: TransportFunctional = TransportFunctional()
    steps: TransportSteps = TransportSteps()
    solver: TransportSolver = TransportSolver()
    start: TransportStart = TransportStart()
    precision: Precision = "float32"

    def in_words(self) -> str:
        """The networks."""
        return shape_in_words(self.network)

"""The numbers of a transport method, part by part."""

from __future__ import annotations

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


class TransportNetwork(Part):
    """The networks of T and φ. `squares`: half of φ's first units are squares, and without `affine` its quadratic part
    is trained."""

    width: Size = 64
    depth: Depth = 3
    activation: Activation = "softplus"
    squares: Switch = True


class TransportSamples(Part):
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


class TransportSolver(Part):
    """The linear solver of the Gram systems, when it stops, and their damping."""

    kind: Annotated[Literal["minres", "cg"], Field(description="minres or cg")] = flat("solver", "cg")
    rtol: Fraction = flat("minres_rtol", 1e-2)
    max_iterations: Count = flat("minres_max", 60)
    stop: Annotated[Literal["residual", "scipy"], Field(description="residual or scipy")] = flat(
        "minres_stop", "residual"
    )
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
    samples: TransportSamples = TransportSamples()
    functional: TransportFunctional = TransportFunctional()
    steps: TransportSteps = TransportSteps()
    solver: TransportSolver = TransportSolver()
    start: TransportStart = TransportStart()
    precision: Precision = "float32"

    def in_words(self) -> str:
        """The networks."""
        return shape_in_words(self.network)

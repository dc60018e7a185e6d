"""Optimal transport: `transport` one measure to another and look at the `TransportSolution`."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from pydantic import BaseModel, ConfigDict
from pydantic import Field as Constraint

from npdg import scores
from npdg.distributions import Distribution, Samples, bures, matched
from npdg.errors import InputError, unknown
from npdg.fields import Softplus
from npdg.formulations.monge import monge, refined
from npdg.krylov import cg
from npdg.loop import Recipe, Record, initial, run
from npdg.maps import start_map, start_potential
from npdg.rules import annealed, by_products, natural
from npdg.saddle import Fields
from npdg.settings import Count, NonNegative, Positive, parse
from npdg.solution import call_all, check_budget
from npdg.stages import precision

TEST_POINTS = 10_000
DENSITIES = 2000  # of them, those at which the Monge–Ampère equation is looked at
FINAL_ROUNDS = 10  # Newton steps of the refinement in the map that is handed out


class TransportSettings(BaseModel):
    """Every number of a transport run."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    tau_phi: Positive = 0.3
    settling: Positive = 30.0
    reach: Positive = 0.1
    tau_map: Positive = 1.0
    omega: NonNegative = 1.0
    n: Count = 8192
    n_metric: Count = 1024
    width: Annotated[int, Constraint(ge=1, le=65536, description="a whole number from 1 to 65536")] = 64
    depth: Annotated[int, Constraint(ge=1, le=64, description="a whole number of linear maps, from 1 to 64")] = 3
    metric: Annotated[Literal["h1", "gradient", "identity"], Constraint(description="h1, gradient or identity")] = "h1"
    damping: Positive = 1e-3
    iterations: Count = 30
    refine: Annotated[int, Constraint(ge=0, le=100, description="a whole number from 0 to 100")] = 2
    translate: Annotated[bool, Constraint(description="true or false")] = True
    affine: Annotated[bool, Constraint(description="true or false")] = True
    matched: Annotated[bool, Constraint(description="true or false")] = True


@dataclass
class TransportSolution:
    """An optimal map T with its potential φ: T(x) minimises ½|x − y|² + φ(y)."""

    source: Distribution
    target: Distribution
    settings: TransportSettings
    fields: Fields
    seed: int
    stop_reason: str
    detail: str = ""
    seconds: float = 0.0
    compile_seconds: float = 0.0
    history: list[Record] = field(default_factory=list)

    def map(self, x: Any) -> np.ndarray:
        """T at the points `x (n, d)`, or at one point `(d,)`."""
        return self._evaluate(self._map, x)

    def potential(self, y: Any) -> np.ndarray:
        """φ at the points `y (n, d)`, or at one point `(d,)`."""
        return self._evaluate(self.fields["phi"], y)

    def inverse(self, y: Any) -> np.ndarray:
        """The inverse map y + ∇φ(y)."""
        return self._evaluate(lambda p: p + jax.grad(self.fields["phi"])(p), y)

    def _map(self, x: Array) -> Array:
        rounds = FINAL_ROUNDS if self.settings.refine else 0
        return refined(self.fields["phi"], x, self.fields["T"](x), rounds)

    def _evaluate(self, function: Callable[[Array], Array], x: Any) -> np.ndarray:
        points = jnp.asarray(np.asarray(x, dtype=np.float32))
        if points.ndim not in (1, 2) or points.shape[-1] != self.source.dim:
            raise InputError(f"x: shape {points.shape} is not allowed; give points of shape (n, {self.source.dim}).")
        return np.asarray(function(points) if points.ndim == 1 else jax.jit(jax.vmap(function))(points))

    def distance(self, n: int = TEST_POINTS, seed: int = 1) -> float:
        """The Wasserstein distance W₂ as the cost of the map: √E|x − T(x)|²."""
        x = np.asarray(self.source.sample(jax.random.key(seed), n).x)
        return float(np.sqrt(np.mean(np.sum((x - self.map(x)) ** 2, axis=1))))

    def score(
        self, true_map: Callable[[np.ndarray], np.ndarray] | None = None, n: int = TEST_POINTS, seed: int = 1
    ) -> dict[str, float | None]:
        """Errors on fresh points: against a true map, if given; the cost and its gap to the dual value; distances of
        T#ρ₀ to ρ₁ with their floors, those of two samples of ρ₁; the Monge–Ampère residual where densities are known.
        """
        first, second, third = jax.random.split(jax.random.key(seed), 3)
        x, y, z = (
            np.asarray(measure.sample(key, n).x)
            for measure, key in ((self.source, first), (self.target, second), (self.target, third))
        )
        n = min(len(x), len(y), len(z))
        x, y, z = x[:n], y[:n], z[:n]
        pushed = self.map(x)
        cost = float(np.mean(np.sum((x - pushed) ** 2, axis=1))) / 2
        dual = cost + float(np.mean(self.potential(pushed)) - np.mean(self.potential(y)))
        truth: dict[str, float | None] = dict.fromkeys(("map_l2", "uvp", "cos"))
        if true_map is not None:
            truth |= scores.map_errors(pushed, np.asarray(true_map(x)), x, float(np.trace(self.target.covariance)))
        return {
            **truth,
            "cost": cost,
            "dual_value": dual,
            "gap": cost - dual,
            "sliced_w2": scores.sliced_w2(pushed, y),
            "sliced_w2_floor": scores.sliced_w2(z, y),
            "energy_distance": scores.energy_distance(pushed, y),
            "energy_distance_floor": scores.energy_distance(z, y),
            "monge_ampere": scores.monge_ampere_residual(
                self.source,
                self.target,
                self.fields["phi"],
                jnp.asarray(x[:DENSITIES]),
                jnp.asarray(pushed[:DENSITIES]),
            ),
        }


def transport(
    source: Any,
    target: Any,
    *,
    seconds: float | None = None,
    steps: int | None = None,
    seed: int = 0,
    evaluate: Callable[[Fields], dict[str, float]] | None = None,
    callbacks: Sequence[Callable[[int, Record], None]] = (),
    should_stop: Callable[[], str | None] = lambda: None,
    **settings: Any,
) -> TransportSolution:
    """The optimal map from one measure to another, each a distribution or an array of samples `(n, d)`.

    Every number is chosen for you; `affine=False` starts from the identity instead of the best affine map.
    """
    first, second = _measure("source", source), _measure("target", target)
    if first.dim != second.dim:
        raise InputError(f"target: dimension {second.dim} is not that of the source, {first.dim}; give equal ones.")
    check_budget(seconds, steps, seed)
    for key in settings:
        if key not in TransportSettings.model_fields:
            raise unknown("setting", key, TransportSettings.model_fields)
    chosen = parse(TransportSettings, settings)
    if seconds is None and steps is None:
        seconds = 60.0
    with precision("float32"):
        recipe = transport_recipe(first, second, chosen)
        outcome = run(
            recipe,
            initial(recipe, seed),
            seconds=seconds,
            steps=steps,
            evaluate=(lambda state: {}) if evaluate is None else (lambda state: evaluate(state.fields)),
            on_record=lambda record: call_all(callbacks, record),
            should_stop=should_stop,
        )
    if outcome.stop_reason == "diverged":
        warnings.warn(f"diverged: {outcome.detail}", RuntimeWarning, stacklevel=2)
    return TransportSolution(
        first,
        second,
        chosen,
        outcome.state.fields,
        seed,
        outcome.stop_reason,
        outcome.detail,
        outcome.seconds,
        outcome.compile_seconds,
        outcome.history,
    )


def transport_recipe(source: Distribution, target: Distribution, settings: TransportSettings) -> Recipe:
    """All that a run needs."""
    if settings.affine:
        matrix, shift = bures(source, target)
    else:
        matrix, shift = np.eye(source.dim), (target.mean - source.mean) * settings.translate

    def start(key: Array) -> Fields:
        map_key, potential_key = jax.random.split(key)
        shape = (settings.width, settings.depth, Softplus(1.0))
        return {
            "T": start_map(matrix, shift, *shape, map_key),
            "phi": start_potential(matrix, shift, *shape, potential_key),
        }

    drawn = matched if settings.matched else (lambda measure: measure)
    solve = by_products(cg(1e-2, settings.iterations))
    return Recipe(
        saddle=monge(drawn(source), drawn(target), metric=settings.metric, refine=settings.refine),
        start=start,
        rules={
            "phi": annealed(settings.tau_phi, settings.settling, settings.reach, settings.damping, settings.iterations),
            "T": natural(settings.tau_map, solve, damping=1e-4),
        },
        sizes={
            "source": settings.n,
            "target": settings.n,
            "source metric": settings.n_metric,
            "target metric": settings.n_metric,
        },
        omega=settings.omega,
    )


def _measure(name: str, given: Any) -> Distribution:
    if hasattr(given, "sample") and hasattr(given, "covariance"):
        return given
    return Samples(given, name)

"""What transport methods are built of: the coordinates, the search for the map, the starting fields, the saddle."""

from collections.abc import Callable

import jax
import numpy as np
from jax import Array

from npdg.fields.maps import start_map, start_potential
from npdg.fields.mlp import MLP, FirstLayer, activation
from npdg.formulations.monge import monge
from npdg.formulations.search import Search
from npdg.measures.moments import bures_matrix, independent, matched
from npdg.measures.points import Distribution, Measure
from npdg.methods.settings import TransportSettings
from npdg.problem.transport import Transport
from npdg.problem.units import Units
from npdg.rules.base import Rule
from npdg.saddle.saddle import Fields
from npdg.training.step import Recipe

FINAL_ROUNDS, FINAL_PROBES = 10, 3  # Newton steps and probes of the search in the map that a run returns.
LEAST_WIDTH = 1e-3  # A width below this part of the largest counts as none.
PROBE_DISTANCE = 0.5  # Standard deviations of the source between a point and its probes.


def monge_recipe(problem: Transport, settings: TransportSettings, rules: dict[str, Rule]) -> Recipe:
    """All that a run with these rules on one pair of measures needs."""
    inside = units_of(problem, settings).inside(problem)
    source, target = (_drawn(settings)(measure) for measure in (inside.source, inside.target))
    saddle = monge(source, target, metric=settings.functional.metric, search=search_for(problem, settings))
    samples, steps = settings.samples, settings.steps
    return Recipe(
        lower=lambda data: saddle,
        start=lambda key: start_fields(problem, settings, key),
        rules=rules,
        sizes={
            "source": samples.interior,
            "target": samples.interior,
            "source metric": samples.metric,
            "target metric": samples.metric,
        },
        omega=steps.omega,
        repeats={"T": steps.repeats_u, "phi": steps.repeats_phi},
    )


def scale_of(problem: Transport, settings: TransportSettings) -> float:
    """√(tr Σ₀ + tr Σ₁), in the units of the training."""
    inside = units_of(problem, settings).inside(problem)
    return float(np.sqrt(np.trace(inside.source.covariance) + np.trace(inside.target.covariance)))


def units_of(problem: Transport, settings: TransportSettings) -> Units:
    """The coordinates that T and φ are trained in."""
    if settings.start.scaled:
        return Units.of(problem, translate=settings.start.translate)
    return Units(1.0, np.zeros(problem.dim), np.zeros(problem.dim))


def search_for(problem: Transport, settings: TransportSettings, *, final: bool = False) -> Search | None:
    """How the map is improved in training, or in the end, if it is."""
    functional = settings.functional
    if functional.refine == 0:
        return None
    deviations = np.sqrt(np.diag(problem.source.covariance)) / units_of(problem, settings).scale
    width = tuple(float(s) for s in PROBE_DISTANCE * deviations)
    if final:
        return Search(FINAL_ROUNDS, FINAL_PROBES if functional.probes else 0, width)
    return Search(functional.refine, functional.probes, width)


def start_fields(problem: Transport, settings: TransportSettings, key: Array) -> Fields:
    """T and φ before training; also the template into which saved ones are read."""
    problem = units_of(problem, settings).inside(problem)
    map_key, potential_key = jax.random.split(key)
    dim, network = problem.dim, settings.network
    shape = {"activation": activation(network.activation), "width": network.width, "depth": network.depth}
    if not settings.start.residual:
        return {
            "T": MLP(dim, out=dim, key=map_key, **shape),
            "phi": MLP(dim, last_bias=False, key=potential_key, **shape),
        }
    matrix, shift = affine_start(problem, settings)
    trained = network.squares and not settings.start.affine
    return {
        "T": start_map(matrix, shift, key=map_key, **shape),
        "phi": start_potential(
            matrix,
            shift,
            covariance=(problem.source.covariance + problem.target.covariance) / 2 if trained else None,
            first=FirstLayer(squares=network.squares),
            key=potential_key,
            **shape,
        ),
    }


def affine_start(problem: Transport, settings: TransportSettings) -> tuple[np.ndarray, np.ndarray]:
    """The map that training starts from, in its own units: the best affine one, a shift, or the identity."""
    source, target = problem.source, problem.target
    if settings.start.affine:
        matrix = _stretch(source.covariance, target.covariance)
        return matrix, target.mean - matrix @ source.mean
    return np.eye(problem.dim), (target.mean - source.mean) * settings.start.translate


def _stretch(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The matrix of the best affine map, with bounds where one of the measures is flat."""
    values, vectors = np.linalg.eigh(source)
    flat = vectors[:, values <= LEAST_WIDTH**2 * max(values[-1], 1e-300)]
    along = flat @ flat.T  # where the source has no width to stretch: there the map is to be the identity
    width = (np.trace(source) + np.trace(target) or 1.0) * along
    matrix = bures_matrix(source + along @ target @ along + width, target + width)
    factors, axes = np.linalg.eigh((matrix + matrix.T) / 2)
    return (axes * np.maximum(factors, LEAST_WIDTH)) @ axes.T


def _drawn(settings: TransportSettings) -> Callable[[Distribution], Measure]:
    if settings.samples.points == "independent":
        return independent
    return matched if settings.samples.matched else (lambda measure: measure)

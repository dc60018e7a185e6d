"""Transport methods: the saddle of a map and a potential, with a rule for each."""

from collections.abc import Callable
from functools import partial

import jax
import numpy as np
from jax import Array

from npdg.directions import by_products
from npdg.distributions import Distribution, bures_matrix, independent, matched
from npdg.fields import MLP, PReLU, Sine, Softplus, Tanh
from npdg.formulations.monge import monge
from npdg.formulations.search import Search
from npdg.krylov import Solver, cg, minres
from npdg.loop import Recipe
from npdg.maps import start_map, start_potential
from npdg.measures import Measure
from npdg.optimizers import adam
from npdg.pair import Pair
from npdg.rules import Rule, annealed, levenberg, natural, plain
from npdg.saddle import Fields
from npdg.transport_settings import TransportSettings
from npdg.units import Units

FINAL_ROUNDS, FINAL_PROBES = 10, 3  # of the search in the map that is handed out
FLATTEST = 1e-3  # a width, relative to others, that counts as none
NEARBY = 0.5  # standard deviations of the source, between a point and its probes
ACTIVATIONS = {"tanh": Tanh, "softplus": Softplus, "prelu": PReLU, "sine": Sine}


def transport_recipe(pair: Pair, method: str, settings: TransportSettings) -> Recipe:
    """All that a run of one method on one pair of measures needs."""
    whole, pair = pair, units_of(pair, settings).inside(pair)
    scale = float(np.sqrt(np.trace(pair.source.covariance) + np.trace(pair.target.covariance)))
    source, target = (_drawn(settings)(measure) for measure in (pair.source, pair.target))
    return Recipe(
        saddle=monge(source, target, metric=settings.metric, search=search(whole, settings)),
        start=lambda key: start(whole, settings, key),
        rules=RULES[method](settings, scale),
        sizes={
            "source": settings.n_interior,
            "target": settings.n_interior,
            "source metric": settings.n_metric,
            "target metric": settings.n_metric,
        },
        omega=settings.omega,
        repeats={"T": settings.repeats_u, "phi": settings.repeats_phi},
    )


def units_of(pair: Pair, settings: TransportSettings) -> Units:
    """The coordinates that T and φ are trained in."""
    if settings.scaled:
        return Units.of(pair, translate=settings.translate)
    return Units(1.0, np.zeros(pair.dim), np.zeros(pair.dim))


def search(pair: Pair, settings: TransportSettings, *, final: bool = False) -> Search | None:
    """How the map is improved in training, or in the end, if it is."""
    if settings.refine == 0:
        return None
    deviations = np.sqrt(np.diag(pair.source.covariance)) / units_of(pair, settings).scale
    width = tuple(float(s) for s in NEARBY * deviations)
    if final:
        return Search(FINAL_ROUNDS, FINAL_PROBES if settings.probes else 0, width)
    return Search(settings.refine, settings.probes, width)


def start(pair: Pair, settings: TransportSettings, key: Array) -> Fields:
    """T and φ before training; also the template into which saved ones are read."""
    pair = units_of(pair, settings).inside(pair)
    map_key, potential_key = jax.random.split(key)
    dim, activation = pair.dim, ACTIVATIONS[settings.activation]()
    shape = {"activation": activation, "width": settings.width, "depth": settings.depth}
    if not settings.residual:
        return {
            "T": MLP(dim, out=dim, key=map_key, **shape),
            "phi": MLP(dim, last_bias=False, key=potential_key, **shape),
        }
    matrix, shift = affine_start(pair, settings)
    trained = settings.squares and not settings.affine
    return {
        "T": start_map(matrix, shift, key=map_key, **shape),
        "phi": start_potential(
            matrix,
            shift,
            covariance=(pair.source.covariance + pair.target.covariance) / 2 if trained else None,
            squares=settings.squares,
            key=potential_key,
            **shape,
        ),
    }


def affine_start(pair: Pair, settings: TransportSettings) -> tuple[np.ndarray, np.ndarray]:
    """The map that training starts from, in its own units: the best affine one, a shift, or the identity."""
    if settings.affine:
        matrix = _stretch(pair.source.covariance, pair.target.covariance)
        return matrix, pair.target.mean - matrix @ pair.source.mean
    return np.eye(pair.dim), (pair.target.mean - pair.source.mean) * settings.translate


def _stretch(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The matrix of the best affine map, with bounds where one of the measures is flat."""
    values, vectors = np.linalg.eigh(source)
    flat = vectors[:, values <= FLATTEST**2 * max(values[-1], 1e-300)]
    along = flat @ flat.T  # where the source has no width to stretch: there the map is to be the identity
    width = (np.trace(source) + np.trace(target) or 1.0) * along
    matrix = bures_matrix(source + along @ target @ along + width, target + width)
    factors, axes = np.linalg.eigh((matrix + matrix.T) / 2)
    return (axes * np.maximum(factors, FLATTEST)) @ axes.T


def _drawn(settings: TransportSettings) -> Callable[[Distribution], Measure]:
    if settings.points == "independent":
        return independent
    return matched if settings.matched else (lambda measure: measure)


def _natural(settings: TransportSettings, scale: float) -> dict[str, Rule]:
    kinds: dict[str, Callable[..., Solver]] = {"minres": partial(minres, stop=settings.minres_stop), "cg": cg}
    solve = by_products(kinds[settings.solver](settings.minres_rtol, settings.minres_max))
    if settings.settling == 0:  # as published: steps of a constant size
        return {
            "phi": natural(settings.tau_phi, solve, damping=settings.damping),
            "T": natural(settings.tau_u, solve, damping=settings.damping),
        }
    return {
        "phi": annealed(
            tau=settings.tau_phi,
            settling=settings.settling,
            reach=settings.reach * scale,
            damping=settings.damping,
            rtol=settings.minres_rtol / 10,  # what φ is wrong by, T learns
            iterations=settings.minres_max,
        ),
        "T": levenberg(settings.tau_u, solve),
    }


RULES: dict[str, Callable[[TransportSettings, float], dict[str, Rule]]] = {
    "npdg": _natural,
    "npdg-flat": lambda s, _: {"phi": plain(s.tau_phi), "T": plain(s.tau_u)},
    "pd-adam": lambda s, _: {"phi": adam(s.tau_phi), "T": adam(s.tau_u)},
}

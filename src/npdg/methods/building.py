"""What methods for equations are built of: networks, directions and sizes, as the settings describe them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from npdg.errors import InputError
from npdg.fields.base import Field, parameter_count
from npdg.fields.features import feature_sum, random_features
from npdg.fields.mlp import MLP, FirstLayer, activation
from npdg.fields.wrappers import Centred, CutOff, WithConstants
from npdg.formulations.least_squares import least_squares
from npdg.formulations.metrics import WEIGHED, Structure, structure_of
from npdg.geometry.domain import Domain
from npdg.linalg.cg import cg
from npdg.linalg.lsmr import lsmr
from npdg.linalg.minres import minres
from npdg.measures.adaptive import ImportanceSampled
from npdg.methods.settings import Network, Settings, Solver
from npdg.problem.pde import PDE, check_function
from npdg.rules.base import Direction, Rule
from npdg.rules.directions import by_factors, by_products, by_rows
from npdg.rules.levenberg import trusted
from npdg.saddle.saddle import Saddle
from npdg.training.step import Data, Recipe

SOUGHT_AMONG = 10  # Candidates for each point of a batch, among which those where the source is large are chosen.


def direction(solver: Solver) -> Direction:
    """The way to a natural direction that a linear solver gives."""
    if solver.kind == "dense":
        return by_factors()
    if solver.kind == "lsmr":
        return by_rows(lsmr(solver.rtol, solver.max_iterations))
    if solver.kind == "cg":
        return by_products(cg(solver.rtol, solver.max_iterations))
    return by_products(minres(solver.rtol, solver.max_iterations, stop=solver.stop))


def network(shape: Network, domain: Domain, width: int, key: Array, *, last_bias: bool) -> Field:
    """A network as the settings describe it."""
    net = MLP(
        domain.dim,
        width,
        shape.depth,
        activation=activation(shape.activation, shape.softplus_beta),
        first=FirstLayer(shape.squares, shape.steepness, shape.axes),
        last_bias=last_bias,
        key=key,
    )
    return Centred(domain, net) if shape.centred else net


def primal(domain: Domain, shape: Network, key: Array, own: Any = None) -> Field:
    """The field u before training, or the user's own; also the template into which a saved one is read."""
    if own is None and shape.features != "none":
        scale = shape.steepness or 1.0
        return feature_sum(domain, random_features(shape.features, domain.dim, shape.width, scale, 0))
    if own is None:
        return network(shape, domain, shape.width, key, last_bias=shape.last_bias)
    check_function("network", own, domain.dim, ())
    if parameter_count(own) == 0:
        raise InputError("network: it has no numbers to train; give an equinox module whose parameters are jax arrays.")
    real = lambda leaf: hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.floating)
    given = jax.tree.map(lambda leaf: jnp.asarray(leaf, float) if real(leaf) else leaf, own)
    arrays, rest = eqx.partition(given, eqx.is_array)
    return WithConstants(arrays, rest) if jax.tree.leaves(rest) else given


def test_function(domain: Domain, shape: Network, key: Array) -> Field:
    """A test function φ: a network that vanishes on the boundary, with a bias in its last layer as the authors' has."""
    return CutOff(domain, network(shape, domain, shape.width, key, last_bias=True))


def sizes(settings: Settings) -> dict[str, int]:
    """Points of a batch."""
    return {"interior": settings.samples.interior, "boundary": settings.samples.boundary}


def structure(equation: PDE, settings: Settings) -> Structure:
    """What the metric has to know about the equation's conductivity."""
    return structure_of(equation) if settings.functional.metric in WEIGHED else "scalar"


def least_squares_recipe(method: Any, problem: Any, settings: Settings, rule: Rule, *, resample: bool = True) -> Recipe:
    """u alone descends the strong residual, where the dual players are known in closed form."""
    functional = settings.functional
    method.check_sampling(problem.representative(), settings)
    sought = settings.samples.sought

    def saddle(pde: PDE) -> Saddle:
        plain = least_squares(pde, lam=functional.lam, boundary_norm=functional.boundary_norm)
        if sought == 0:
            return plain
        density = lambda point: jnp.abs(pde.source(point.x))
        interior = ImportanceSampled(plain.measures["interior"], density, (sought,), SOUGHT_AMONG)
        return replace(plain, measures={**plain.measures, "interior": interior})

    return Recipe(
        lower=lowered(problem, saddle),
        start=method.start(problem, settings),
        rules={"u": rule},
        sizes=sizes(settings),
        resample=resample,
    )


def gauss_newton(method: Any, problem: Any, settings: Settings) -> Recipe:
    """The same by the natural gradient in the metric of the residual, with the damping that is best."""
    solver = settings.solver
    rule = trusted(
        direction(solver),
        damping=solver.damping,
        momentum=settings.steps.momentum,
        sees_gradient=solver.kind != "dense",
    )
    return least_squares_recipe(method, problem, settings, rule)


def lowered(problem: Any, saddle: Callable[[PDE], Saddle]) -> Callable[[Data], Saddle]:
    """The function of a problem's data that gives its saddle, from one that takes an equation with its data bound."""
    return lambda data: saddle(problem.bound(data))

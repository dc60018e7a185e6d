"""A linear start: u as a sum of random features, by least squares; kind, scale and number are chosen by the residual.

In few dimensions some hundreds of waves, ridges or bumps of the right scale hold what training a network would take
minutes to find, and their coefficients are one linear solve away. Which scale is right the residual tells, on points
that the solve has not seen. An equation that is not linear takes a few such solves, each at the last solution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from npdg.compilation import jit
from npdg.fields.base import Field
from npdg.fields.features import KINDS, FeatureKind, Features, feature_sum, random_features
from npdg.formulations.least_squares import hardy_weight, least_squares
from npdg.formulations.metrics import random_wave
from npdg.measures.adaptive import ImportanceSampled
from npdg.problem.pde import PDE
from npdg.rules.pooled import triangular
from npdg.training.loop import advance
from npdg.training.progress import Events, Limits, Program, Progress
from npdg.training.records import Record
from npdg.training.stages.base import Context
from npdg.training.stages.trial import Trial, merit_of
from npdg.training.step import Recipe, initial
from npdg.training.stopping import StopReason

FEATURES = "features"
MOST_DIMENSIONS = 4
UNITS = (300, 900, 2700, 5000)  # Features of the levels of the search.
POINTS = 1.5, 0.5  # Points of a batch per feature: inside, and on the boundary, where each brings two rows.
ROWS = 2.5  # Rows per feature that these are.
SWEEPS = 8  # Solves of an equation that is not linear, at the most.
SCALES = tuple(2.0 ** (k / 2) for k in range(18))  # From 1 to 362 in the coordinates of [−1, 1]^d.
STEEPEST = {"waves": 362.1, "ridges": 64.0, "bumps": 64.0}
POOR = 1e-2  # √merit relative to that of u = 0, above which finer waves are tried as well.
KEPT = 3  # Choices of one level that the next one tries.
NEAR_ROUNDING = 1e-10  # The same, below which a level that is no better than the one before is the last.
AT_ROUNDING = 1e-13  # √merit relative to that of u = 0, below which nothing is left but rounding.


@dataclass(frozen=True)
class Choice:
    """A kind of features and their scale."""

    kind: FeatureKind
    scale: float


@dataclass(frozen=True)
class Found:
    """What the features of a choice came to: the field, its merit on points that the solve had not seen, a record."""

    choice: Choice
    units: int
    u: Field
    merit: float
    record: Record


class Search:
    """The search for the best features of an equation, which may stop and go on."""

    def __init__(self, context: Context):
        self.context, self.pde = context, context.problem
        self.linear, self.merit = is_linear(self.pde), merit_of(self.pde)
        self.best: Found | None = None
        self.programs: dict[tuple[int, FeatureKind | None], Program] = {}
        self.spent = self.compiled = 0.0
        self.settled, self.before = False, math.inf
        self.centres: dict[int, np.ndarray] = {}
        self.level, self.tried, self.finest = 0, [], 0.0
        every = [Choice(kind, scale) for kind in KINDS for scale in SCALES if scale <= STEEPEST[kind]]
        self.ahead = self._affordable(every)
        self.scale = self.merit({"u": feature_sum(self.pde.domain, self._features(Choice("waves", 1.0), 1))}) or 1.0

    def run(self, until: float) -> None:
        """Level by level, each with what was best in the one before, until so many seconds of this search are used up,
        or what is found cannot be told from the solution."""
        while self.level < len(UNITS) and not self.at_rounding and not self.context.events.should_stop():
            if not self.ahead:
                if not self.tried:  # nothing on this level was finite
                    return
                self.level += 1
                self.settled = self._settled()
                self.ahead = self._next()
                continue
            if not self._time_left(until):
                return
            found = self._solved(self.ahead.pop(0), until)
            if found is None:
                continue
            if found.choice.kind == "waves":
                self.finest = max(self.finest, found.choice.scale)
            self.tried = sorted([*self.tried, found], key=lambda one: one.merit)
            if self.best is None or found.merit < self.best.merit:
                self.best = found

    @property
    def units(self) -> int:
        return UNITS[self.level]

    @property
    def at_rounding(self) -> bool:
        """Whether what was found cannot be told from the solution, or more features do not bring it nearer."""
        return self.settled or self._relative() <= AT_ROUNDING

    def _relative(self) -> float:
        return math.inf if self.best is None else math.sqrt(self.best.merit / self.scale)

    def _settled(self) -> bool:
        """Whether the level that has ended was no better than the one before, and that near rounding."""
        assert self.best is not None
        before, self.before = self.before, self.best.merit
        return self._relative() <= NEAR_ROUNDING and self.best.merit > before / 4

    def _affordable(self, choices: list[Choice]) -> list[Choice]:
        """Those of a scale that the features of this level can resolve."""
        dim = self.pde.dim
        ball = math.pi ** (dim / 2) / math.gamma(dim / 2 + 1) / 2**dim
        finest = math.pi / 2 * (self.units / 1.3 / ball) ** (1 / dim)
        return [choice for choice in choices if choice.kind != "waves" or choice.scale <= finest]

    def _next(self) -> list[Choice]:
        """For the next level: the best choices, their finer neighbours, and all finer waves if none was good."""
        if self.level == len(UNITS):
            return []
        best = [found.choice for found in self.tried[:KEPT]]
        finer = [Choice(c.kind, next((s for s in SCALES if s > c.scale), c.scale)) for c in best]
        waves = [Choice("waves", scale) for scale in SCALES if scale > self.finest]
        poor = math.sqrt(self.tried[0].merit / self.scale) > POOR
        self.tried = []
        return self._affordable(list(dict.fromkeys([*best[:1], *finer[:1], *(waves if poor else []), *best[1:]])))

    def _time_left(self, until: float) -> bool:
        """Whether there is time for a solve with the features of this level."""
        return self.spent + 2 * ROWS * self.units**3 / self.context.clock.speed() <= until

    def _features(self, choice: Choice, units: int) -> Features:
        seed, dim = [self.context.seed, units], self.pde.dim
        centres = None
        if choice.kind == "bumps":  # half of them where the source is
            if units not in self.centres:
                self.centres[units] = np.asarray(self._sought(units))
            spread = np.asarray(random_features("bumps", dim, units, 1.0, seed).weight)
            centres = np.where(np.arange(units)[:, None] % 2 == 0, self.centres[units], spread)
        return random_features(choice.kind, dim, units, choice.scale, seed, centres)

    def _sought(self, units: int) -> Array:
        """Points where the source is large, in the coordinates of [−1, 1]^d."""
        pde = self.pde
        lower, upper = pde.domain.bounds()
        measure = ImportanceSampled(pde.interior, lambda point: jnp.abs(pde.source(point.x)))

        @jit
        def sought() -> Array:
            points = measure.sample(jax.random.key(self.context.seed), units).x
            return jax.vmap(lambda x: (2 * x - lower - upper) / (upper - lower))(points)

        return sought()

    def _solved(self, choice: Choice, until: float) -> Found | None:
        """Least squares in one set of features, by sweeps while they help and there is time; none if not finite."""
        units, kind = self.units, choice.kind if self.level else None
        features = self._features(choice, units)
        shared = Features(features.weight, features.bias, features.number, kind)
        recipe = feature_recipe(self.pde, feature_sum(self.pde.domain, shared), units)
        progress = Progress(initial(recipe, self.context.seed), recipe, None, program=self.programs.get((units, kind)))
        best, merit = progress, math.inf
        for sweep in range(1 if self.linear else SWEEPS):
            limits, quiet = Limits(steps=sweep + 1), Events(should_stop=self.context.events.should_stop)
            before = progress
            progress = advance(progress, limits, quiet, stage=FEATURES, clock=self.context.clock)
            self.compiled += progress.compile_seconds - before.compile_seconds
            self.spent += progress.seconds - before.seconds
            assert progress.program is not None
            self.programs[units, kind] = progress.program
            now = self.merit(progress.state.fields) if progress.stop is StopReason.STEPS else math.inf
            helped = now < merit / 2
            if now < merit:
                best, merit = progress, now
            if not helped or not self._time_left(until):
                break
        if not math.isfinite(merit):
            return None
        u = _of_kind(best.state.fields["u"], choice.kind)
        return Found(choice, units, u, merit, best.history[-1])


def feature_recipe(pde: PDE, u: Field, units: int) -> Recipe:
    """One step is one solve, of the residual as Hardy's inequality weighs it, on fresh points."""
    saddle = least_squares(pde, boundary_norm="h1-sampled", weight=hardy_weight(pde))
    interior, boundary = (math.ceil(part * units) for part in POINTS)
    return Recipe(
        lower=lambda data: saddle,
        start=lambda key: {"u": u},
        rules={"u": triangular(damping=1e-28, forget=True)},
        sizes={"interior": interior, "boundary": max(boundary, 20)},
    )


def is_linear(pde: PDE) -> bool:
    """Whether the residual is affine in u, at a few random points."""

    @jit
    def defect() -> tuple[Array, Array]:
        keys = jax.random.split(jax.random.key(5), 3)
        u, v = (random_wave(key, pde.dim) for key in keys[:2])
        x = pde.domain.sample_interior(keys[2], 20).x
        factors = jnp.array([[2.0, 3.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
        at = lambda f: jax.vmap(lambda y: pde.residual(lambda z: f[0] * u(z) + f[1] * v(z), y))(x)
        both, first, second, none = jax.vmap(at)(factors)
        return jnp.max(jnp.abs(both - 2 * first - 3 * second + 4 * none)), jnp.max(jnp.abs(both) + jnp.abs(first))

    found, size = defect()
    return bool(found <= 1e-9 * size)


def _of_kind(u: Field, kind: FeatureKind) -> Field:
    """The same field with a layer of one kind."""
    layer = u.net.features.field
    fixed = Features(layer.weight, layer.bias, layer.number, kind)
    return eqx.tree_at(lambda field: field.net.features.field, u, fixed)


def as_trial(context: Context, search: Search) -> Trial | None:
    """What a search has found, as a trial whose progress has the shape of the method's own; none if nothing."""
    found = search.best
    if found is None:
        return None
    settings = context.candidates[0].changed(features=found.choice.kind, width=found.units, polish=False)
    recipe = context.method.recipe(context.problem, settings)
    state = initial(recipe, context.seed)
    state = eqx.tree_at(lambda s: (s.fields["u"], s.step), state, (found.u, jnp.ones_like(state.step)))
    errors = context.method.meter(context.problem, settings)(state)
    size = (2 * found.merit) ** 0.5
    record = found.record._replace(
        step=1, seconds=search.spent, terms={"merit": found.merit}, rms_residual=size, errors=errors
    )
    stop = context.limits.enough([record]) or (StopReason.ROUNDING if search.at_rounding else None)
    progress = Progress(state, recipe, settings, [record], search.spent, search.compiled, stop)
    return Trial(progress, found.merit, found.merit / search.scale)

"""What all methods for equations share."""

import abc
from collections.abc import Sequence
from typing import Any, ClassVar

from npdg.errors import InputError
from npdg.fields.base import parameter_count
from npdg.formulations.separation import products
from npdg.methods.base import BYTES, Method, check_memory, hidden_units, parameters
from npdg.methods.building import primal
from npdg.methods.presets.default import HANDOVER_KEYS, SHAPE_KEYS
from npdg.methods.settings import Settings
from npdg.problem.pde import PDE
from npdg.results.error import error_meter
from npdg.results.solution import Solution
from npdg.training.progress import Evaluate, Progress
from npdg.training.records import Record
from npdg.training.stages.base import Stage
from npdg.training.stages.descent import Descend, Review
from npdg.training.stages.selection import Select
from npdg.training.stopping import ERRORS, OF_MAPS, PLATEAU, Until

LIVE_POINTS = 8192  # Points at which errors are measured as training goes on.


class EquationMethod(Method):
    """A method for −div flux(u) + reaction(u) = source.

    A subclass says which dual players it may have, what its settings are by default, and gives a recipe.
    """

    kind: ClassVar[str] = "equation"
    model = Settings
    duals: ClassVar[tuple[str, ...]] = ("none",)
    reports_residual: ClassVar[bool] = True
    weak_form: ClassVar[bool] = False  # whether it integrates the weak form, which asks for uniform points

    @abc.abstractmethod
    def defaults(self, dim: int) -> list[dict[str, Any]]:
        """The preset `default`, as flat settings; where there are several, a short trial decides."""

    def marching(self, dim: int) -> dict[str, Any]:
        """The same for the steps of a march."""
        return self.defaults(dim)[0]

    def candidates(self, problem: Any) -> Sequence[Settings]:
        presets = self.presets(problem)
        if SHAPE_KEYS & self.changes.keys() or self.network is not None:
            presets = presets[:1]
        chosen = [self.completed(self.resolved(values), problem.dim) for values in presets]
        for settings in chosen:
            self.check_size(settings, problem.dim)
        return chosen

    def presets(self, problem: Any) -> list[Any]:
        """The preset's settings for a problem; where there are several, a short trial decides."""
        return [self.paper_settings(problem)] if self.preset == "paper" else self.defaults(problem.dim)

    def check_size(self, settings: Settings, dim: int) -> None:
        """Refuse settings that this machine's memory cannot hold."""
        size = self.parameters(settings, dim)
        check_memory(self.memory(settings, dim), size, dense=settings.solver.kind == "dense")

    def counts(self, settings: Settings, dim: int) -> dict[str, int]:
        """Trained numbers of every network."""
        shape, counts = settings.network, {"u": self.parameters(settings, dim)}
        if settings.functional.dual == "network":
            counts["φ"] = parameters(dim, shape.width, shape.depth, True)
            counts["ψ"] = parameters(dim, shape.psi_width, shape.depth, False)
        return counts

    def memory(self, settings: Settings, dim: int) -> int:
        """Bytes of the largest intermediate results of a step."""
        samples, functional, size = settings.samples, settings.functional, self.parameters(settings, dim)
        if settings.solver.kind == "dense":
            # A Jacobian of one row a residual and 1 + d a boundary point, and a few copies of the matrix.
            traces = {"l2": 1, "h1": 1 + dim, "h1-sampled": 2}[functional.boundary_norm]
            rows = samples.interior * (1 if functional.dual in ("exact", "none") else dim) + traces * samples.boundary
            solver = 2 * rows * size + 4 * size * size
        else:
            # The linearised gradient of a network keeps about eight numbers per unit and point.
            solver = 8 * hidden_units(settings.network) * (samples.interior + samples.boundary)
        # The strong residual pushes d directions through every layer, two of which live at a time.
        strong = 2 * dim * settings.network.width * samples.interior if functional.pairing == "strong" else 0
        return (solver + strong) * BYTES[settings.precision]

    def resolved(self, preset: Any) -> Settings:
        """The settings of a preset with what the user changed, or an `InputError` if they do not fit together."""
        # Hand-over and correction compute in float64; who asks for float32 means all of it.
        own = {"late": False, "polish": False} if self.changes.get("precision") == "float32" else {}
        own |= {"late": False} if HANDOVER_KEYS & self.changes.keys() else {}
        settings = Settings.from_flat({**preset, **own, **self.changes})
        self.check(settings)
        return settings

    def completed(self, settings: Settings, dim: int) -> Settings:
        """The settings with what depends on the size of the network."""
        return settings

    def check(self, settings: Settings) -> None:
        """Refuse settings that this method cannot use."""
        dual = settings.functional.dual
        if dual not in self.duals:
            raise InputError(f"dual: '{dual}' is not allowed for {self.name}; give {' or '.join(self.duals)}.")
        if settings.network.activation == "prelu" and self.strong(settings):
            remedy = ", or set dual=network and pairing=weak" if len(self.duals) > 1 else ""
            raise InputError(
                "activation: 'prelu' has no second derivatives, which the strong residual needs; "
                f"give tanh, softplus or sine{remedy}."
            )
        if settings.steps.momentum > 0 and not self.remembers(settings):
            raise InputError(f"momentum: it is of no use for {self.name} with dual={dual}; leave it out.")
        if settings.stages.handover and dual != "tangent":
            raise InputError(f"late: it is of no use for {self.name} with dual={dual}; leave it out.")

    def strong(self, settings: Settings) -> bool:
        """Whether the strong residual is computed, for which u needs second derivatives."""
        return settings.functional.pairing == "strong"

    def remembers(self, settings: Settings) -> bool:
        """Whether a step may hold to the last one."""
        return False

    def parameters(self, settings: Settings, dim: int) -> int:
        """How many numbers of u are trained."""
        if self.network is not None:
            return parameter_count(self.network)
        shape = settings.network
        if shape.rank > 0:
            return shape.rank * dim * (shape.degree + 1)
        if shape.features != "none":
            return shape.width + 1
        return parameters(dim, shape.width, shape.depth, shape.last_bias)

    def start(self, problem: Any, settings: Settings) -> Any:
        """The function of a random key that gives the fields before training: u alone."""
        shape = settings.network
        if shape.rank > 0 and self.network is None:
            return lambda key: {"u": products(problem.representative(), shape.rank, shape.degree, key)}
        return lambda key: {"u": primal(problem.domain, shape, key, self.network)}

    def check_sampling(self, equation: PDE, settings: Settings) -> None:
        """Refuse a measure of the user's own where the weak form is integrated."""
        dual = settings.functional.dual
        weak = {"tangent": True, "network": settings.functional.pairing == "weak"}.get(dual, False)
        if equation.sampling is not None and (self.weak_form or weak):
            remedies = {"tangent": "dual=exact", "network": "pairing=strong"}
            remedy = "method=npdg and dual=exact" if self.weak_form and dual == "none" else remedies[dual]
            raise InputError(
                "sampling: a measure of your own is not allowed where the weak form is integrated, which asks for "
                f"uniform points; set {remedy}, or leave PDE(sampling=...) out."
            )

    def check_comparable(self, problem: Any) -> None:
        if problem.exact is None:
            raise InputError("exact: this equation has no exact solution to compare with; give PDE(exact=...).")

    def told_apart(self, history: list[Record], settings: Settings) -> list[Record]:
        """A record without a name for its stage is of the hand-over if it has no term of the tangent dual."""
        if not settings.stages.handover or any(record.stage for record in history):
            return history
        return [record._replace(stage="training" if "pairing" in record.terms else "handover") for record in history]

    def check_until(self, problem: Any, until: Until) -> None:
        if until.quantity in OF_MAPS:
            raise InputError(
                f"until: {until.quantity} is of transport maps; give rel_l2, rel_h1, residual or {PLATEAU}."
            )
        if until.quantity in ERRORS and problem.exact is None:
            raise InputError(
                f"until: {until.quantity} needs an exact solution, which this equation has not; "
                "give residual=1e-3, say."
            )
        if until.quantity not in ERRORS and not self.reports_residual:
            raise InputError(f"until: {self.name} reports no residual to wait for; give {' or '.join(ERRORS)}.")

    def stages(self, problem: Any, settings: Settings) -> Sequence[Stage]:
        return (Select(), Descend(), Review())

    def meter(self, problem: Any, settings: Settings) -> Evaluate:
        if problem.exact is None:
            return lambda state: {}
        meter = error_meter(problem, LIVE_POINTS)
        return lambda state: vars(meter(state.fields["u"]))

    def result(self, problem: Any, progress: Progress, seed: int) -> Any:
        return Solution.of(problem, self, progress, seed)

    def restored(self, problem: Any, settings: Settings, saved: Any) -> Any:
        return Solution.restored(problem, self, settings, saved)

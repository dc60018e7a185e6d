"""Methods for optimal transport: the saddle of a map and a potential, with a rule for each."""

import abc
from collections.abc import Sequence
from typing import Any, ClassVar

from npdg.errors import InputError
from npdg.methods.base import BYTES, Method, check_memory, hidden_units, parameters
from npdg.methods.building import direction
from npdg.methods.monge import monge_recipe, scale_of, search_for, units_of
from npdg.methods.settings import TransportSettings
from npdg.results.scores import live_scorer
from npdg.results.trained_map import TrainedMap
from npdg.results.transport_map import TransportMap
from npdg.rules.annealed import annealed
from npdg.rules.base import Rule
from npdg.rules.levenberg import levenberg
from npdg.rules.natural import natural, plain
from npdg.rules.optax import adam
from npdg.training.progress import Evaluate, Progress
from npdg.training.stages.base import Stage
from npdg.training.stages.descent import Descend
from npdg.training.stages.selection import Select
from npdg.training.step import Recipe
from npdg.training.stopping import OF_MAPS, Until

# What first-order methods need to play at all: plain samples of moderate number, the saddle as it is, no metric.
FIRST_ORDER: dict[str, Any] = {"n_interior": 2000, "refine": 0, "omega": 0.0, "settling": 0.0}


class TransportMethod(Method):
    """A method for the optimal map between two measures."""

    kind: ClassVar[str] = "transport"
    model = TransportSettings
    defaults: ClassVar[dict[str, Any]] = {}

    def __init__(self, *, preset: str = "default", network: Any = None, **settings: Any):
        if network is not None:
            raise InputError("network: a network of your own is not allowed for transport; set width and depth.")
        super().__init__(preset=preset, **settings)

    @abc.abstractmethod
    def rules(self, problem: Any, settings: TransportSettings) -> dict[str, Rule]:
        """How T and φ move."""

    def candidates(self, problem: Any) -> Sequence[TransportSettings]:
        preset = self.paper_settings(problem) if self.preset == "paper" else self.defaults
        settings = TransportSettings.from_flat({**preset, **self.changes})
        if settings.network.activation == "prelu" and settings.functional.refine:
            raise InputError(
                "activation: 'prelu' has no second derivatives, which refine needs; give softplus or refine=0."
            )
        if settings.solver.kind == "minres" and settings.steps.settling > 0:
            raise InputError(
                "solver: 'minres' is not allowed with settling > 0, whose solves are cg's; set settling=0."
            )
        size = self.counts(settings, problem.dim)["φ"]
        check_memory(self.memory(settings, problem.dim), size, dense=False)
        return [settings]

    def counts(self, settings: TransportSettings, dim: int) -> dict[str, int]:
        shape = settings.network
        potential = parameters(dim, shape.width, shape.depth, False)
        return {"T": potential + (dim - 1) * shape.width + dim, "φ": potential}

    def memory(self, settings: TransportSettings, dim: int) -> int:
        # The refinement linearises ∇φ at every point of the source: about sixteen numbers per unit and point.
        points = settings.samples.interior + settings.samples.metric
        return 16 * hidden_units(settings.network) * points * BYTES[settings.precision]

    def recipe(self, problem: Any, settings: TransportSettings) -> Recipe:
        return monge_recipe(problem, settings, self.rules(problem, settings))

    def check_until(self, problem: Any, until: Until) -> None:
        if until.quantity not in OF_MAPS:
            raise InputError(f"until: {until.quantity} is not of transport maps; give {', '.join(OF_MAPS)}.")
        if until.quantity in ("map_l2", "uvp") and problem.truth is None:
            raise InputError(f"until: {until.quantity} needs a true map, which is not known; give sliced_w2=0.05, say.")

    def stages(self, problem: Any, settings: TransportSettings) -> Sequence[Stage]:
        return (Select(), Descend())

    def meter(self, problem: Any, settings: TransportSettings) -> Evaluate:
        score = live_scorer(problem, densities=settings.functional.refine > 0)
        return lambda state: score(self.trained_map(problem, settings, state.fields))

    def trained_map(self, problem: Any, settings: TransportSettings, fields: Any) -> Any:
        """T and φ in the coordinates of the problem."""
        units, search = units_of(problem, settings), search_for(problem, settings, final=True)
        return TrainedMap(fields, units, search, settings.precision)

    def result(self, problem: Any, progress: Progress, seed: int) -> Any:
        return TransportMap.of(problem, self, progress, seed)

    def restored(self, problem: Any, settings: TransportSettings, saved: Any) -> Any:
        return TransportMap.restored(problem, self, settings, saved)


class TransportNPDG(TransportMethod):
    """Natural primal-dual hybrid gradients for T and φ."""

    name = "npdg"
    damped = True

    def rules(self, problem: Any, settings: TransportSettings) -> dict[str, Rule]:
        steps, solver = settings.steps, settings.solver
        solve = direction(solver)
        if steps.settling == 0:  # as published: steps of a constant size
            return {
                "phi": natural(steps.phi, solve, damping=solver.damping),
                "T": natural(steps.u, solve, damping=solver.damping),
            }
        return {
            "phi": annealed(
                direction(solver.model_copy(update={"rtol": solver.rtol / 10})),  # what φ is wrong by, T learns
                tau=steps.phi,
                settling=steps.settling,
                reach=steps.reach * scale_of(problem, settings),
                damping=solver.damping,
            ),
            "T": levenberg(steps.u, solve),
        }


class TransportFlat(TransportMethod):
    """The same saddle with plain gradients."""

    name = "npdg-flat"
    in_paper = False
    defaults: ClassVar[dict[str, Any]] = {**FIRST_ORDER, "tau_u": 1e-2, "tau_phi": 1e-2, "omega": 1.0}

    def rules(self, problem: Any, settings: TransportSettings) -> dict[str, Rule]:
        return {"phi": plain(settings.steps.phi), "T": plain(settings.steps.u)}


class TransportAdam(TransportMethod):
    """The same saddle with Adam."""

    name = "pd-adam"
    defaults: ClassVar[dict[str, Any]] = {**FIRST_ORDER, "tau_u": 1e-3, "tau_phi": 1e-3}

    def rules(self, problem: Any, settings: TransportSettings) -> dict[str, Rule]:
        return {"phi": adam(settings.steps.phi), "T": adam(settings.steps.u)}

"""The solution of an equation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from npdg.errors import InputError
from npdg.fields.base import Field
from npdg.fields.tangent import Linearised
from npdg.fields.wrappers import Gradient
from npdg.precision import precision
from npdg.problem.pde import PDE
from npdg.results.arrays import filled
from npdg.results.base import FieldResult, Moment, Saved, common, common_saved
from npdg.results.error import Errors, error_meter
from npdg.results.estimate import affordable, error_estimate
from npdg.training.records import Record
from npdg.training.stopping import StopReason
from npdg.training.tangent_space import as_float64

FINAL_POINTS = 100_000


@dataclass(kw_only=True)
class Solution(FieldResult):
    """A solved equation. Call it on points `(n, d)`; `.u` is the same as a one-point jax function."""

    u: Field
    steps: int = 0
    _estimates: dict[int, float] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, problem: PDE, method: Any, progress: Any, seed: int) -> Solution:
        """What a run has come to."""
        state = progress.state
        return cls(u=state.fields["u"], steps=int(state.step), **common(problem, method, progress, seed))

    @classmethod
    def restored(cls, problem: PDE, method: Any, settings: Any, saved: Saved) -> Solution:
        """Read back; its arrays are laid into a network built from its configuration."""
        with precision(settings.precision):
            template = method.start(problem, settings)(jax.random.key(0))["u"]
        wide = saved.result["precision"]
        with precision(wide):  # of the stage that came last
            if wide == "float64":
                template = as_float64(template)
            if spaces := sum(name.startswith(".coefficients") for name in saved.arrays):
                template = Linearised.at(template, (template,) * spaces)
            u = filled(template, saved.arrays, saved.path)
        history = [Record.from_row(row) for row in saved.rows]
        kept = common_saved(problem, method, settings, saved)
        return cls(u=u, steps=saved.result["steps"], history=history, **kept)

    def __call__(self, x: Any) -> Float[np.ndarray, "*n"]:
        """u at the points `x (n, d)`, or at one point `(d,)`."""
        return self.evaluate(self.u, x)

    def gradient(self, x: Any) -> Float[np.ndarray, "*n d"]:
        """∇u at the points `x (n, d)`, or at one point `(d,)`."""
        return self.evaluate(Gradient(self.u), x)

    @property
    def pde(self) -> PDE:
        return self.problem

    @property
    def polished(self) -> bool:
        """Whether u is a network with a linear correction in its tangent space."""
        return isinstance(self.u, Linearised)

    @property
    def precision(self) -> str:
        return str(jax.tree.leaves(self.u)[0].dtype)

    @property
    def training_steps(self) -> int:
        return self.steps

    def error_estimate(self, seed: int = 0) -> float | None:
        """The certificate: an estimate of the relative H¹-seminorm error that does not look at the exact solution.

        None where u has no second derivatives (PReLU), which the residual needs.
        """
        if self.settings.network.activation == "prelu":
            return None
        if seed not in self._estimates:
            with precision("float64" if affordable(self.u) else self.precision):
                self._estimates[seed] = error_estimate(self.pde, self.u, seed)
        return self._estimates[seed]

    def error(self, n: int = FINAL_POINTS, seed: int = 1) -> Errors:
        """Relative L² and H¹-seminorm errors against the exact solution, on n fresh points."""
        if self.pde.exact is None:
            raise InputError("error: this equation has no exact solution to compare with; give PDE(exact=...).")
        with precision(self.precision):
            return error_meter(self.pde, n, seed)(self.u)

    def errors(self) -> dict[str, float]:
        return vars(self.error())

    def measured(self) -> dict[str, Any]:
        errors = {} if self.pde.exact is None else self.errors()
        diverged = self.stop_reason is StopReason.DIVERGED
        return {
            **errors,
            "error_estimate": None if diverged else self.error_estimate(),
            "tried": list(self.tried),
            "polished": self.polished,
        }

    def headlines(self, figures: Mapping[str, Any]) -> list[str]:
        if figures["rel_l2"] is None or figures["rel_h1"] is None:
            return []
        return [f"relative L² error {figures['rel_l2']:.2e}, relative H¹ error {figures['rel_h1']:.2e}"]

    def final_fields(self) -> dict[str, Field]:
        return {"u": self.u}

    def arrays(self) -> Field:
        return self.u

    def moments(self) -> list[Moment]:
        return [Moment("slice", None, self.u, self.pde.exact)]

    def values(self, points: np.ndarray, time: float | None, gradient: bool) -> tuple[np.ndarray, list[str]]:
        if time is not None:
            raise InputError("time: this equation has no time; leave --time out.")
        return self.with_gradient(self.u, points, gradient)

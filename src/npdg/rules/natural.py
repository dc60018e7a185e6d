"""Steps of a constant size along a direction."""

from collections.abc import Callable

from npdg.fields.base import Field
from npdg.rules.base import Acceptance, Direction, Move, Prepared, Rule, View, combined, moved, report
from npdg.rules.directions import steepest


def constant(tau: float, damping: float = 0.0) -> Acceptance:
    """Every step is τ times the direction, with the same damping."""

    def step(view: View, prepare: Callable[[], Prepared], state: None) -> tuple[Field, None, Move]:
        solve = prepare().solve(view.gradient, damping)
        return moved(view, tau * solve.x), state, report(view.gradient, tau * solve.x, solve)

    return Acceptance(lambda field: None, step)


def natural(tau: float, direction: Direction, *, damping: float = 0.0) -> Rule:
    """θ ← θ ± τ (G + damping)⁻¹ ∇L: the natural gradient."""
    return combined(direction, constant(tau, damping))


def plain(tau: float) -> Rule:
    """θ ← θ ± τ ∇L: the flat gradient of the paper's ablation."""
    return combined(steepest, constant(tau))

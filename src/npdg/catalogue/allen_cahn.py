"""The Allen–Cahn equation (Sec. 5.4): ∂u/∂t = ε₀ Δu − W'(u)/ε₀ on [0, 2]^d, no flux through the boundary."""

from functools import cache
from typing import TYPE_CHECKING, Any

from npdg.catalogue.card import Card, Number
from npdg.methods.presets.paper import COMMON, rates

if TYPE_CHECKING:
    from jax import Array

    from npdg.problem.evolution import Evolution, ReferenceValues

SHARP = 0.05  # Below this ε₀ the reaction dominates; the paper changes metric, sampling and steps there.
INTERVALS = {1: 2400, 2: 200}  # Intervals of the reference's finer grid along an axis, by dimension.
COMPARED = {1: 400, 2: 50}  # Intervals of the coarser grid on which it is compared.


def build(dim: int, epsilon: float = 0.1, until: float | None = None, time_steps: int | None = None) -> "Evolution":
    """The equation from the paper's start, for any ε₀, final time and number of time steps."""
    from npdg.calculus import grad
    from npdg.geometry.box import Box
    from npdg.problem.conditions import Neumann
    from npdg.problem.evolution import Evolution
    from npdg.problem.pde import PDE

    until, time_steps = _schedule(dim, epsilon, until, time_steps)
    start = {1: _bump, 2: _disc}[dim]
    pde = PDE(
        Box(0.0, 2.0, dim=dim),
        flux=lambda u, x: epsilon * grad(u)(x),
        reaction=lambda u, x: (u(x) ** 3 - u(x)) / epsilon,
        boundary=Neumann(0.0),
        sampling=_refined() if dim == 1 and epsilon < SHARP else None,
    )

    def energy(u: Any, x: "Array") -> "Array":
        slope, value = grad(u)(x), u(x)
        return epsilon / 2 * (slope @ slope) + (1 - value**2) ** 2 / (4 * epsilon)

    return Evolution(
        pde,
        start,
        until,
        time_steps,
        energy=energy,
        reference=cache(lambda: _reference(dim, epsilon, until, time_steps, start)),
        name=f"allen-cahn-{dim}d",
        options={"epsilon": epsilon, "until": until, "time_steps": time_steps},
    )


def _schedule(dim: int, epsilon: float, until: float | None, steps: int | None) -> tuple[float, int]:
    """The paper's times for its values of ε₀, and the like for others."""
    if epsilon < SHARP:
        paper_until, paper_steps = 8 * epsilon, 80
    else:
        paper_until, paper_steps = (10 * epsilon, 10) if dim == 1 else (15 * epsilon, 15)
    return paper_until if until is None else until, paper_steps if steps is None else steps


def _bump(x: "Array") -> "Array":
    import jax.numpy as jnp

    wave = jnp.cos(jnp.pi * (x[0] - 1))
    return (1 - wave) * wave


def _disc(x: "Array") -> "Array":
    """−1 outside and 1 inside a disc of radius ½ around the centre, over a width of 0.1."""
    import jax.numpy as jnp

    # The norm has no derivative at the centre, where the disc is flat: a tiny number under the root gives it one.
    distance = jnp.sqrt(jnp.sum((x - 1) ** 2) + 1e-24)
    return jnp.tanh((0.5 - distance) / 0.1)


def _refined() -> Any:
    """½U[0,2] + ½U[0.8,1.2], where the paper's solution has its spike."""
    from npdg.geometry.box import Box
    from npdg.measures.mixture import Mixture

    return Mixture((Box(0.0, 2.0, dim=1).interior, Box(0.8, 1.2, dim=1).interior), (0.5, 0.5))


def _reference(dim: int, epsilon: float, until: float, steps: int, start: Any) -> "ReferenceValues":
    """Implicit Euler in time, like ours; second differences in space on two grids, extrapolated to fourth order."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from npdg.problem.evolution import ReferenceValues
    from npdg.reference.reaction_diffusion import march

    def on_grid(intervals: int) -> tuple["np.ndarray", list["np.ndarray"]]:
        axis = np.linspace(0, 2, intervals + 1)
        points = np.stack(np.meshgrid(*[axis] * dim, indexing="ij"), axis=-1)
        with jax.enable_x64(True):
            values = np.asarray(jax.vmap(start)(jnp.asarray(points.reshape(-1, dim)))).reshape(points.shape[:-1])
        grids = march(
            values,
            [axis[1]] * dim,
            diffusion=epsilon,
            reaction=lambda u: (u**3 - u) / epsilon,
            slope=lambda u: (3 * u**2 - 1) / epsilon,
            step=until / steps,
            steps=steps,
        )
        shown = (slice(None, None, intervals // COMPARED[dim]),) * dim
        return points[shown].reshape(-1, dim), [grid[shown].ravel() for grid in grids]

    points, fine = on_grid(INTERVALS[dim])
    _, coarse = on_grid(INTERVALS[dim] // 2)
    return ReferenceValues(points, [(4 * f - c) / 3 for f, c in zip(fine, coarse, strict=True)])


def paper(method: str, dim: int, epsilon: float = 0.1, **schedule: Any) -> dict[str, Any]:
    """Sec. 5.4 and its appendix: another metric and sampling where the reaction dominates."""
    sharp = epsilon < SHARP
    npdg = {
        **COMMON,
        **({"tau_u": 0.01, "tau_phi": 0.02, "tau_psi": 0.02} if sharp else {}),
        "width": 128,
        "psi_width": 64,
        "depth": 5,
        "n_interior": 2000,
        "n_boundary": 2 if dim == 1 else 80 * dim,
        # λ = 1 on ∂u/∂n, where the condition here is that of the flux ε₀ ∂u/∂n.
        "lam": epsilon**-2,
        "metric": "reaction" if sharp else "reaction-diffusion",
        "pairing": "strong" if sharp else "weak",
        "residual_weight": 0.0 if sharp else 1.0,
        "step_max": 1000,
        "patience": 500,
        "tolerance": 1e-4,
    }
    return npdg | ({"pd-adam": rates(1e-3, 1e-3)}.get(method, {}))


def formulas(
    dim: int, epsilon: float = 0.1, until: float | None = None, time_steps: int | None = None
) -> tuple[str, ...]:
    """The equation as it is set in a report."""
    until, time_steps = _schedule(dim, epsilon, until, time_steps)
    box = rf"(0,2)^{{{dim}}}" if dim > 1 else "(0,2)"
    start = {1: r"(1 - \cos π(x-1)) \, \cos π(x-1)", 2: r"\tanh(10 \, (\frac{1}{2} - |x - (1,1)|))"}[dim]
    change = r"\frac{∂u}{∂t} = ε Δu - \frac{u^3 - u}{ε}"
    boundary = rf"\frac{{∂u}}{{∂n}} = 0 \quad \text{{on }} ∂{box}"
    return (
        rf"{change} \quad \text{{in }} {box}, \quad {boundary}",
        rf"u(x, 0) = {start}",
        rf"ε = {epsilon:g}, \quad t ≤ {until:g} \quad \text{{in }} {time_steps} \text{{ steps}}",
    )


def _card(dim: int) -> Card:
    start = {1: "(1 − cos π(x−1)) cos π(x−1)", 2: "tanh((½ − |x − (1,1)|)/0.1)"}[dim]
    return Card(
        name=f"allen-cahn-{dim}d",
        title=f"the Allen–Cahn equation in {('one', 'two')[dim - 1]} dimension{'s' * (dim - 1)}, marched in time",
        equation=f"∂u/∂t = ε₀ Δu − (u³ − u)/ε₀ in (0,2)^{dim},  ∂u/∂n = 0 on the boundary,  u(·, 0) = {start}",
        default_dim=dim,
        make=build,
        paper=paper,
        options={
            "epsilon": Number(0.1),
            "until": Number(None),
            "time_steps": Number(None, whole=True),
        },
        dims=lambda d: d == dim,
        dims_text=str(dim),
        kind="evolution",
        formulas=formulas,
    )


CARDS = (_card(1), _card(2))

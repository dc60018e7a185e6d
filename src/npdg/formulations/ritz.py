"""Deep Ritz: u minimises an energy whose derivative is the equation, with the boundary values as a penalty.

Nobody has to write the energy down. If the equation A(u) = f is the derivative of any energy, it is that of

    W(u) = ∫₀¹ ⟨A(s u), u⟩ ds − ⟨f, u⟩    (Vainberg's potential),

a density at every point from flux, reaction and source alone. Whether it is one is checked: the derivative of W at
random functions must be the weak form.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from npdg.calculus import Scalar, grad
from npdg.compilation import jit
from npdg.errors import InputError
from npdg.formulations.equation import equation_saddle, square
from npdg.formulations.metrics import random_wave
from npdg.formulations.traces import l2_trace
from npdg.measures.points import Points
from npdg.problem.pde import PDE
from npdg.saddle.saddle import Fields, Integral, Player, Residual, Saddle

Density = Callable[[Scalar, Array], Array]
CHECKED = 8  # points and pairs of random functions at which a density is compared with the weak form


def ritz(pde: PDE, nodes: int, *, lam: float = 1e4, measured: bool = False) -> Saddle:
    """Lower a PDE that has an energy to its minimisation by u, with the Gauss rule that `energy_nodes` found.

    With `measured`, steps also report the strong residual, which nothing descends.
    """
    energy = potential(pde, nodes)
    residual = Integral("residual", "interior", lambda f, p: pde.residual(f["u"], p.x) ** 2, 0.5, seen_by=())
    return equation_saddle(
        pde,
        players=(Player("u", -1, ()),),
        integrals=(
            Integral("energy", "interior", lambda f, p: energy(f["u"], p.x)),
            _boundary(pde, nodes, lam),
            *((residual,) if measured else ()),
        ),
        residual=Residual("residual", 2.0) if measured else None,
    )


def _boundary(pde: PDE, nodes: int, lam: float) -> Integral:
    """Boundary values as a penalty; any other condition is the energy's own."""
    condition = pde.boundary
    if condition.essential:
        missed = lambda f, p: square(pde.mismatch(f["u"], p, l2_trace))
        return Integral("boundary", "boundary", missed, lam)

    def work(f: Fields, p: Points) -> Array:
        parts = [weight * condition.work(_scaled(s, f["u"]), f["u"], p) for s, weight in _rule(nodes)]
        return jnp.sum(jnp.stack(parts))

    return Integral("boundary", "boundary", work, pde.domain.surface_ratio)


def energy_nodes(pde: PDE) -> int:
    """How many nodes integrate the energy of an equation, or an `InputError` if it has none.

    One node integrates that of a linear equation exactly, eight any polynomial of degree 15.
    """
    for nodes in (1, 8):
        if _is_energy(pde, potential(pde, nodes)):
            return nodes
    raise InputError(
        f"method: 'deep-ritz' is not allowed for {pde.name}, which is not the derivative of an energy; "
        "give npdg, pinn or wan."
    )


def potential(pde: PDE, nodes: int) -> Density:
    """Vainberg's potential with a Gauss rule of some nodes."""

    def at(s: float, u: Scalar, x: Array) -> Array:
        value = jnp.vdot(pde.flux(_scaled(s, u), x), grad(u)(x))
        return value if pde.reaction is None else value + pde.reaction(_scaled(s, u), x) * u(x)

    return lambda u, x: sum((w * at(s, u, x) for s, w in _rule(nodes)), -pde.source(x) * u(x))


def _scaled(s: float, u: Scalar) -> Scalar:
    return lambda y: s * u(y)


def _rule(nodes: int) -> tuple[tuple[float, float], ...]:
    """Points and weights of Gauss's rule on [0, 1]."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    return tuple((float((1 + p) / 2), float(w / 2)) for p, w in zip(points, weights, strict=True))


def _is_energy(pde: PDE, energy: Density) -> bool:
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(0), 2 * CHECKED)
        points = jnp.asarray(pde.domain.sample_interior(jax.random.key(1), CHECKED).x, jnp.float64)

        def derived(x: Array, one: Array, two: Array) -> Array:
            u, phi = random_wave(one, pde.dim), random_wave(two, pde.dim)
            weak = pde.weak(u, phi, x)
            slope = jax.grad(lambda s: energy(lambda y: u(y) + s * phi(y), x))(0.0)
            return abs(slope - weak) <= 1e-6 * (1 + abs(weak))

        return bool(jnp.all(jit(jax.vmap(derived))(points, keys[:CHECKED], keys[CHECKED:])))

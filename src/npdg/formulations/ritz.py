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
from npdg.errors import InputError
from npdg.pde import PDE, Neumann
from npdg.saddle import Integral, Player, Saddle

Density = Callable[[Scalar, Array], Array]
CHECKED = 8  # points and pairs of random functions at which a density is compared with the weak form


def ritz(pde: PDE, *, lam: float = 1e4) -> Saddle:
    """Lower a PDE that has an energy to its minimisation by u."""
    energy = density(pde)
    return Saddle(
        measures={"interior": pde.interior, "boundary": pde.domain.boundary},
        players=(Player("u", -1, ()),),
        integrals=(
            Integral("energy", "interior", lambda f, p: energy(f["u"], p.x)),
            _boundary(pde, lam),
        ),
    )


def _boundary(pde: PDE, lam: float) -> Integral:
    """Boundary values as a penalty; a given flux is the energy's own condition."""
    if isinstance(pde.boundary, Neumann):
        work = lambda f, p: -pde.boundary.data(p.x) * f["u"](p.x)
        return Integral("boundary", "boundary", work, pde.domain.surface_ratio)
    return Integral("boundary", "boundary", lambda f, p: (f["u"](p.x) - pde.boundary.data(p.x)) ** 2, lam)


def density(pde: PDE) -> Density:
    """The energy density of an equation, or an `InputError` if it has none."""
    for nodes in (1, 8):  # one node integrates a linear equation exactly, eight any polynomial of degree 15
        candidate = potential(pde, nodes)
        if _is_energy(pde, candidate):
            return candidate
    raise InputError(
        f"method: 'deep-ritz' is not allowed for {pde.name}, which is not the derivative of an energy; "
        "give npdg, pinn or wan."
    )


def potential(pde: PDE, nodes: int) -> Density:
    """Vainberg's potential with a Gauss rule of some nodes."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    rule = tuple((float((1 + p) / 2), float(w / 2)) for p, w in zip(points, weights, strict=True))

    def at(s: float, u: Scalar, x: Array) -> Array:
        scaled = lambda y: s * u(y)
        value = jnp.vdot(pde.flux(scaled, x), grad(u)(x))
        return value if pde.reaction is None else value + pde.reaction(scaled, x) * u(x)

    return lambda u, x: sum((w * at(s, u, x) for s, w in rule), -pde.source(x) * u(x))


def _is_energy(pde: PDE, energy: Density) -> bool:
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(0), 2 * CHECKED)
        points = jnp.asarray(pde.domain.sample_interior(jax.random.key(1), CHECKED).x, jnp.float64)

        def wave(key: Array) -> Scalar:
            frequencies, phase = jax.random.normal(key, (pde.dim,)) / pde.dim**0.5, jax.random.normal(key)
            return lambda x: jnp.sin(jnp.vdot(frequencies, x) + phase)

        for x, one, two in zip(points, keys[:CHECKED], keys[CHECKED:], strict=True):
            u, phi = wave(one), wave(two)
            weak = pde.weak(u, phi, x)
            slope = jax.grad(lambda s, u=u, phi=phi, x=x: energy(lambda y: u(y) + s * phi(y), x))(0.0)
            if not abs(slope - weak) <= 1e-6 * (1 + abs(weak)):
                return False
    return True

"""Families of equations with random parameters: the kinds that users bring, none of which the default was made for.

Each is a function of a random generator that gives an equation with its exact solution. Draws 0 to 9 are for tuning,
those from 100 on for reporting.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

import npdg
from npdg import div, grad
from npdg.calculus import Scalar

Flux = Callable[[Scalar, jnp.ndarray], jnp.ndarray]
Reaction = Callable[[Scalar, jnp.ndarray], jnp.ndarray]
Family = Callable[[np.random.Generator], npdg.PDE]
FAMILIES: dict[str, Family] = {}
PI = np.pi


def family(name: str) -> Callable[[Family], Family]:
    """Register a family under its name."""

    def register(build: Family) -> Family:
        FAMILIES[name] = build
        return build

    return register


def manufactured(
    dim: int, exact: Scalar, flux: Flux = lambda u, x: grad(u)(x), reaction: Reaction | None = None
) -> npdg.PDE:
    """−div flux(u) + reaction(u) = f on the unit cube, f and the boundary values being those of a given solution."""
    right = lambda x: -div(lambda y: flux(exact, y))(x) + (0.0 if reaction is None else reaction(exact, x))
    domain = npdg.Box(0.0, 1.0, dim=dim)
    return npdg.PDE(domain, flux, right, reaction, npdg.Dirichlet(exact), exact)


def _waves(random: np.random.Generator, count: int, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Wave numbers and phases."""
    return random.uniform(low, high, count), random.uniform(0, 2 * PI, count)


def _product(random: np.random.Generator, dim: int, high: float) -> Scalar:
    numbers, phases = _waves(random, dim, 1.0, high)
    return lambda x: jnp.prod(jnp.sin(jnp.asarray(numbers) * x + jnp.asarray(phases)))


def _centre(random: np.random.Generator, dim: int) -> np.ndarray:
    return random.uniform(0.3, 0.7, dim)


def _peak(random: np.random.Generator, dim: int, width: float) -> Scalar:
    centre = _centre(random, dim)
    return lambda x: jnp.exp(-jnp.sum((x - jnp.asarray(centre)) ** 2) / (2 * width**2))


def _oscillating(random: np.random.Generator) -> npdg.PDE:
    scales, phases = _waves(random, 1, 20, 60)
    exact = lambda x: jnp.exp(x[0]) * jnp.cos(4 * x[0])
    return manufactured(1, exact, lambda u, x: (1.5 + jnp.sin(scales[0] * x[0] + phases[0])) * grad(u)(x))


FAMILIES["oscillating coefficient 1-D"] = _oscillating


@family("two scales 1-D")
def two_scales(random: np.random.Generator) -> npdg.PDE:
    slow, fast = random.uniform(1, 8), random.uniform(60, 200)
    return manufactured(1, lambda x: jnp.sin(slow * x[0] + 0.5) + 0.1 * jnp.sin(fast * x[0]))


@family("three scales 1-D")
def three_scales(random: np.random.Generator) -> npdg.PDE:
    slow, middle, fast = random.uniform(1, 8), random.uniform(20, 60), random.uniform(200, 100 * PI)
    return manufactured(
        1, lambda x: jnp.cos(slow * x[0]) + 0.2 * jnp.sin(middle * x[0]) + 0.02 * jnp.sin(fast * x[0] + 1)
    )


@family("boundary layer 1-D")
def boundary_layer(random: np.random.Generator) -> npdg.PDE:
    width = 10 ** random.uniform(-3, -1.5)
    exact = lambda x: 1 - jnp.exp(-x[0] / width) + x[0] ** 2
    return manufactured(1, exact, lambda u, x: width**2 * grad(u)(x), lambda u, x: u(x))


@family("interior layer 1-D")
def interior_layer(random: np.random.Generator) -> npdg.PDE:
    steep, place = random.uniform(20, 100), random.uniform(0.3, 0.7)
    return manufactured(1, lambda x: jnp.tanh(steep * (x[0] - place)))


@family("Helmholtz 1-D")
def helmholtz_line(random: np.random.Generator) -> npdg.PDE:
    number = random.uniform(10, 40)
    return manufactured(1, lambda x: jnp.sin(number * x[0]) + x[0], reaction=lambda u, x: -((1.1 * number) ** 2) * u(x))


@family("exponential reaction 1-D")
def exponential_line(random: np.random.Generator) -> npdg.PDE:
    number, size = random.uniform(2, 8), random.uniform(0.5, 2)
    return manufactured(1, lambda x: size * jnp.sin(number * x[0]), reaction=lambda u, x: jnp.exp(u(x)))


@family("convection 1-D")
def convection_line(random: np.random.Generator) -> npdg.PDE:
    width = 10 ** random.uniform(-2, -1)
    exact = lambda x: x[0] - jnp.exp((x[0] - 1) / width)
    return manufactured(1, exact, lambda u, x: width * grad(u)(x) - u(x)[None])


@family("product of waves 2-D")
def product_plane(random: np.random.Generator) -> npdg.PDE:
    return manufactured(2, _product(random, 2, 20.0))


@family("four products 2-D")
def four_products(random: np.random.Generator) -> npdg.PDE:
    numbers = jnp.asarray(random.choice(np.arange(3, 17), 4, replace=False) * PI)
    return manufactured(2, lambda x: jnp.mean(jnp.sin(numbers * x[0]) * jnp.sin(numbers * x[1])))


@family("Helmholtz 2-D")
def helmholtz_plane(random: np.random.Generator) -> npdg.PDE:
    slow, fast = random.uniform(1, 4), random.uniform(8, 16)
    exact = lambda x: jnp.sin(slow * x[0] + 0.3) * jnp.sin(fast * x[1])
    return manufactured(2, exact, reaction=lambda u, x: -((0.9 * fast) ** 2) * u(x))


@family("peak 2-D")
def peak_plane(random: np.random.Generator) -> npdg.PDE:
    return manufactured(2, _peak(random, 2, 1 / 30))


@family("constant source 2-D")
def constant_source(random: np.random.Generator) -> npdg.PDE:
    """−Δu = s on the square, whose solution has r² log r in the corners, by its series."""
    size = random.uniform(0.5, 5)

    def exact(x: jnp.ndarray) -> jnp.ndarray:
        t = PI * (2 * jnp.arange(100) + 1)
        away = jnp.abs(x[1] - 0.5)
        fading = jnp.exp(t * (away - 0.5)) * (1 + jnp.exp(-2 * t * away)) / (1 + jnp.exp(-t))
        return size * (x[0] * (1 - x[0]) / 2 - jnp.sum(4 / t**3 * jnp.sin(t * x[0]) * fading))

    box = npdg.Box(0.0, 1.0, dim=2)
    return npdg.PDE(box, lambda u, x: grad(u)(x), lambda x: jnp.full((), size, x.dtype), exact=exact)


@family("singular corner 2-D")
def singular_corner(random: np.random.Generator) -> npdg.PDE:
    power = random.uniform(1.2, 1.9)

    def exact(x: jnp.ndarray) -> jnp.ndarray:
        radius, angle = jnp.sqrt(jnp.sum(x**2) + 1e-30), jnp.arctan2(x[1], x[0])
        return radius**power * jnp.sin(power * angle)

    return manufactured(2, exact)


@family("rough source 2-D")
def rough_source(random: np.random.Generator) -> npdg.PDE:
    place = _centre(random, 2)
    return manufactured(2, lambda x: jnp.sum(jnp.abs(x - jnp.asarray(place)) ** 2.5))


@family("anisotropy 1e4 2-D")
def anisotropy(random: np.random.Generator) -> npdg.PDE:
    angle, numbers = random.uniform(0, PI), random.uniform(1, 6, 2)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    tensor = jnp.asarray(turn @ np.diag([1.0, 1e-4]) @ turn.T)
    return manufactured(
        2, lambda x: jnp.sin(numbers[0] * x[0]) * jnp.cos(numbers[1] * x[1]), lambda u, x: tensor @ grad(u)(x)
    )


@family("nonlinear diffusion 2-D")
def nonlinear_diffusion(random: np.random.Generator) -> npdg.PDE:
    return manufactured(2, _product(random, 2, 5.0), lambda u, x: (1 + u(x) ** 2) * grad(u)(x))


@family("stiff reaction 2-D")
def stiff_reaction(random: np.random.Generator) -> npdg.PDE:
    rate = 10 ** random.uniform(1, 3)
    exact = _product(random, 2, 6.0)
    return manufactured(2, exact, reaction=lambda u, x: rate * (u(x) ** 3 - u(x)))


@family("exponential reaction 2-D")
def exponential_plane(random: np.random.Generator) -> npdg.PDE:
    return manufactured(2, _product(random, 2, 6.0), reaction=lambda u, x: jnp.exp(u(x)))


@family("p-Laplace 2-D")
def p_laplace(random: np.random.Generator) -> npdg.PDE:
    power, slope = random.uniform(2.5, 4), random.uniform(0.5, 2, 2)
    exact = lambda x: jnp.vdot(jnp.asarray(slope), x) + 0.2 * jnp.sin(2 * x[0] + x[1])
    return manufactured(2, exact, lambda u, x: jnp.sum(grad(u)(x) ** 2) ** (power / 2 - 1) * grad(u)(x))


@family("product of waves 3-D")
def product_space(random: np.random.Generator) -> npdg.PDE:
    return manufactured(3, _product(random, 3, 3 * PI))


@family("peak 3-D")
def peak_space(random: np.random.Generator) -> npdg.PDE:
    return manufactured(3, _peak(random, 3, 1 / 10))


@family("cubic reaction 3-D")
def cubic_space(random: np.random.Generator) -> npdg.PDE:
    return manufactured(3, _product(random, 3, 5.0), reaction=lambda u, x: u(x) ** 3)


@family("layers 3-D")
def layers_space(random: np.random.Generator) -> npdg.PDE:
    steep, direction = random.uniform(5, 20), random.normal(size=3)
    direction /= np.linalg.norm(direction)
    return manufactured(3, lambda x: jnp.tanh(steep * jnp.vdot(jnp.asarray(direction), x - 0.5)))


@family("product of waves 5-D")
def product_five(random: np.random.Generator) -> npdg.PDE:
    return manufactured(5, _product(random, 5, 2 * PI))


@family("peak 5-D")
def peak_five(random: np.random.Generator) -> npdg.PDE:
    return manufactured(5, _peak(random, 5, 1 / 5))


@family("exponential reaction 5-D")
def exponential_five(random: np.random.Generator) -> npdg.PDE:
    weights = random.uniform(0.3, 1.5, 5)
    return manufactured(5, lambda x: jnp.cos(jnp.vdot(jnp.asarray(weights), x)), reaction=lambda u, x: jnp.exp(u(x)))


def _smooth(random: np.random.Generator, dim: int) -> Scalar:
    """A smooth function of many coordinates that is no sum of functions of each."""
    first, second = (random.normal(size=dim) for _ in range(2))
    centre = _centre(random, dim)
    a, b, c = jnp.asarray(first / dim**0.5), jnp.asarray(second / dim**0.5), jnp.asarray(centre)
    return lambda x: jnp.exp(-jnp.mean((x - c) ** 2)) * jnp.sin(2 * jnp.vdot(a, x)) + jnp.cos(2 * jnp.vdot(b, x - c))


def _many(dim: int, reaction: Reaction | None = None) -> Family:
    return lambda random: manufactured(dim, _smooth(random, dim), reaction=reaction)


FAMILIES["smooth 10-D"] = _many(10)
FAMILIES["smooth 20-D"] = _many(20)
FAMILIES["smooth 50-D"] = _many(50)
FAMILIES["cubic reaction 20-D"] = _many(20, lambda u, x: u(x) ** 3)
FAMILIES["cubic reaction 100-D"] = _many(100, lambda u, x: u(x) ** 3)


def scaled(pde: npdg.PDE, size: float, length: float) -> npdg.PDE:
    """The same equation for size·u in coordinates length·x."""
    assert pde.exact is not None
    exact, lower, upper = pde.exact, *pde.domain.bounds()
    # u(X) = size·v(X/length): what the flux and the reaction are given is v of the unscaled point.
    inner = lambda u: lambda x: u(length * x) / size
    return npdg.PDE(
        npdg.Box(tuple(length * lower), tuple(length * upper)),
        lambda u, x: size / length * pde.flux(inner(u), x / length),
        lambda x: size / length**2 * pde.source(x / length),
        None if pde.reaction is None else _scaled_reaction(pde.reaction, inner, size, length),
        npdg.Dirichlet(lambda x: size * exact(x / length)),
        lambda x: size * exact(x / length),
    )


def _scaled_reaction(reaction: Reaction, inner: Callable, size: float, length: float) -> Reaction:
    return lambda u, x: size / length**2 * reaction(inner(u), x / length)

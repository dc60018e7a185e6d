"""A small equation with a known solution, and a small network, for tests of what works on them."""

from typing import Any

import jax
import jax.numpy as jnp

import npdg
from npdg.fields.mlp import MLP, FirstLayer, Sine


def equation(frequency: float = 2.0) -> npdg.PDE:
    """Poisson's equation on the unit square."""
    exact = lambda x: jnp.sin(frequency * x[0]) * jnp.exp(x[1])
    return npdg.PDE(
        npdg.Box(0.0, 1.0, dim=2),
        flux=lambda u, x: npdg.grad(u)(x),
        source=lambda x: (frequency**2 - 1) * exact(x),
        boundary=npdg.Dirichlet(exact),
        exact=exact,
    )


def net(key: int = 0, **keywords: Any) -> MLP:
    """A network of waves and squares."""
    return MLP(2, 12, 2, activation=Sine(), first=FirstLayer(squares=True), key=jax.random.key(key), **keywords)

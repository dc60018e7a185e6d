"""What all formulations of an equation share: its measures, and the functions of a point that it was given."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
from jax import Array

from npdg.measures.points import Measure
from npdg.problem.pde import PDE
from npdg.saddle.saddle import Integral, Player, Saddle


def equation_saddle(
    pde: PDE,
    players: tuple[Player, ...],
    integrals: tuple[Integral, ...],
    measures: Mapping[str, Measure] | None = None,
    **how: Any,
) -> Saddle:
    """A saddle on the interior and the boundary of the equation's domain, and on further measures.

    `how` is what else a `Saddle` has: how its integrals combine, and which of them is the residual.
    """
    return Saddle(
        measures={"interior": pde.interior, "boundary": pde.domain.boundary, **(measures or {})},
        players=players,
        integrals=integrals,
        given={
            "the source": ("interior", lambda fields, point: pde.source(point.x)),
            "the boundary's data": ("boundary", lambda fields, point: pde.boundary.data(point.x)),
        },
        **how,
    )


def square(v: Array) -> Array:
    """|v|²."""
    return jnp.vdot(v, v)

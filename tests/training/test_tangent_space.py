"""The linear correction of u in tangent spaces: which they are, and where its points are."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small import equation, net

import npdg
from npdg.fields.base import parameter_count, split
from npdg.fields.mlp import MLP
from npdg.fields.tangent import Linearised
from npdg.formulations.least_squares import least_squares
from npdg.measures.points import Points
from npdg.results.error import error_meter
from npdg.training import tangent_space
from npdg.training.step import initial, step
from npdg.training.tangent_space import correction, doubled, next_space, posterior_draws


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_a_second_tangent_space_has_what_is_of_second_order_in_the_correction():
    """A solution that is the same network at other parameters, which its tangent space does not hold."""
    u = net()
    vector, build = split(u)
    direction = jnp.cos(1.0 + 3.0 * jnp.arange(vector.size))
    exact = build(vector + 0.3 * direction / jnp.linalg.norm(direction))
    pde = replace(
        equation(),
        source=lambda x: -jnp.trace(jax.hessian(exact)(x)),
        boundary=npdg.Dirichlet(exact),
        exact=exact,
    )
    meter = error_meter(pde, 1000)

    def solved(start: Linearised) -> Linearised:
        recipe = correction(pde, start)
        return jax.jit(lambda state: step(recipe, state)[0])(initial(recipe, 0)).fields["u"]

    first = solved(Linearised.at(u, (u,)))
    start = doubled(first)
    x = jnp.array([0.3, 0.8])
    assert start(x) == first(x)  # it begins where the first ended
    assert len(start.nets) == 2
    assert meter(solved(start)).rel_h1 < 0.05 * meter(first).rel_h1
    third = next_space(start)
    ends = [split(frozen.field)[0] for frozen in start.nets]
    np.testing.assert_allclose(split(third)[0], (ends[0] + ends[1]) / 2)


class Bump(eqx.Module):
    """A bump in a corner that holds 1/400 of the square and 1/40 of its boundary."""

    height: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.height * jnp.exp(-((jnp.linalg.norm(x) / 0.02) ** 2))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("reason", ["residual", "doubt"])
def test_the_correction_looks_where_the_field_is_wrong_and_where_it_is_in_doubt(reason):
    exact = lambda x: jnp.sin(x[0]) * x[1]
    pde = npdg.PDE(
        npdg.Box(0.0, 1.0, dim=2),
        flux=lambda u, x: npdg.grad(u)(x),
        source=exact,
        boundary=npdg.Dirichlet(exact),
        exact=exact,
    )
    bump = Bump(jnp.ones(()))
    if reason == "residual":
        start, draws, worst = Linearised.at(lambda x: exact(x) + bump(x), (bump,)), None, tangent_space.WORST_POINTS
    else:
        start, draws, worst = Linearised.at(exact, (bump,)), jnp.array([[1.0], [0.1]]), tangent_space.RARE_POINTS
    saddle = tangent_space._importance_sampled(least_squares(pde), start, worst, draws)
    samples = jax.jit(lambda key: saddle.sample(key, {"interior": 4000, "boundary": 4000}))(jax.random.key(0))

    def inside(points: Points) -> float:
        return float(np.mean(np.max(np.asarray(points.x), axis=1) < 0.05))

    assert samples["interior"].x.shape == samples["boundary"].x.shape == (4000, 2)
    assert inside(samples["interior"]) > 4 / 400
    assert inside(samples["boundary"]) > 3 / 40
    if reason == "residual":
        assert np.mean(np.asarray(samples["interior"].x)) == pytest.approx(0.5, abs=0.12)  # most are everywhere
    uniform = 1 - worst[0] - (tangent_space.UNDETERMINED_POINTS if reason == "doubt" else 0)
    assert np.mean(np.asarray(samples["interior"].x)[:, 0] > 0.5) > 0.9 * uniform / 2  # the others are everywhere


@pytest.mark.usefixtures("x64")
def test_posterior_draws_are_distributed_as_the_rows_leave_them():
    """Their covariance is (JᵀJ)⁻¹."""
    rows = np.asarray(jax.random.normal(jax.random.key(0), (30, 3))) * [1.0, 0.1, 10.0]
    factor = jnp.linalg.qr(jnp.asarray(rows), mode="r")
    draws = np.concatenate([posterior_draws(factor, key) for key in jax.random.split(jax.random.key(1), 2000)])
    truth = np.linalg.inv(rows.T @ rows)
    size = np.sqrt(np.diag(truth))
    np.testing.assert_allclose(
        draws.T @ draws / len(draws) / np.outer(size, size), truth / np.outer(size, size), atol=0.1
    )


@pytest.mark.usefixtures("x64")
def test_a_correction_has_more_rows_than_parameters_whatever_the_boundary():
    large = MLP(2, 2000, 2, key=jax.random.key(0))  # as many points as the memory holds are fewer than its parameters
    zero = lambda x: 0.0 * x[0]
    for boundary, traces in ((npdg.Dirichlet(zero), 2), (npdg.Neumann(zero), 1)):
        sizes = correction(replace(equation(), boundary=boundary), Linearised.at(large, (large,))).sizes
        assert sizes["interior"] + traces * sizes["boundary"] > parameter_count(large)

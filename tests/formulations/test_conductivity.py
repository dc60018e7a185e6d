"""The conductivity of an equation, and metrics that are weighed by it, against dense algebra."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import npdg
from npdg import grad
from npdg.fields.base import split
from npdg.fields.mlp import MLP
from npdg.fields.tangent import Tangent
from npdg.formulations.metrics import least_conductivity, metric, structure_of
from npdg.methods.registry import make_method
from npdg.problem.pde import PDE
from npdg.saddle.gram import gram

pytestmark = pytest.mark.usefixtures("x64")

KAPPA = lambda x: 1 + x[0] ** 2
U = lambda x: jnp.sin(x[0]) * jnp.exp(x[1]) + x[2] ** 2
V = lambda x: jnp.cos(x[0] * x[1]) + x[2] * x[0]


def scalar(x: jax.Array) -> jax.Array:
    return KAPPA(x) * jnp.eye(3)


def diagonal(x: jax.Array) -> jax.Array:
    return jnp.diag(jnp.stack([KAPPA(x), 3.0 + x[1], 0.2 + 0 * x[0]]))


def full(x: jax.Array) -> jax.Array:
    """Symmetric and positive definite, with axes that turn from point to point."""
    a, b = jnp.cos(x[0] + 2 * x[1]), jnp.sin(x[0] + 2 * x[1])
    turn = jnp.array([[a, -b, 0.0], [b, a, 0.0], [0.0, 0.0, 1.0]])
    other = jnp.array([[1.0, 0.0, 0.0], [0.0, 0.6, -0.8], [0.0, 0.8, 0.6]])
    axes = turn @ other
    return axes @ jnp.diag(jnp.stack([0.1 + x[2] ** 2, KAPPA(x), 4.0 + x[1]])) @ axes.T


def oblique(x: jax.Array) -> jax.Array:
    """The same with a part that is not symmetric, which adds nothing to an energy."""
    return full(x) + x[0] * jnp.array([[0.0, 1.0, -2.0], [-1.0, 0.0, 0.5], [2.0, -0.5, 0.0]])


TENSORS = {"scalar": scalar, "diagonal": diagonal, "full": full}


def equation(tensor) -> PDE:
    return PDE(npdg.Box(0.0, 1.0, dim=3), flux=lambda u, x: tensor(x) @ grad(u)(x))


def points(count: int = 4) -> jax.Array:
    return jax.random.uniform(jax.random.key(0), (count, 3))


def test_conductivity_is_read_off_the_flux():
    """A number times the identity, of which the number alone can be asked for."""
    flux = lambda u, x: KAPPA(x) * grad(u)(x)
    pde = PDE(npdg.Box(0.0, 1.0, dim=3), flux, lambda x: jnp.zeros(()), lambda u, x: u(x) ** 3)
    for x in points():
        np.testing.assert_allclose(pde.conductivity(U, x), KAPPA(x) * np.eye(3), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(pde.first_conductivity(U, x), KAPPA(x), rtol=1e-12)


@pytest.mark.parametrize("tensor", [diagonal, full, oblique])
def test_conductivity_is_the_whole_tensor(tensor):
    pde = equation(tensor)
    for x in points():
        np.testing.assert_allclose(pde.conductivity(U, x), tensor(x), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(pde.first_conductivity(U, x), tensor(x)[0, 0], rtol=1e-12)


def test_conductivity_of_a_nonlinear_flux_is_its_derivative():
    pde = PDE(npdg.Box(0.0, 1.0, dim=3), flux=lambda u, x: (1 + jnp.sum(grad(u)(x) ** 2)) * grad(u)(x))
    for x in points():
        slope = np.asarray(grad(U)(x))
        expected = (1 + slope @ slope) * np.eye(3) + 2 * np.outer(slope, slope)
        np.testing.assert_allclose(pde.conductivity(U, x), expected, rtol=1e-12)
    assert structure_of(pde) == "full"


@pytest.mark.parametrize("structure", list(TENSORS))
def test_the_structure_of_a_conductivity_is_told(structure):
    assert structure_of(equation(TENSORS[structure])) == structure


def test_on_a_line_every_conductivity_is_a_number():
    assert structure_of(PDE(npdg.Box(0.0, 1.0, dim=1), flux=lambda u, x: KAPPA(x) * grad(u)(x))) == "scalar"


@pytest.mark.parametrize("tensor", [scalar, diagonal, full, oblique])
def test_energy_is_the_square_of_a_gradient_in_the_conductivity(tensor):
    pde = equation(tensor)
    energy = metric("energy", structure_of(pde))
    for x in points():
        slope, matrix = np.asarray(grad(V)(x)), np.asarray(tensor(x))
        for measured in (energy.primal, energy.dual):
            root = np.asarray(measured(pde, U, V, x))
            assert root.dtype == np.float64
            np.testing.assert_allclose(root @ root, slope @ matrix @ slope, rtol=1e-10)
        np.testing.assert_allclose(energy.weight(pde, U, x), np.sqrt(np.trace(matrix) / 3), rtol=1e-12)


@pytest.mark.parametrize("tensor", [scalar, diagonal, full])
def test_least_conductivity_is_the_smallest_eigenvalue(tensor):
    least = least_conductivity(equation(tensor), U)
    for x in points():
        np.testing.assert_allclose(least(x), np.linalg.eigvalsh(np.asarray(tensor(x)))[0], rtol=1e-10)


@pytest.mark.parametrize("tensor", [diagonal, full])
def test_gram_matrix_of_the_default_method_is_that_of_the_whole_conductivity(tensor):
    """The dense matrix E[∇∂φ·A∇∂φ], for the recipe that a user gets."""
    pde = equation(tensor)
    method = make_method("equation", "npdg", dual="tangent", solver="cg", damping=1e-3)
    saddle = method.recipe(pde, method.candidates(pde)[0]).lower({})
    samples = saddle.sample(jax.random.key(1), {"interior": 2, "metric": 20, "boundary": 2})
    u = MLP(3, 4, 2, key=jax.random.key(2))
    player = next(player for player in saddle.players if player.name == "phi")
    fields = {"u": u, "phi": Tangent.at(pde.domain, u)}
    theta, u_of = split(u)

    @jax.jit
    def by_hand() -> jax.Array:
        derivative = lambda p: pde.domain.cutoff(p) * jax.grad(lambda t: u_of(t)(p))(theta)
        x = samples["metric"].x
        slopes = jax.vmap(jax.jacfwd(derivative))(x)  # parameters by coordinates
        return jnp.einsum("npi,nij,nqj->pq", slopes, jax.vmap(tensor)(x), slopes) / x.shape[0]

    dense = jax.jit(lambda: gram(player, fields, samples).dense())()
    np.testing.assert_allclose(dense, by_hand(), rtol=1e-8, atol=1e-12)

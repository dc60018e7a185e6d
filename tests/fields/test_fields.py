import jax
import jax.numpy as jnp
import numpy as np
import pytest

from npdg import Box
from npdg.fields.base import Frozen, parameter_count, split
from npdg.fields.mlp import MLP, FirstLayer, PReLU, Sine, Softplus, Squares, Tanh
from npdg.fields.tangent import Linearised
from npdg.fields.wrappers import CutOff, Extrapolated
from npdg.methods.base import parameters


@pytest.mark.parametrize(("dim", "width", "depth"), [(50, 256, 6), (10, 256, 4), (3, 5, 2), (2, 7, 1)])
@pytest.mark.parametrize("last_bias", [True, False])
def test_parameter_count_is_the_papers_formula(dim, width, depth, last_bias):
    net = MLP(dim, width, depth, last_bias=last_bias, key=jax.random.key(0))
    count = parameters(dim, width, depth, last_bias)
    assert parameter_count(net) == count
    if depth >= 2 and last_bias:
        assert count == (width + 1) + (depth - 2) * width * (width + 1) + width * (dim + 1)


def test_network_is_the_composition_of_the_paper():
    net = MLP(3, 4, 3, key=jax.random.key(0))
    x = jnp.array([0.3, -1.0, 2.0])
    (first, second, last) = net.layers
    assert first.bias is not None
    assert second.bias is not None
    assert last.bias is not None
    hidden = jnp.tanh(second.weight @ jnp.tanh(first.weight @ x + first.bias) + second.bias)
    np.testing.assert_allclose(net(x), (last.weight @ hidden + last.bias)[0], rtol=1e-6)
    assert net(x).shape == ()


def test_weights_start_uniform_in_one_over_root_fan_in():
    net = MLP(16, 400, 3, key=jax.random.key(0))
    for layer, fan_in in zip(net.layers, (16, 400, 400), strict=True):
        assert layer.bias is not None
        weights = np.asarray(layer.weight).ravel() * fan_in**0.5
        assert np.abs(weights).max() <= 1
        assert np.abs(np.asarray(layer.bias)).max() * fan_in**0.5 <= 1
        if weights.size > 1000:
            np.testing.assert_allclose(weights.var(), 1 / 3, rtol=0.1)


@pytest.mark.parametrize(("dim", "width", "squares"), [(5, 32, True), (5, 33, True), (4, 9, False), (50, 16, True)])
def test_units_along_axes_see_every_coordinate_equally_often(dim, width, squares):
    key = jax.random.key(0)
    weight = np.asarray(MLP(dim, width, 2, first=FirstLayer(squares=squares, axes=True), key=key).layers[0].weight)
    for part in (weight[: width // 2], weight[width // 2 :]) if squares else (weight,):
        along = part[np.sum(part != 0, axis=1) == 1]
        np.testing.assert_array_equal(np.sum(along != 0, axis=0), len(part) // dim)
        lengths = np.abs(along).max(axis=1, initial=0.5)
        assert np.all((lengths >= 0.5) & (lengths <= 1))
    if width < 2 * dim:  # no room for all coordinates: as usual
        assert np.abs(weight).max() <= dim**-0.5


@pytest.mark.parametrize(
    ("activation", "reference"),
    [
        (Tanh(), np.tanh),
        (Sine(), np.sin),
        (Softplus(0.25), lambda z: 4 * np.log1p(np.exp(0.25 * z))),
        (PReLU(), lambda z: np.where(z > 0, z, 0.25 * z)),
    ],
)
def test_activations(activation, reference):
    z = np.linspace(-3, 3, 13).astype(np.float32)
    np.testing.assert_allclose(activation(jnp.asarray(z)), reference(z), rtol=2e-6, atol=1e-6)


def test_prelu_has_one_learnable_slope():
    smooth = MLP(2, 3, 4, key=jax.random.key(0))
    net = MLP(2, 3, 4, activation=PReLU(), key=jax.random.key(0))
    assert parameter_count(net) == parameter_count(smooth) + 1


def test_split_is_a_round_trip_and_leaves_frozen_fields_alone():
    net = MLP(2, 3, 2, key=jax.random.key(0))
    field = Extrapolated(net, Frozen(MLP(2, 3, 2, key=jax.random.key(1))), 2.0)
    vector, build = split(field)
    assert vector.size == parameter_count(net)
    x = jnp.array([0.1, 0.7])
    np.testing.assert_array_equal(build(vector)(x), field(x))
    assert build(vector + 1)(x) != field(x)


def test_cut_off_vanishes_on_the_boundary_and_extrapolation_is_in_function_space():
    box = Box(0.0, 1.0, dim=2)
    old, new = (CutOff(box, MLP(2, 8, 3, key=jax.random.key(k))) for k in (0, 1))
    ahead = Extrapolated(new, old, 1.5)
    x = jnp.array([0.2, 0.4])
    np.testing.assert_allclose(ahead(x), 2.5 * new(x) - 1.5 * old(x), rtol=1e-5)
    np.testing.assert_allclose(ahead(jnp.array([0.0, 0.4])), 0, atol=1e-7)


def test_squares_are_half_of_the_first_layer():
    z = jnp.arange(1.0, 8.0)
    np.testing.assert_allclose(Squares(Tanh())(z), [0.5, 2.0, 4.5, *np.tanh([4.0, 5.0, 6.0, 7.0])], rtol=1e-6)


def net(key: int) -> MLP:
    return MLP(2, 12, 2, activation=Sine(), first=FirstLayer(squares=True), key=jax.random.key(key))


@pytest.mark.usefixtures("x64")
def test_a_linearised_field_is_its_base_plus_directional_derivatives():
    base, other = net(0), net(1)
    field = Linearised.at(base, (base, other))
    x = jnp.array([0.3, -0.2])
    assert field(x) == base(x)
    vector, build = split(field)
    assert vector.size == split(base)[0].size + split(other)[0].size  # the base itself is not trained
    c = jax.random.normal(jax.random.key(2), vector.shape)
    first = split(base)[0].size
    slopes = [jax.grad(lambda v, n=n: split(n)[1](v)(x))(split(n)[0]) for n in (base, other)]
    np.testing.assert_allclose(build(c)(x), base(x) + slopes[0] @ c[:first] + slopes[1] @ c[first:], rtol=1e-12)

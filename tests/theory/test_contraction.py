import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npdg.theory.contraction import (
    BEST_GAMMA,
    BEST_NU,
    BEST_RATE,
    contraction,
    flow_rate,
    iteration_matrix,
    riesz_omega,
)

rates = st.floats(0.01, 0.9)


@given(tau_u=rates, tau_phi=rates, omega=st.floats(0, 20), nu=st.floats(0.1, 2))
def test_matrix_is_one_step_of_the_linear_model(tau_u, tau_phi, omega, nu):
    e, p = 0.7, -0.3
    p_new = p + tau_phi * (e - nu * p)
    e_new = e - tau_u * (p_new + omega * (p_new - p))
    np.testing.assert_allclose(iteration_matrix(tau_u, tau_phi, omega, nu) @ [e, p], [e_new, p_new], atol=1e-12)


@pytest.mark.parametrize(
    ("setting", "radius"), [((0.05, 0.095, 1.0, 1.0), 0.949), ((0.5, 0.095, riesz_omega(0.095), 1.0), 0.905)]
)
def test_contraction_is_that_of_the_simulated_iteration(setting, radius):
    state, matrix = np.array([1.0, 0.4]), iteration_matrix(*setting)
    norms = [np.linalg.norm(state := matrix @ state) for _ in range(400)]
    simulated = (norms[-1] / norms[199]) ** (1 / 200)
    assert contraction(*setting) == pytest.approx(simulated, rel=2e-2)
    assert contraction(*setting) == pytest.approx(radius, abs=2e-3)


@given(tau_u=rates, tau_phi=rates, nu=st.floats(0.5, 2))
def test_riesz_extrapolation_makes_the_primal_error_contract_by_itself(tau_u, tau_phi, nu):
    matrix = iteration_matrix(tau_u, tau_phi, riesz_omega(tau_phi, nu), nu)
    np.testing.assert_allclose(matrix[0], [1 - tau_u / nu, 0], atol=1e-12)


@given(gamma=st.floats(0.05, 3), nu=st.floats(0.05, 3))
def test_the_bound_is_largest_at_the_papers_optimum(gamma, nu):
    assert flow_rate(BEST_GAMMA, BEST_NU) == pytest.approx(BEST_RATE)
    if gamma * nu < 2:
        assert flow_rate(gamma, nu) <= BEST_RATE + 1e-12

"""The contraction analysis of the method, in the ideal linear model and in continuous time.

With e = M_p(u − u*), p = M_d φ and tangent spaces rich enough, one step is

    p' = p + τ_φ (e − ν p),   p̃ = p' + ω (p' − p),   e' = e − τ_u p̃.
"""

import math

import numpy as np

# γ and ν at which the bound of `flow_rate` is largest (Sec. 3.2.2), and its value there. The paper prints 2/(3√3) for
# the value: the factor ½ of its own bound is missing.
BEST_GAMMA, BEST_NU, BEST_RATE = 2 / math.sqrt(3), 1 / math.sqrt(3), 1 / (3 * math.sqrt(3))


def iteration_matrix(tau_u: float, tau_phi: float, omega: float, nu: float) -> np.ndarray:
    """The 2×2 matrix that takes (e, p) to (e', p')."""
    ahead = (1 + omega) * tau_phi
    return np.array([[1 - tau_u * ahead, -tau_u * (1 - ahead * nu)], [tau_phi, 1 - tau_phi * nu]])


def contraction(tau_u: float, tau_phi: float, omega: float, nu: float) -> float:
    """The factor by which a step shrinks the error in the long run: the spectral radius of the iteration matrix."""
    return float(np.abs(np.linalg.eigvals(iteration_matrix(tau_u, tau_phi, omega, nu))).max())


def riesz_omega(tau_phi: float, nu: float = 1.0) -> float:
    """The ω with (1 + ω) τ_φ ν = 1, for which p̃ = e/ν exactly and e' = (1 − τ_u/ν) e whatever τ_φ is."""
    return 1 / (tau_phi * nu) - 1


def flow_rate(gamma: float, nu: float) -> float:
    """The lower bound on the rate of the continuous-time flow, ½γν(2 − γν)/(γ + 2ν), for γν < 2 (γ = ωτ_φ)."""
    return 0.5 * gamma * nu * (2 - gamma * nu) / (gamma + 2 * nu)

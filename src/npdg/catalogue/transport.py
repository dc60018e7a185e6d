"""The paper's transport problems (Sec. 5.5): a pair of measures and the true map between them."""

from typing import TYPE_CHECKING, Any

from npdg.catalogue.card import Card
from npdg.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from npdg.problem.transport import Transport

RADIUS, VARIANCE = 3.0, 0.16
WEIGHTS = {"equal": (1 / 8,) * 8, "unequal": (1 / 20, 1 / 5) * 4}
ACTIVE = {10: (3, 7), 50: (9, 19)}  # the coordinates of the ring, counted from 0


def line(dim: int) -> "Transport":
    """N(0, 1) to ⅔N(−1, ¼) + ⅓N(1, ¼)."""
    from npdg.measures.gaussian import Gaussian, GaussianMixture
    from npdg.problem.transport import Transport
    from npdg.reference.transport_maps import by_quantiles

    target = GaussianMixture([2 / 3, 1 / 3], [[-1.0], [1.0]], 0.25)
    return Transport(Gaussian([0.0], [[1.0]]), target, by_quantiles(target), name="ot-1d")


def gaussians(dim: int, pair: str = "paper") -> "Transport":
    """The paper's pair, with ones in between where there are more than five dimensions, or two covariances of condition
    100 in random directions."""
    import numpy as np

    from npdg.measures.gaussian import Gaussian
    from npdg.problem.transport import Transport
    from npdg.reference.transport_maps import affine

    if pair == "paper":
        if dim < 4:
            raise InputError(f"dim: {dim} is not allowed for the paper's pair; give at least 4, or pair=rotated.")
        first, second = np.eye(dim), np.eye(dim)
        first[0, 0], second[1, 1], second[-2:, -2:] = 0.25, 0.25, [[5 / 8, 3 / 8], [3 / 8, 5 / 8]]
    else:
        first, second = (_rotated(dim, seed) for seed in (0, 1))
    source, target = Gaussian(np.zeros(dim), first), Gaussian(np.zeros(dim), second)
    return Transport(source, target, affine(source, target), name="ot-gaussian", options={"pair": pair})


def _rotated(dim: int, seed: int) -> "np.ndarray":
    import numpy as np

    axes, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(dim, dim)))
    return (axes * np.geomspace(0.1, 10.0, dim)) @ axes.T


def mixture(dim: int, weights: str = "equal") -> "Transport":
    """N(0, I) to eight Gaussians on a circle in two of the coordinates."""
    import numpy as np

    from npdg.measures.gaussian import Gaussian, GaussianMixture
    from npdg.problem.transport import Transport
    from npdg.reference.transport_maps import ring, to_ring

    active = ACTIVE.get(dim, (0, 1))
    means = np.zeros((8, dim))
    means[:, list(active)] = ring(8, RADIUS)
    target = GaussianMixture(WEIGHTS[weights], means, VARIANCE)
    truth = to_ring(dim, active, WEIGHTS[weights], RADIUS, VARIANCE)
    return Transport(
        Gaussian(np.zeros(dim), np.eye(dim)), target, truth=truth, name="ot-mixture", options={"weights": weights}
    )


# Sec. 5.5: the saddle without any aid, but for T, which starts near the identity: from a network drawn at random, whose
# values are all close to one point, the natural steps of both metrics leave ρ₁ at once and do not come back.
PAPER: dict[str, Any] = {
    "activation": "prelu",
    "solver": "minres",
    "minres_rtol": 1e-3,
    "minres_max": 1000,
    "minres_stop": "scipy",
    "settling": 0.0,
    "damping": 0.0,
    "refine": 0,
    "scaled": False,
    "affine": False,
    "translate": False,
    "residual": True,
    "squares": False,
    "matched": False,
    "points": "independent",
    "n_interior": 2000,
    "n_metric": 2000,
}


def _paper(method: str, rate: float, **own: Any) -> dict[str, Any]:
    """Sec. 5.5, with the rate that the table of the appendix on PD-Adam has for it."""
    adam = {"tau_u": rate, "tau_phi": rate, "omega": 0.0} if method == "pd-adam" else {}
    return {**PAPER, **own, **adam}


def paper_line(method: str, dim: int) -> dict[str, Any]:
    """The experiment in one dimension."""
    sizes = {"width": 50, "depth": 3, "n_interior": 800, "n_metric": 800}
    return _paper(method, 0.5e-3, tau_u=0.15, tau_phi=0.15, metric="gradient", **sizes)


def paper_gaussians(method: str, dim: int, **options: str) -> dict[str, Any]:
    """The experiment with Gaussians."""
    return _paper(method, 0.5e-4, width=80, depth=4, tau_u=0.05, tau_phi=0.095, metric="gradient")


def paper_mixture(method: str, dim: int, **options: str) -> dict[str, Any]:
    """The experiments with eight Gaussians on a circle, which change with the dimension."""
    if dim < 50:
        return _paper(method, 0.5e-4, width=120, depth=6, tau_u=0.5e-2, tau_phi=0.95e-2, metric="identity")
    steps = {"tau_u": 0.5e-2, "tau_phi": 0.5e-2, "omega": 5.0, "minres_rtol": 1e-4}
    return _paper(method, 1e-5, width=120, depth=6, metric="gradient", **steps)


def formulas(dim: int, **options: str) -> tuple[str, ...]:
    """The saddle as it is set in a report."""
    return (r"\sup_φ \inf_T E_{ρ_0}[\frac{1}{2} |x - T(x)|^2 + φ(T(x))] - E_{ρ_1}[φ(y)]",)


CARDS = (
    Card(
        name="ot-1d",
        title="optimal transport from a Gaussian to a mixture of two, in one dimension",
        equation="N(0, 1) to ⅔N(−1, ¼) + ⅓N(1, ¼)",
        default_dim=1,
        make=line,
        paper=paper_line,
        dims=lambda dim: dim == 1,
        dims_text="1",
        kind="transport",
        formulas=formulas,
    ),
    Card(
        name="ot-gaussian",
        title="optimal transport between Gaussians",
        equation="N(0, Σ₀) to N(0, Σ₁)",
        default_dim=5,
        make=gaussians,
        paper=paper_gaussians,
        options={"pair": ("paper", "rotated")},
        kind="transport",
        formulas=formulas,
    ),
    Card(
        name="ot-mixture",
        title="optimal transport from a Gaussian to eight on a circle",
        equation="N(0, I) to Σ λ_k N(μ_k, 0.16·I), μ_k on a circle of radius 3 in two of the coordinates",
        default_dim=10,
        make=mixture,
        paper=paper_mixture,
        options={"weights": ("equal", "unequal")},
        dims=lambda dim: dim >= 2,
        dims_text="a whole number from 2 to 1000",
        kind="transport",
        formulas=formulas,
    ),
)

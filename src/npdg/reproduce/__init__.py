"""The tables and figures of the paper, by name. Listing them does not import jax."""

from dataclasses import dataclass

SCALES: dict[str, str] = {
    "quick": "minutes on two cores; what was scaled down is said",
    "full": "the paper's budget",
}


@dataclass(frozen=True)
class PaperItem:
    """A table or figure: what it shows, and the function `module:name` of a `Reproduction` that makes it."""

    name: str
    title: str
    where: str


TARGETS: dict[str, PaperItem] = {
    card.name: card
    for card in (
        PaperItem("table1", "settings of the variable-coefficient experiments", "tables:settings_of_npdg"),
        PaperItem("table2", "settings of PINN, Deep Ritz and WAN", "tables:settings_of_the_others"),
        PaperItem("table3", "norms of the exact solutions", "tables:norms"),
        PaperItem("table4", "seconds to an accuracy, every method and equation", "tables:seconds_to_accuracy"),
        PaperItem("fig-laplace2", "10-D Poisson: MINRES iterations, ablations, sample sizes", "poisson:laplace2"),
        PaperItem("fig-laplace-50d", "50-D Poisson: a coordinate plane, error against time", "poisson:laplace_50d"),
        PaperItem("fig-varcoeff1", "20-D variable coefficient: planes, errors on 50 shells", "varcoeff:planes"),
        PaperItem("fig-varcoeff2", "variable coefficient 10, 20 and 50-D: error against time", "varcoeff:curves"),
        PaperItem("fig-tolerances", "20-D variable coefficient: MINRES tolerances, L-BFGS", "varcoeff:tolerances"),
        PaperItem("fig-nonlinear1", "the nonlinear equations in 5-D: error against time", "nonlinear:curves"),
        PaperItem("fig-nonlinear2", "the nonlinear equation in 5-D: graph and error planes", "nonlinear:planes"),
        PaperItem(
            "fig-ac1", "1-D Allen–Cahn: graphs for both ε₀, error against time, energy", "allen_cahn:one_dimension"
        ),
        PaperItem("fig-ac2", "2-D Allen–Cahn: graphs along the axes, error against time", "allen_cahn:two_dimensions"),
        PaperItem("fig-ac3", "2-D Allen–Cahn: surfaces and error maps", "allen_cahn:surfaces_in_time"),
        PaperItem(
            "fig-ma1",
            "1-D and 5-D transport: error against time, maps",
            "transport:one_and_five_dimensions",
        ),
        PaperItem("fig-ma10d", "10-D transport to a ring: densities and maps", "transport:ten_dimensions"),
        PaperItem("fig-ma50d-equal", "50-D transport to a ring, equal weights", "transport:fifty_dimensions_equal"),
        PaperItem(
            "fig-ma50d-unequal", "50-D transport to a ring, unequal weights", "transport:fifty_dimensions_unequal"
        ),
        PaperItem("fig-ma50d-steps", "50-D transport to a ring: results on the way", "transport:on_the_way"),
        PaperItem("ablations", "10-D Poisson: metrics, pairings and boundary norms (ours)", "poisson:ablations"),
    )
}

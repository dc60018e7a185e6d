"""The tables and figures of the paper, by name. Listing them does not import jax."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from rich.console import Console

SCALES: dict[str, str] = {
    "quick": "minutes on two cores; what was scaled down is said",
    "full": "the paper's budget",
}


@dataclass(frozen=True)
class Card:
    """A table or figure: what it shows, and the function `module:name` of a `Desk` that makes it."""

    name: str
    title: str
    where: str


TARGETS: dict[str, Card] = {
    card.name: card
    for card in (
        Card("table1", "settings of the variable-coefficient experiments", "tables:settings_of_npdg"),
        Card("table2", "settings of PINN, Deep Ritz and WAN", "tables:settings_of_the_others"),
        Card("table3", "norms of the exact solutions", "tables:norms"),
        Card("table4", "seconds to an accuracy, every method and equation", "tables:seconds_to_accuracy"),
        Card("fig-laplace2", "10-D Poisson: MINRES iterations, ablations, sample sizes", "poisson:laplace2"),
        Card("fig-laplace-50d", "50-D Poisson: a coordinate plane, error against time", "poisson:laplace_50d"),
        Card("fig-varcoeff1", "20-D variable coefficient: planes, errors on 50 shells", "varcoeff:planes"),
        Card("fig-varcoeff2", "variable coefficient 10, 20 and 50-D: error against time", "varcoeff:curves"),
        Card("fig-tolerances", "20-D variable coefficient: MINRES tolerances, L-BFGS", "varcoeff:tolerances"),
        Card("fig-nonlinear1", "the nonlinear equations in 5-D: error against time", "nonlinear:curves"),
        Card("fig-nonlinear2", "the nonlinear equation in 5-D: graph and error planes", "nonlinear:planes"),
        Card("fig-ac1", "1-D Allen–Cahn: graphs for both ε₀, error against time, energy", "allen_cahn:one_dimension"),
        Card("fig-ac2", "2-D Allen–Cahn: graphs along the axes, error against time", "allen_cahn:two_dimensions"),
        Card("fig-ac3", "2-D Allen–Cahn: surfaces and error maps", "allen_cahn:surfaces_in_time"),
        Card(
            "fig-ma1",
            "1-D and 5-D transport: error against time, maps",
            "transport:one_and_five_dimensions",
        ),
        Card("fig-ma10d", "10-D transport to a ring: densities and maps", "transport:ten_dimensions"),
        Card("fig-ma50d-equal", "50-D transport to a ring, equal weights", "transport:fifty_dimensions_equal"),
        Card("fig-ma50d-unequal", "50-D transport to a ring, unequal weights", "transport:fifty_dimensions_unequal"),
        Card("fig-ma50d-steps", "50-D transport to a ring: results on the way", "transport:on_the_way"),
        Card("ablations", "10-D Poisson: metrics, pairings and boundary norms (ours)", "poisson:ablations"),
    )
}


def run(
    card: Card, scale: str, out: Path | None, console: Console, should_stop: Callable[[], str | None] = lambda: None
) -> Path:
    """Make a target in a new directory, which is returned."""
    from npdg.reproduce.desk import Desk
    from npdg.runs import store

    module, _, name = card.where.partition(":")
    make = getattr(import_module(f"npdg.reproduce.{module}"), name)
    desk = Desk(store.new_directory(out, f"{card.name}-{scale}"), scale == "quick", console, should_stop)
    desk.say(f"{card.name} ({scale}): {card.title}")
    make(desk)
    desk.close()
    console.print(f"written to {desk.directory}", highlight=False, soft_wrap=True)
    return desk.directory

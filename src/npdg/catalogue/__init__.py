"""The equations that come with npdg, by name. Listing them does not import jax."""

from npdg.catalogue import allen_cahn, nonlinear, poisson, transport, varcoeff
from npdg.catalogue.card import Card
from npdg.errors import unknown

CARDS: dict[str, Card] = {
    card.name: card for card in (poisson.CARD, varcoeff.CARD, nonlinear.CARD, *allen_cahn.CARDS, *transport.CARDS)
}


def find(name: str) -> Card:
    """The problem of that name, or an `InputError` with the nearest one."""
    if name not in CARDS:
        raise unknown("problem", name, [*CARDS, "FILE.py:NAME"])
    return CARDS[name]

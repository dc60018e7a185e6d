"""Update rules: how a player moves."""

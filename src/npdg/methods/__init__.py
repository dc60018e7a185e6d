"""Methods: a formulation, networks, rules and stages each. `registry` knows them by name."""

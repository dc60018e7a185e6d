"""Measures that can be sampled."""

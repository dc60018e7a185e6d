"""Domains: sets with samplers, normals and a cut-off function."""

"""Truths to compare with, by classical methods: finite differences."""

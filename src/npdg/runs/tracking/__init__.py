"""Tracking services."""

"""The page of a run, or of several compared."""

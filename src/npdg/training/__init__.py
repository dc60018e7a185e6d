"""The one training loop, its clock, its events, and the stages of a run."""

"""Results: solutions, trajectories and transport maps."""

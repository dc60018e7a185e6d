"""Results on grids and at points, for other programs."""

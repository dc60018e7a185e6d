"""The saddle point problem that every problem lowers to."""

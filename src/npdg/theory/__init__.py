"""The theory of the method, computed."""

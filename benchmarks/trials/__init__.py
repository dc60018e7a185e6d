"""The parts of benchmarks/torture.py, one kind of trouble a file."""

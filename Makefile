# Two commands do all set-up on a machine that has Python 3.11 or later: `make solve` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: solve test test-slow lint bench ladder clean

solve: .venv/installed
	$(BIN)/npdg solve poisson --dim 10 --seconds 30

test: .venv/installed-dev
	$(BIN)/python -m pytest -n 2 --dist worksteal

# What takes longest: examples, the authors' trajectory, whole runs.
test-slow: .venv/installed-dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/python docs/imports.py --check

bench: .venv/installed
	$(BIN)/python benchmarks/gram.py

# Hours: every equation at five budgets with three seeds. What is already in benchmarks/results is kept.
ladder: .venv/installed
	$(BIN)/python benchmarks/ladder.py

clean:
	rm -rf .venv

.venv/installed: pyproject.toml
	test -d .venv || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e .
	touch $@

.venv/installed-dev: .venv/installed
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	touch $@

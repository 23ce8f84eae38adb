# The usual verbs; plain `make` lists them.
BIN ?= .venv/bin
JOBS ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup test quick lint types format screens bench ci clean

help:  ## list the verbs
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup:  ## install the package and what its tests need into .venv
	python3 -m venv .venv
	.venv/bin/pip install -e ".[test]"

test:  ## run every test, JOBS=2 at a time
	$(BIN)/pytest -n $(JOBS) --dist worksteal

quick:  ## run every test that is not slow
	$(BIN)/pytest -n $(JOBS) --dist worksteal -m "not slow"

lint:  ## check style and layout with ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types:  ## check types with mypy
	$(BIN)/mypy

format:  ## put right what ruff can put right
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

screens:  ## type the commands in docs again; PAGE=docs/commands.md for one page
	$(BIN)/python docs/make_screens.py $(PAGE)

bench:  ## print one benchmark: NAME=startup for benchmarks/bench_startup.py
	@test -n "$(NAME)" || { echo "which one? make bench NAME=startup; there are:" $(sort $(patsubst benchmarks/bench_%.py,%,$(wildcard benchmarks/bench_*.py))); exit 2; }
	$(BIN)/python benchmarks/bench_$(NAME).py $(ARGS)

ci:  ## run what must pass before a change lands, in a fresh environment
	.ci/run

clean:  ## remove caches and the environment of the last `make ci`; .venv stays
	rm -rf .ci-venv .ci-lowest .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist
	find src tests docs benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

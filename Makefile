# Everything runs in .venv, which the first target makes. Needs make, git and python3 (3.11 or newer), nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
READY := $(VENV)/.ready
PEERS := $(VENV)/.peers

.PHONY: help demo test agents test-agents test-runtimes check bench scoreboard docs fuzz clean

help:
	@echo 'make demo        set up, then run the main job on bundled data, offline'
	@echo 'make test        set up, then run every test'
	@echo 'make agents      install those agents only'
	@echo 'make test-agents real coding agents from npm behind the gateway (needs node; 2.5 GB)'
	@echo 'make test-runtimes  the runtimes of local models, with transformers and llama-cpp-python (compiled: ten minutes)'
	@echo 'make check       linters, types, layers'
	@echo 'make bench       measure speed and memory against peers'
	@echo 'make scoreboard  judge peers on the case file and mutants; writes docs/scoreboard.md'
	@echo 'make docs        write the generated pages anew'
	@echo 'make fuzz        run the properties much longer'

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "onspec needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

$(READY): pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo 'setting up $(VENV) ...'
	$(PIP) install --quiet --upgrade 'pip>=25.1'
	$(PIP) install --quiet --constraint constraints.txt --editable '.[all]' --group dev
	$(PIP) install --quiet --no-deps --group harmony
	$(BIN)/onspec model add smollm2
	@touch $@

$(PEERS): $(READY)
	$(PIP) install --quiet --constraint constraints.txt --group scoreboard
	@touch $@

demo: $(READY)
	@$(BIN)/onspec demo

test: $(READY)
	$(BIN)/python -m pytest -n auto --dist worksteal

AGENTS ?= $(HOME)/.cache/onspec-agents

agents: $(READY)
	$(BIN)/python tests/agents/install.py $(AGENTS)

test-agents: PYTEST_ARGS ?= -n 2
test-agents: agents
	ONSPEC_AGENTS=$(AGENTS) $(BIN)/python -m pytest tests/agents $(PYTEST_ARGS)

RUNTIMES ?= $(HOME)/.cache/onspec-runtimes

# Its own environment, so that neither torch nor a compiled llama.cpp gets into .venv.
test-runtimes:
	$(PYTHON) -m venv $(RUNTIMES)
	$(RUNTIMES)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	CMAKE_ARGS=-DGGML_NATIVE=OFF $(RUNTIMES)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[local]' pytest hypothesis --group runtimes
	$(RUNTIMES)/bin/python -m pytest tests/local/test_runtime.py -p no:cacheprovider $(PYTEST_ARGS)

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/python benchmarks/check.py --write docs/speed.md
	$(BIN)/python benchmarks/dialects.py
	$(BIN)/python benchmarks/edits.py
	$(BIN)/python benchmarks/scan.py
	$(BIN)/python -m benchmarks.gateway --quick

scoreboard: $(PEERS)
	$(BIN)/python -m benchmarks.scoreboard --mutants 1280 --seed 1 --largest 10000

docs: $(READY)
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/dialects.py

fuzz: $(READY)
	HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest tests/test_invariants.py

clean:
	rm -rf $(VENV) .hypothesis .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

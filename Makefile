# Everything this project does is one of these targets; `make` alone prints them.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help run test check fix bench

help: ## print this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-7s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Toolview needs Python 3.11 or newer; name one with: make PYTHON=python3.11 $(MAKECMDGOALS)"; rm -rf $(VENV); exit 1; }
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@

run: $(STAMP) ## start the demo backend and the gateway, and print what to try
	@exec $(BIN)/python -m gateway demo

test: $(STAMP) ## run the tests
	$(BIN)/python -m pytest

check: $(STAMP) ## format, lint, types, layers and tests: what CI runs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	@$(MAKE) --no-print-directory test

fix: $(STAMP) ## format and mend what the linter can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP) ## measure speed and memory as ratios in one run (see bench/README.md)
	$(BIN)/python -m bench

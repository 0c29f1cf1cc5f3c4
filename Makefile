# Everything this project does is one of these targets; `make` alone prints them.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# Helm, a compose reader and a Dockerfile linter live by themselves: they are large, and only the tests of deploy/ use them.
CHECKS := .venv-checks/.installed
# Likewise what writes the locks and the SBOM and asks for known vulnerabilities.
SUPPLY := .venv-supply/.installed
DOCKER ?= docker

.DEFAULT_GOAL := help
.PHONY: help run test check fix bench lock audit sbom image

help: ## print this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-7s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Toolview needs Python 3.11 or newer; name one with: make PYTHON=python3.11 $(MAKECMDGOALS)"; rm -rf $(VENV); exit 1; }
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@

$(CHECKS) $(SUPPLY): .venv-%/.installed: deploy/locks/%.txt
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet --require-hashes -r $<
	@touch $@

run: $(STAMP) ## start the demo backend and the gateway, and print what to try
	@exec $(BIN)/python -m gateway demo

test: $(STAMP) $(CHECKS) ## run the tests on every core (one by hand: .venv/bin/pytest tests/test_serve.py)
	$(BIN)/python -m pytest -n logical --maxprocesses 4 --dist worksteal

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

lock: $(SUPPLY) ## write deploy/locks anew from pyproject.toml; UPGRADE=--upgrade takes the newest versions
	deploy/lock.sh $(CURDIR)/.venv-supply/bin/uv $(UPGRADE)

audit: $(SUPPLY) ## ask which versions in the image have known vulnerabilities (needs the network)
	.venv-supply/bin/pip-audit --strict --disable-pip --require-hashes -r deploy/locks/runtime.txt

sbom: $(SUPPLY) ## write what the image holds as CycloneDX to sbom.json
	rm -rf .venv-image
	$(PYTHON) -m venv .venv-image
	.venv-image/bin/python -m pip install --quiet --require-hashes -r deploy/locks/build.txt
	.venv-image/bin/python -m pip install --quiet --require-hashes -r deploy/locks/runtime.txt
	.venv-image/bin/python -m pip install --quiet --no-deps --no-build-isolation .
	.venv-image/bin/python -m pip uninstall --quiet --yes setuptools wheel packaging pip
	.venv-supply/bin/cyclonedx-py environment --pyproject pyproject.toml --mc-type application --output-reproducible \
		--of JSON -o sbom.json .venv-image
	rm -rf .venv-image

image: ## build the container image with $(DOCKER)
	$(DOCKER) build -f deploy/Dockerfile -t toolview:$$(sed -n 's/^__version__ = "\(.*\)"$$/\1/p' gateway/__init__.py) .

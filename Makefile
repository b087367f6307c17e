# `make demo` and `make test` need nothing but Python 3.11 or later; the first call fills .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
NEEDS  := pyproject.toml constraints.txt

.PHONY: demo plays test check format-check lint contracts types format docs clean

demo: $(VENV)/installed
	$(BIN)/arco demo

plays: $(VENV)/installed
	$(BIN)/arco demo --compare -o docs/models-on-plays.md

test: $(VENV)/installed-dev
	$(BIN)/python -m pytest -n 2

# One after the other, cheapest first, also under `make -j`.
check:
	$(MAKE) format-check
	$(MAKE) lint
	$(MAKE) contracts
	$(MAKE) types
	$(MAKE) test

format-check: $(VENV)/installed-dev
	$(BIN)/ruff format --check

lint: $(VENV)/installed-dev
	$(BIN)/ruff check

contracts: $(VENV)/installed-dev
	$(BIN)/lint-imports --no-logo

types: $(VENV)/installed-dev
	$(BIN)/mypy --strict composer blocks

format: $(VENV)/installed-dev
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

# A site in site/index.html; every warning is an error.
docs: $(VENV)/installed-docs
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) dist site .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

$(VENV)/installed: $(NEEDS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -e . -c constraints.txt
	touch $@

$(VENV)/installed-dev: $(NEEDS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -e ".[dev]" -c constraints.txt
	touch $(VENV)/installed $@

$(VENV)/installed-docs: $(NEEDS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -e ".[docs]" -c constraints.txt
	touch $(VENV)/installed $@

# `make demo` and `make test` need nothing but Python 3.11 or later; the first call fills .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
NEWEST ?= $(shell for python in python3.14 python3.13 python3.12 $(PYTHON); do $$python -c "" 2>/dev/null && echo $$python && break; done)
NEEDS  := pyproject.toml constraints.txt

.PHONY: demo plays fast test test-all train-all test-oldest test-newest bench gpu fuzz check format-check lint contracts types format docs clean

demo: $(VENV)/installed
	$(BIN)/arco demo

plays: $(VENV)/installed
	$(BIN)/arco demo --compare -o docs/models-on-plays.md

# A worker gets neighboring tests, which share what they compile, and takes over what another has not begun.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

# The unit tests of every package, in under two minutes; tests/README.md tells the three sets apart.
fast: $(VENV)/installed-dev
	$(PYTEST) -m "not slow and not exhaustive"

# What a change must pass.
test: $(VENV)/installed-dev
	$(PYTEST)

test-all: $(VENV)/installed-dev
	$(PYTEST) -m ""
	$(MAKE) test-oldest
	$(MAKE) test-newest

# Every recipe of the zoo trains a few steps at tiny sizes: weekly, since it is long and one process. make train-all RECIPES="gpt2 t5"
train-all: $(VENV)/installed-dev
	$(BIN)/python -m tests.train.every_recipe $(RECIPES)

# The lowest versions that pyproject.toml declares, and the newest that can be installed with the newest Python found here.
# On Linux, these versions of torch bring the libraries of CUDA along, several gigabytes each.
# Packages that the tools of developers want newer than users may have them are put in front of those, for the tests of files.
FILES = tests/weights/test_checkpoint.py tests/weights/test_hostile_files.py tests/train tests/decode/test_generate.py
test-oldest: .venv-oldest/installed
	.venv-oldest/bin/python -m pytest -n 2 --dist worksteal
	PYTHONPATH=.venv-oldest/of-users .venv-oldest/bin/python -m pytest -n 2 --dist worksteal $(FILES)

test-newest: .venv-newest/installed
	.venv-newest/bin/python -m pytest -n 2 --dist worksteal

# Mutated recipes, until it is stopped: make fuzz FUZZ="--minutes 10 --seed 3". What fails is written to fuzz-finds.
fuzz: $(VENV)/installed-dev
	$(BIN)/python -m tests.fuzz $(FUZZ)

# Measurements on a processor, for which it must be idle: make bench BENCH="--only masks,decode"
bench: $(VENV)/installed-dev
	$(BIN)/python -m tests.bench $(BENCH)

# Measurements on a GPU, for some minutes: make gpu GPU="--only masks --out results"
gpu: $(VENV)/installed-dev
	$(BIN)/python -m tests.bench.gpu $(GPU)

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
	rm -rf $(VENV) .venv-oldest .venv-newest dist site .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

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

.venv-oldest/installed: pyproject.toml tests/package/oldest.py
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install packaging
	.venv-oldest/bin/python -m tests.package.oldest > .venv-oldest/constraints.txt
	.venv-oldest/bin/python -m pip install -e ".[dev]" -c .venv-oldest/constraints.txt
	.venv-oldest/bin/python -m pip install --no-deps --target .venv-oldest/of-users $$(.venv-oldest/bin/python -m tests.package.oldest --users)
	touch $@

.venv-newest/installed: pyproject.toml
	$(NEWEST) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --upgrade -e ".[dev]"
	touch $@

# make demo    rank 59 language models from 124 people's votes (bundled data)
# make test    unit tests
# make test-all  unit tests and slow ones, in one go
# make test-lowest  some of them with the lowest versions of everything that is supported
# make docs    the documentation site, in build/docs
# make papers  the tables and figures of the five papers, with the data of PREDILECT_DATA; QUICK=1: one split of each
# make wheel   the package, in dist, and a try of it in an environment of its own
# make check   linter, format, types and unit tests: what continuous integration runs, plus the slow tests
# Everything is installed into .venv; a machine with Python 3.11+ and make is enough.

PYTHON ?= python3
PYTHON_LOWEST ?= python3.11
VENV := .venv
LOWEST := .venv-lowest
TRIED := build/wheel
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
EXAMPLE := src/predilect/examples/llmfao
DEMO_OUT := predilect-demo
N_TEST_PROCESSES ?= 2

.PHONY: demo docs papers wheel test test-slow test-all test-lowest check lint types format readme benchmarks clean

demo: $(VENV)/.run
	$(BIN)/predilect rank $(EXAMPLE)/comparisons.csv.gz --map $(EXAMPLE)/items.csv:model -o $(DEMO_OUT) --force

docs: $(VENV)/.docs  # a warning is an error; nothing is asked of any other place
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --fresh-env -c docs -d build/doctrees . build/docs
	@echo "Open build/docs/index.html"

wheel: $(VENV)/.created
	$(PIP) build twine
	rm -rf dist $(TRIED)
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*
	$(PYTHON) -m venv $(TRIED)
	$(TRIED)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt dist/*.whl
	cd $(TRIED) && bin/predilect check "`bin/python -c 'import predilect; print(predilect.__path__[0])'`"/examples/llmfao/comparisons.csv.gz
	cd $(TRIED) && bin/python -c 'import doctest, sys, predilect; sys.exit(doctest.testmod(predilect).failed)'
	cd $(TRIED) && bin/python -c 'from importlib.resources import files; p = files("predilect"); \
		[(p / one).read_bytes() for one in ("py.typed", "live/web/static/poll.css", "live/web/texts/de.po", "cli/desk/templates/read.html")]'

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(N_TEST_PROCESSES) --dist worksteal -m "not slow"

# A file stays with one process: what its tests share, which may be a minute of fits, is made once. (Groups of tests, as
# pytest-xdist 3.8 has them, come to nothing with pytest 9.2.) Walks and the files of tests/ itself, of which four take
# more than a minute, come first: at the end one process would wait for the other. (Of folders within each other pytest 9
# takes the outer one, in its own order.)
OTHER_TESTS := $(filter-out tests/walks/ tests/__pycache__/,$(wildcard tests/*/))
SLOW_TESTS = $(BIN)/python -m pytest -n $(N_TEST_PROCESSES) --dist loadfile --no-loadscope-reorder \
	--hypothesis-profile thorough tests/walks tests/test_*.py $(OTHER_TESTS)

test-slow: $(VENV)/.outside
	$(SLOW_TESTS) -m "slow or hypothesis"

# Unit tests and slow ones: collected once, and what both share is made once.
test-all: $(VENV)/.outside
	$(SLOW_TESTS)

# On the lowest Python and the lowest versions that are supported: readers, commands, the default model, saving, what
# scikit-learn does with it.
test-lowest: $(LOWEST)/.dev
	$(LOWEST)/bin/python -m pytest -n $(N_TEST_PROCESSES) -m "not slow" \
		--timeout 900 tests/data tests/cli/test_cli_predict_check.py tests/cli/test_cli_column_orders.py \
		tests/cli/test_cli_bad_input.py tests/inference/gaussian/test_dense.py \
		tests/models/population/test_population_contract.py tests/show/report/test_report_output.py tests/live \
		tests/benchmarks/test_benchmark_peers.py tests/test_scikit_learn.py

check: lint types test

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

papers: $(VENV)/.dev  # the tables and figures of the five papers, a night; QUICK=1: one split of each, in build/papers
	$(BIN)/python -m benchmarks.papers $(if $(QUICK),--quick)

readme: $(VENV)/.dev  # write numbers and pictures of README.md and the docs anew, after a change of what they show
	cd tests && ../$(BIN)/python pages.py

clean:
	find src -name '*.nbi' -delete -o -name '*.nbc' -delete
	rm -rf $(VENV) $(LOWEST) $(DEMO_OUT) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Predilect needs Python 3.11 or later, but $(PYTHON) is `$(PYTHON) --version 2>&1`. Try: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "$(PYTHON) cannot make a virtual environment: it has no venv, or no ensurepip. Install them (Debian, Ubuntu:" \
			"apt install python3-venv), or name another Python: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.run: $(VENV)/.created pyproject.toml constraints.txt
	$(PIP) --editable ".[plots]"
	@touch $@

$(VENV)/.dev: $(VENV)/.created pyproject.toml constraints.txt
	$(PIP) --editable ".[dev]"
	@touch $@ $(VENV)/.run

$(VENV)/.outside: $(VENV)/.dev
	$(PIP) --editable ".[dev,outside]"
	@touch $@

$(VENV)/.docs: $(VENV)/.created pyproject.toml constraints.txt
	$(PIP) --editable ".[docs]"
	@touch $@

# What .dev, .outside and .docs install, in one go: each asks for and builds the same things first.
$(VENV)/.all: $(VENV)/.created pyproject.toml constraints.txt
	$(PIP) --editable ".[dev,outside,docs]"
	@touch $(VENV)/.run $(VENV)/.dev $(VENV)/.outside $(VENV)/.docs $@

$(LOWEST)/.dev: pyproject.toml constraints-lowest.txt
	@command -v $(PYTHON_LOWEST) >/dev/null || \
		{ echo "The lowest versions are tested with Python 3.11. Try: make test-lowest PYTHON_LOWEST=python3"; exit 1; }
	$(PYTHON_LOWEST) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-lowest.txt \
		--editable ".[bench]" httpx hypothesis openpyxl pandas pyarrow pytest pytest-timeout pytest-xdist
	@touch $@

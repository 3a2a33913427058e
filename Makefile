# One verb each. The README's commands in short; every target sets itself up on a machine with Python and its venv module.
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo lab docs test test-all test-postgres test-collaboration lint fix bench bench-heal bench-learn soak fuzz outage pictures clean

demo: $(BIN)/healkit
	$(BIN)/healkit demo

lab: $(BIN)/healkit
	$(BIN)/healkit lab

# The documentation site, in docs/_build/html. The wheel that is then installed has it, and `healkit docs` opens it.
docs: $(BIN)/python
	$(BIN)/pip install --quiet '.[docs]'
	$(BIN)/sphinx-build -b html -q -W --keep-going -j 2 -d docs/_build/doctrees docs docs/_build/html
	$(BIN)/pip install --quiet --no-deps --force-reinstall .

# The quick tier, then everything. Which tests for which change: docs/contributing.md.
test: $(BIN)/python
	$(BIN)/pip install --quiet '.[test]'
	$(BIN)/pytest -n logical

test-all: $(BIN)/python
	$(BIN)/pip install --quiet '.[test]'
	$(BIN)/pytest -n logical -m 'not published'

# On PostgreSQL: all tests of the store, and those that are lent a Healkit. The gate runs those whose SQL differs.
test-postgres: $(BIN)/python
	$(BIN)/pip install --quiet '.[test]'
	$(BIN)/pytest -n logical -m postgres
	$(BIN)/pytest -n logical --postgresql tests/core/runtime tests/parts

# The quick tier on another Python: `make test-py312`, `make test-py313`, with PYTHON=path where it is not on the path.
test-py3%: venv-py3%
	.venv-3.$*/bin/pytest -n logical

venv-py3%:
	$(or $(PYTHON),python3.$*) -m venv .venv-3.$*
	.venv-3.$*/bin/pip install --quiet '.[test]'

# Two pages on one notebook, in an environment of its own: jupyter-collaboration changes how each page opens a notebook.
test-collaboration:
	python3 -m venv .venv-collaboration
	.venv-collaboration/bin/pip install --quiet '.[test]' jupyter-collaboration
	.venv-collaboration/bin/pytest -m '' tests/faces/browser/collaboration.py

lint: $(BIN)/python
	$(BIN)/pip install --quiet '.[test]'
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fix: $(BIN)/python
	$(BIN)/pip install --quiet '.[test]'
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(BIN)/python
	$(BIN)/pip install --quiet '.[test]'
	$(BIN)/python benchmarks/run.py

# What learning is worth, and what it costs: `make bench-learn`, with GORILLA=path and TAU=path (checkouts of BFCL and of
# tau-bench) also on public logs.
bench-learn: $(BIN)/python
	$(BIN)/pip install --quiet '.[test]'
	$(BIN)/python benchmarks/learn/cost.py
	$(BIN)/python benchmarks/learn/cliffwalk.py
	$(BIN)/python benchmarks/learn/regress.py
	$(BIN)/python benchmarks/learn/success.py $(if $(TAU),--tau '$(TAU)')
	$(BIN)/python benchmarks/learn/memory.py
	$(if $(GORILLA),$(BIN)/python benchmarks/learn/intent.py --gorilla '$(GORILLA)')
	$(if $(GORILLA)$(TAU),$(BIN)/python benchmarks/learn/next_tool.py $(if $(GORILLA),--gorilla '$(GORILLA)') $(if $(TAU),--tau '$(TAU)'))

# How much is healed: `make bench-heal`, and `make bench-heal QUIXBUGS=path` with a checkout of QuixBugs too.
bench-heal: $(BIN)/python
	$(BIN)/pip install --quiet '.[test]'
	mkdir -p benchmarks/out
	$(BIN)/python benchmarks/bench_heal.py --set own gallery $(if $(QUIXBUGS),quixbugs --quixbugs '$(QUIXBUGS)' --seeds 1 2 3) > benchmarks/out/bench_heal.json

# Hosts killed at random on SQLite and PostgreSQL, trivial tools on busy processors, many hosts, large results; `make soak SOAK_SEED=7` again.
SOAK_KILLS ?= 1000
SOAK_AUDITED_KILLS ?= 200
SOAK_SEED ?= $(shell shuf -i 0-999999 -n 1)
soak: $(BIN)/python
	$(BIN)/pip install --quiet '.[test]'
	$(BIN)/python benchmarks/soak_kills.py --kills $(SOAK_KILLS) --seed $(SOAK_SEED)
	$(BIN)/python benchmarks/soak_kills.py --kills $(SOAK_KILLS) --seed $(SOAK_SEED) --database postgresql
	$(BIN)/python benchmarks/soak_kills.py --audited --kills $(SOAK_AUDITED_KILLS) --seed $(SOAK_SEED)
	$(BIN)/python benchmarks/soak_kills.py --audited --kills $(SOAK_AUDITED_KILLS) --seed $(SOAK_SEED) --database postgresql
	$(BIN)/python benchmarks/soak_crashes.py --seed $(SOAK_SEED)
	$(BIN)/python benchmarks/soak_hosts.py
	$(BIN)/python benchmarks/soak_agents.py

# A million frames of what a worker may send, at random: `make fuzz`, and `make fuzz FUZZ_SEED=n` to repeat a run.
fuzz: $(BIN)/python
	$(BIN)/pip install --quiet '.[test]'
	$(BIN)/python benchmarks/fuzz_frames.py $(if $(FUZZ_SEED),--seed $(FUZZ_SEED))

# The outage test as the requirement puts it: a collector in trouble for 20 seconds.
outage: $(BIN)/python
	$(BIN)/pip install --quiet '.[test]'
	HEALKIT_OUTAGE_S=20 $(BIN)/pytest -s -m '' tests/parts/traces/test_tracing_crash.py -k outage

# The pictures of README and docs, taken anew: needs Chromium, as the browser tests do.
pictures: $(BIN)/python
	$(BIN)/pip install --quiet '.[test]'
	$(BIN)/pytest -s -m '' tests/faces/browser/pictures.py

clean:
	rm -rf $(VENV) .venv-* build dist .pytest_cache .mypy_cache .ruff_cache benchmarks/out

$(BIN)/python:
	python3 -m venv $(VENV)

$(BIN)/healkit: $(BIN)/python
	$(BIN)/pip install --quiet .

# Targets: demo, up, down, test, test-oldest, test-stack, test-compose, test-faults, test-soak, fuzz, reliability, audit, bench, reports, lint, types, catalogue, constraints, clean. PYTHON names the interpreter (3.11, 3.12 or 3.13).
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
	&& { echo $$p; break; }; done)
VENV ?= .venv
BIN := $(VENV)/bin
THRESHOLD ?= 5
K ?= 20
NCP ?= 5

.PHONY: help demo up down test test-oldest test-stack test-compose test-faults test-soak fuzz reliability audit bench reports lint types catalogue constraints clean clean-stack
.DEFAULT_GOAL := help

help:
	@grep -E '^# Targets' Makefile

# One marker a set of extras: installed again only when pins or dependencies change. `dev` includes `demo`.
$(VENV)/installed-%: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11, 3.12 or 3.13 with venv is needed; name it: make PYTHON=..."; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing local-cloaking[$*] with its pinned dependencies ..."
	@if command -v uv >/dev/null 2>&1; then \
		uv pip install --quiet --python $(BIN)/python -e '.[$*]' -c constraints.txt; \
	else \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$*]' -c constraints.txt; \
	fi
	@touch $@

demo:
	@test -f $(VENV)/installed-dev -a ! pyproject.toml -nt $(VENV)/installed-dev -a ! constraints.txt -nt $(VENV)/installed-dev \
		|| $(MAKE) --silent --no-print-directory $(VENV)/installed-demo
	@$(BIN)/python scripts/demo.py --threshold '$(THRESHOLD)' --k '$(K)' --ncp '$(NCP)'

# The stack of docker-compose.yml, with profiles: make up PROFILES=celery,dask. What .env says holds, too.
COMPOSE ?= docker compose
IN_COMPOSE = $(if $(PROFILES),COMPOSE_PROFILES=$(PROFILES) )$(if \
	$(findstring celery,$(PROFILES)),AIRFLOW_EXECUTOR=CeleryExecutor )$(COMPOSE)
# All profiles of it; without .env it is found by its name.
WHOLE_STACK = $(if $(wildcard .env),,COMPOSE_PROJECT_NAME=local-cloaking )$(COMPOSE) --profile '*'
NEEDS_COMPOSE = @$(COMPOSE) version >/dev/null 2>&1 || { echo "Docker with Compose 2.24 or later is needed."; exit 2; }

up:
	$(NEEDS_COMPOSE)
	@python3 scripts/stack_secrets.py
	@$(IN_COMPOSE) config --quiet
	@$(IN_COMPOSE) build
	@$(IN_COMPOSE) up --detach --wait --wait-timeout 600 || { \
		echo; echo "The stack did not come up. The end of what airflow-init has logged, and what became of each:"; \
		$(IN_COMPOSE) logs --no-color --tail 20 airflow-init; $(IN_COMPOSE) ps --all; exit 1; }
	@echo
	@echo "Airflow    $$($(IN_COMPOSE) exec -T airflow-apiserver printenv AIRFLOW__API__BASE_URL)"
	@echo "user       admin"
	@echo "password   AIRFLOW_ADMIN_PASSWORD in .env"

# Keeps the data: database, evidence, tables, logs.
down:
	$(NEEDS_COMPOSE)
	@$(WHOLE_STACK) down --remove-orphans

test: $(VENV)/installed-dev
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed-dev
	$(BIN)/mypy

# What is known to be dangerous, in the sources and in what is depended on. Without a way to the database of
# vulnerabilities it says so, and looks at the sources alone.
audit: $(VENV)/installed-dev
	$(BIN)/python scripts/audit.py

# What the report's other languages lack, as entries to copy into src/local_cloaking/audit/locale.
catalogue: $(VENV)/installed-dev
	@$(BIN)/python scripts/catalogue.py

# Against what else a user could take, some of which takes minutes. Short: BENCH="--scale 0.1 --repeats 1".
bench: $(VENV)/installed-dev
	$(BIN)/python -m tests.benchmarks $(BENCH)

# What takes minutes: a whole Airflow, pages in a browser, every source of tables, the figures of the documentation.
test-stack: $(VENV)/installed-dev
	$(BIN)/python -m pytest -m stack -n 2 --dist loadfile --ignore=tests/stack tests

# The stack for real, on any Docker engine: about twenty minutes. WITHIN names a command that takes another, and runs
# it where it has brought up the stack of docker-compose.yml; what it sets COMPOSE to is used then. ONLY chooses tests.
test-compose: $(VENV)/installed-dev
	$(WITHIN) $(BIN)/python -m pytest -x -m stack tests/stack $(ONLY)

# Every read and write of a run fails once, in every way: nothing is lost, and nothing passes. Many minutes.
test-faults: $(VENV)/installed-dev
	$(BIN)/python -m pytest -m faults -n 2 --dist loadfile tests/faults $(ONLY)

# A hundred gates at once on one audit store, and two hundred runs in a row of one scheduler. Many minutes.
test-soak: $(VENV)/installed-dev
	$(BIN)/python -m pytest -m soak tests $(ONLY)

# What nobody would write, a hundred thousand times for each kind: hours. Some minutes: FUZZ="--inputs 2000".
fuzz: $(VENV)/installed-fuzz
	$(BIN)/python -m tests.fuzz $(FUZZ)

# All that is counted for the README's table of reliability, and the table: hours. Each part has a target of its own.
reliability: $(VENV)/installed-fuzz
	rm -rf build/reliability
	$(MAKE) test-faults test-soak fuzz
	$(BIN)/python -m pytest -m 'stack or not stack' tests/secrecy
	$(BIN)/python scripts/reliability.py --readme README.md

# The finished reports of the documentation, with a picture of the first screen where Chromium is installed.
reports: $(VENV)/installed-dev
	$(BIN)/python scripts/reports.py docs/reports $(if $(shell command -v chromium),--picture)

# The same tests at the other end of what is supported: Airflow 3.1.1 and pandas 3. Without what depends on neither:
# the repeated trials behind the figures of the documentation, the benchmark. OLDEST chooses tests.
test-oldest: .venv-oldest/installed
	.venv-oldest/bin/python -m pytest -n 2 --dist worksteal --ignore=tests/test_shuffle_rates.py \
		--ignore=tests/benchmarks $(OLDEST)

.venv-oldest/installed: pyproject.toml constraints-oldest.txt tests/oldest.in
	@test -x .venv-oldest/bin/python || $(PYTHON) -m venv .venv-oldest
	@echo "Installing Airflow 3.1.1 and pandas 3 ..."
	@if command -v uv >/dev/null 2>&1; then pip="uv pip install --quiet --python .venv-oldest/bin/python"; \
	else pip=".venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check"; fi; \
	$$pip -e '.[airflow]' -r tests/oldest.in -c constraints-oldest.txt && $$pip --no-deps lifelines==0.30.3
	@touch $@

# The pins, for every supported Python, without index addresses. Airflow 3.1.1 does not run with companions that
# came much later, so those of its days are taken, but for what this package asks for.
COMPILE := uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate
constraints:
	$(COMPILE) --upgrade --extra dev --extra fuzz -o constraints.txt pyproject.toml
	$(COMPILE) --upgrade --extra airflow --exclude-newer 2025-11-15 \
		$(foreach p,pandas numpy great-expectations apache-airflow-providers-common-compat pyreadstat,--exclude-newer-package $(p)=2026-11-20) \
		-o constraints-oldest.txt pyproject.toml tests/oldest.in

# The stack's data, too, where there is an engine, and a stack.
clean: clean-stack
	rm -rf $(VENV) .venv-oldest .airflow .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist

# Targets of the package: build, docs, test-package, test-matrix. PYTHONS names the matrix's interpreters.
PYTHONS ?= 3.11 3.12 3.13
.PHONY: build docs test-package test-matrix clean-package clean-stack

# Wheel and sdist, in dist/.
build: $(VENV)/installed-dev
	$(BIN)/python -m build

# The documentation site, in build/site: warnings are errors. The variable silences an announcement of the theme's.
docs: $(VENV)/installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

# What is handed out: wheel and sdist in clean environments, with and without Airflow, and the documentation site.
test-package: $(VENV)/installed-dev
	$(BIN)/python -m pytest -m package tests

# A part of the tests with each Python and each pandas, as far as the interpreters are there: noxfile.py.
# One cell: make test-matrix PYTHONS=3.13 PANDAS=3
test-matrix: $(VENV)/installed-dev
	$(BIN)/python -m nox --envdir .venv-matrix --session matrix client --pythons $(PYTHONS) --no-error-on-missing-interpreters

clean: clean-package
clean-package:
	rm -rf .venv-matrix

clean-stack:
	@if $(COMPOSE) ls >/dev/null 2>&1; then $(WHOLE_STACK) down --volumes --remove-orphans; fi

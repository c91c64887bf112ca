# Targets: demo, test, test-oldest, test-stack, bench, reports, lint, types, catalogue, constraints, clean. PYTHON names the interpreter (3.11, 3.12 or 3.13).
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
	&& { echo $$p; break; }; done)
VENV ?= .venv
BIN := $(VENV)/bin
THRESHOLD ?= 5
K ?= 20
NCP ?= 5

.PHONY: help demo test test-oldest test-stack bench reports lint types catalogue constraints clean
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

test: $(VENV)/installed-dev
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed-dev
	$(BIN)/mypy

# What the report's other languages lack, as entries to copy into src/local_cloaking/audit/locale.
catalogue: $(VENV)/installed-dev
	@$(BIN)/python scripts/catalogue.py

# Against what else a user could take, some of which takes minutes. Short: BENCH="--scale 0.1 --repeats 1".
bench: $(VENV)/installed-dev
	$(BIN)/python -m tests.benchmarks $(BENCH)

# A whole Airflow, as a user starts it, its page in a browser, and every source of tables: minutes.
test-stack: $(VENV)/installed-dev
	$(BIN)/python -m pytest -m stack tests

# The finished reports of the documentation, with a picture of the first screen where Chromium is installed.
reports: $(VENV)/installed-dev
	$(BIN)/python scripts/reports.py docs/reports $(if $(shell command -v chromium),--picture)

# The same tests at the other end of what is supported: Airflow 3.1.1 and pandas 3.
test-oldest: .venv-oldest/installed
	.venv-oldest/bin/python -m pytest -n 2 --dist worksteal

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
	$(COMPILE) --upgrade --extra dev -o constraints.txt pyproject.toml
	$(COMPILE) --upgrade --extra airflow --exclude-newer 2025-11-15 \
		$(foreach p,pandas numpy great-expectations apache-airflow-providers-common-compat,--exclude-newer-package $(p)=2026-11-20) \
		-o constraints-oldest.txt pyproject.toml tests/oldest.in

clean:
	rm -rf $(VENV) .venv-oldest .airflow .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist

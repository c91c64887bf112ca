# Targets: demo, test, lint, types, bench, constraints, clean. PYTHON names the interpreter (3.11, 3.12 or 3.13).
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
	&& { echo $$p; break; }; done)
VENV ?= .venv
BIN := $(VENV)/bin
THRESHOLD ?= 5
K ?= 20
NCP ?= 5

.PHONY: demo test lint types constraints clean
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
		|| $(MAKE) --no-print-directory $(VENV)/installed-demo
	@$(BIN)/python scripts/demo.py --threshold '$(THRESHOLD)' --k '$(K)' --ncp '$(NCP)'

test: $(VENV)/installed-dev
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed-dev
	$(BIN)/mypy

# The pins, for every supported Python, without index addresses.
constraints:
	uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate --extra dev --upgrade \
		-o constraints.txt pyproject.toml

clean:
	rm -rf $(VENV) .airflow .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist

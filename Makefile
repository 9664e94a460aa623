# `make` alone lists the targets. Everything runs from .venv; nothing else on the machine is touched.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup demo test-fast test test-slow soak conformance surface real bench check format docs \
	requirements clean

BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest -q
# A file stays in one process, so that what it starts is started once; files begin in the order of
# tests/conftest.py. The third process fills the time for which tests of real processes wait.
BOTH := -n 3 --dist loadfile --no-loadscope-reorder
PACKAGES := region_scheduler tests

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## make .venv with the pinned packages for work on the code
	@.ci/install dev

demo: ## provision three landing zones over three regions, and lose one of these meanwhile
	@.ci/install demo
	@$(BIN)/region-scheduler demo

test-fast: setup ## unit, contract and architecture tests (two minutes of two cores at most)
	$(PYTEST) $(BOTH) -m "not slow and not soak" $(wildcard tests/unit tests/contract tests/architecture)

test: setup ## every test that is not marked slow or soak (under ten minutes)
	$(PYTEST) $(BOTH) -m "not slow and not soak"

test-slow: setup ## the tests marked slow
	$(PYTEST) -n 2 -m "slow and not soak" --timeout 600 || [ $$? -eq 5 ]  # 5: none is marked slow

soak: setup ## the repeated tests that give figures; by hand, takes long
	$(PYTEST) -m soak --timeout 3600 -s

conformance: setup ## the engine against ArangoDB's answers; DRIVER_TESTS=DIR adds the driver's own tests
	$(BIN)/python -m tests.conformance $(if $(DRIVER_TESTS),--driver-tests "$(DRIVER_TESTS)")

surface: setup ## list what the product's tests use of ArangoDB; WRITE=1 keeps the list
	$(BIN)/python -m tests.conformance.surface $(if $(WRITE),--write)

real: setup ## against ArangoDB itself, in containers or at URL=http://user:password@host:port
	@$(BIN)/python -m tests.conformance.real $(if $(URL),--url "$(URL)")

bench: setup ## measure, each figure beside what the machine itself can do
	$(BIN)/python -m region_scheduler.bench.engine
	$(BIN)/region-scheduler bench admission
	$(BIN)/region-scheduler bench scheduling
	$(BIN)/python -m tests.services $(BIN)/region-scheduler bench stores --postgres

check: setup ## format, lint, types, import contracts, dependencies
	$(BIN)/ruff format --check $(PACKAGES)
	$(BIN)/ruff check $(PACKAGES)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry region_scheduler

format: setup ## put the code into the house format
	$(BIN)/ruff check --fix-only --quiet $(PACKAGES)
	$(BIN)/ruff format $(PACKAGES)

docs: ## build the documentation into site/
	@.ci/install docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

requirements: setup ## pin the packages anew, with hashes
	@.ci/pin

clean: ## remove .venv, caches and what was built
	rm -rf .venv build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find $(PACKAGES) -name __pycache__ -type d -prune -exec rm -rf {} +

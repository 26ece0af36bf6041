# The only door. `make help` lists the verbs; each works alone and sets up what it needs.
SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
BIN := .venv/bin
MEMBERS := protos services/kit services/openapi services/docsearch services/runner services/orchestrator services/local
PYTEST_ARGS ?=

.PHONY: integration-kube kube-tools gvisor-tools test-pod help setup demo demo-services test ci lint fmt types contracts generated protos docs lock wheels bench bench-search roundtrip integration-hosted conformance test-engines test-microvm soak-engines bench-engines clean

help: ## list the verbs
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ use
setup: ## create .venv and install everything, npm tools included (PYTHON=… chooses the interpreter)
	@tools/setup

demo: setup ## start the orders API, serve it, and let a real MCP client work with it
	@$(BIN)/python examples/orders/demo.py

demo-services: setup ## the demo over three processes with mutual TLS; strangers are refused
	@$(BIN)/python examples/orders/demo_services.py

##@ check
test: setup ## run all tests (PYTEST_ARGS="-k word" for some)
	@$(BIN)/pytest $(PYTEST_ARGS)

ci: generated lint types contracts test ## everything that must hold before a change lands

lint: setup ## ruff and buf
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check --quiet || { echo "lint: run make fmt"; exit 1; }
	@$(BIN)/buf lint

fmt: setup ## format, and fix what ruff can fix
	@$(BIN)/ruff check --fix --quiet || true
	@$(BIN)/ruff format

types: setup ## mypy, strict
	@$(BIN)/mypy
	@cd examples/orders && ../../$(BIN)/mypy --config-file ../../pyproject.toml -p orders_service
	@$(BIN)/mypy docs/generate.py tests/plugins/allowed_skips.py

contracts: setup ## who may import whom
	@$(BIN)/lint-imports --no-logo

test-engines: setup ## one suite on every engine that runs here, as a matrix (ENGINES=deno,gvisor RUNTIMES=node for some)
	@PYTHONPATH=examples/orders:tests/plugins $(BIN)/python tests/engines/matrix.py \
	  --engines "$(ENGINES)" --runtimes "$(RUNTIMES)" $(PYTEST_ARGS)

test-microvm: setup ## the engine suite on real micro-VMs, in an emulated machine where KVM is missing (RUNTIME=node SOAK=30 CASES=…)
	@SOAK="$(SOAK)" CASES="$(CASES)" tools/microvm/test $(or $(RUNTIME),deno)

soak-engines: setup ## runs with random kills on every engine, then a look for leaks (RUNS=1000 ENGINES=deno SEED=1)
	@PYTHONPATH=examples/orders:tests/plugins $(BIN)/python tests/engines/soak.py \
	  --runs $(or $(RUNS),1000) --seed $(or $(SEED),1) --engines "$(ENGINES)" --runtimes "$(RUNTIMES)"

integration-hosted: setup ## sign-in and token exchange with a certified authorization server and the official clients
	@$(BIN)/pytest tests/integration/hosted tests/e2e/test_hosted.py $(PYTEST_ARGS)

integration-kube: setup kube-tools ## tests on a real control plane, on loopback
	@$(BIN)/pytest tests/kube -s $(PYTEST_ARGS)

conformance: setup ## the MCP conformance suite, both requirement sets, on what is served and on a server with its fixtures
	@PYTHONPATH=examples/orders:tests/plugins $(BIN)/python tests/conformance/run.py

generated: setup ## generated files are what their sources give
	@$(BIN)/python protos/generate.py --check
	@$(BIN)/python docs/generate.py --check

test-pod: setup ## the engine gvisor inside a runner's pod: its rights, attacks, and the engine suite (root, Linux)
	@tools/pod/setup
	@$(BIN)/pytest -q tests/pod
	@PYTHONPATH=tests/plugins $(BIN)/python tests/pod/suite.py $(addprefix tests/engines/test_,contract.py limits.py lifecycle.py)

##@ make
protos: setup ## protos/sandbridge/**.proto into protos/src
	@$(BIN)/python protos/generate.py

docs: setup ## tables of the guide that come from the code
	@$(BIN)/python docs/generate.py

lock: ## re-resolve requirements/dev.txt and the npm lock from what they are made of
	@[ -x $(BIN)/uv ] || tools/setup # not always: setup refuses a lock that this is about to renew
	@$(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links --universal \
	  --python-version 3.11 --no-header requirements/dev.in -o requirements/dev.txt
	@cd tools/npm && PATH="$(CURDIR)/$(BIN):$$PATH" npm install --package-lock-only --ignore-scripts --loglevel=error

wheels: setup ## build the wheels of all members into dist/
	@rm -rf dist
	@for member in $(MEMBERS); do \
	  $(BIN)/uv build --quiet --wheel --offline --no-build-isolation --python $(BIN)/python -o dist $$member || exit 1; done
	@ls dist

gvisor-tools: ## build runsc for the engine gvisor, once for each version (needs Go 1.26)
	@tools/gvisor/build

kube-tools: ## build a control plane, etcd and helm for tests, once for each version (needs Go 1.26)
	@tools/kube/build

##@ measure
bench: setup ## ratios and figures, paired in one run (BENCH="execute bridge" for some)
	@PYTHONPATH=examples/orders $(BIN)/python tests/bench/run.py $(BENCH)

bench-engines: setup ## cold, warm, pool-miss and burst times, memory and rate of every engine (ENGINES=… RUNTIMES=…)
	@PYTHONPATH=examples/orders:tests/plugins $(BIN)/python tests/bench/bench_engines.py \
	  --engines "$(ENGINES)" --runtimes "$(RUNTIMES)"

bench-search: setup ## ranking beside MiniSearch, bm25s and tantivy; 10,000 operations (SETS="tmdb scale" for some)
	@PYTHONPATH=tests/bench $(BIN)/python tests/bench/search/run.py $(SETS)

roundtrip: setup ## requests of ours, read by tools that are not ours, for every real document at hand
	@$(BIN)/python tests/roundtrip/run.py $(DOCUMENTS)

##@ tidy
clean: ## remove .venv, npm packages, caches and builds
	@rm -rf .venv tools/npm/node_modules dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

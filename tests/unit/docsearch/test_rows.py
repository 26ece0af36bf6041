"""Cases of cases/openapi.md about the catalogue, by the number of their row."""

from __future__ import annotations

import json
import re

from sandbridge_docsearch.catalogue import Catalogue
from sandbridge_kit.ports.docs import ANSWER_BYTES, SearchRequest
from sandbridge_openapi.document import load

OPERATIONS = 5_000


def test_row_122_a_huge_document_is_read_once_and_every_answer_stays_small() -> None:
    paths = {
        f"/kinds/{number}/items/{{id}}": {
            "get": {
                "operationId": f"kind{number}.get",
                "summary": f"Get an item of kind {number}",
                "tags": [f"group {number % 40}"],
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
                "responses": {
                    "200": {
                        "description": "ok",
                        "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/S{number % 200}"}}},
                    }
                },
            }
        }
        for number in range(OPERATIONS)
    }
    schemas = {
        f"S{number}": {"type": "object", "properties": {f"field{n}": {"type": "string"} for n in range(20)}}
        for number in range(200)
    }
    whole = {"openapi": "3.1.0", "info": {"title": "Graph", "version": "1"}, "paths": paths}
    document = load(json.dumps({**whole, "components": {"schemas": schemas}}).encode())
    catalogue = Catalogue.build({"api": document})

    answers = [catalogue.search(SearchRequest(query)) for query in ("", f"kind{OPERATIONS - 1}.get", "get an item")]

    assert (len(document.operations), document.skipped) == (OPERATIONS, ())
    # One object a schema, however many operations use it.
    assert len(document.schemas) == 200
    assert answers[1].structured["cards"][0]["id"] == f"kind{OPERATIONS - 1}.get"
    assert [len(one.markdown.encode()) <= ANSWER_BYTES for one in answers] == [True] * 3


def test_row_142_every_call_that_a_search_names_is_a_call_of_the_document(catalogue: Catalogue) -> None:
    named = {
        found
        for query in ("", "orders", "report", "delete")
        for found in re.findall(r"api((?:\.\w+)+)\(", catalogue.search(SearchRequest(query)).markdown)
    }

    calls = {f".{operation.call}" for document in catalogue.documents.values() for operation in document.operations}
    assert (named - calls, len(named)) == (set(), 4)

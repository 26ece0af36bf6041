"""Examples can be run: they are what a script would write, and they pass the check of arguments."""

import json
from pathlib import Path
from typing import Any

import pytest

from sandbridge_openapi.arguments import Arguments, Binary
from sandbridge_openapi.document import load
from sandbridge_openapi.errors import InvalidArguments, RequestRefused
from sandbridge_openapi.example import example, example_arguments
from sandbridge_openapi.model import Document, Operation
from sandbridge_openapi.pattern_example import matching
from sandbridge_openapi.request import build

OK = {"200": {"description": "ok", "content": {"application/json": {"schema": {}}}}}


def a_document(operation: dict[str, Any], schemas: dict[str, Any] | None = None) -> Document:
    whole = {
        "openapi": "3.1.0",
        "info": {"title": "T", "version": "1"},
        "paths": {"/things/{id}": {"post": {"operationId": "things.make", "responses": OK, **operation}}},
        "components": {"schemas": schemas or {}},
    }
    return load(json.dumps(whole).encode())


ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}


def with_body(schema: Any, content_type: str = "application/json", **more: Any) -> dict[str, Any]:
    body = {"required": True, "content": {content_type: {"schema": schema, **more}}}
    return {"parameters": [ID], "requestBody": body}


def script(operation: dict[str, Any], root: str = "api") -> str:
    document = a_document(operation)
    return example(document.operations[0], root, document.schemas)


def test_a_derived_example_calls_with_what_is_required_and_returns_the_data() -> None:
    body = with_body(
        {
            "type": "object",
            "required": ["name", "kind"],
            "properties": {
                "name": {"type": "string", "examples": ["Lamp"]},
                "kind": {"enum": ["new", "used"]},
                "note": {"type": "string"},
            },
        }
    )

    optional = {"name": "q", "in": "query", "schema": {"type": "string"}}

    assert script({**body, "parameters": [ID, optional]}) == (
        'const { data, error } = await api.things.make({ path: { id: "id" }, body: { name: "Lamp", kind: "new" } });\n'
        "if (error) throw new Error(JSON.stringify(error));\n"
        "return data;"
    )


def test_a_long_call_takes_several_lines() -> None:
    longer = {**ID, "schema": {"type": "string", "examples": ["a" * 80]}}

    assert script({"parameters": [longer]}).startswith(
        "const { data, error } = await api.things.make({\n  path: {\n" + f'    id: "{"a" * 80}",\n' + "  },\n});\n"
    )


def test_without_an_answer_body_the_status_is_returned() -> None:
    assert script({"parameters": [ID], "responses": {"204": {"description": "Gone."}}}, root="apis.shop") == (
        'const { error, response } = await apis.shop.things.make({ path: { id: "id" } });\n'
        "if (error) throw new Error(JSON.stringify(error));\n"
        "return response.status;"
    )


def test_bytes_are_written_as_a_blob() -> None:
    form = {"type": "object", "required": ["file"], "properties": {"file": {"type": "string", "format": "binary"}}}

    assert 'body: { file: new Blob(["hello"]) }' in script(with_body(form, "multipart/form-data"))
    assert 'body: new Blob(["hello"])' in script(with_body({}, "application/octet-stream"))


SAMPLE = "const { data, error } = await shop.things.make({ path: { id: 'a' } });\nreturn data; // shop.example"


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        (SAMPLE, SAMPLE.replace("await shop.", "await api.").replace("// shop.example", "// api.example")),
        ("const shop = new Shop(); await shop.things.make()", None),
        ("import { shop } from 'shop'; await shop.things.make()", None),
        ("await shop.things.other()", None),
        ("await fetch('/things')", None),
        ("await shop.things.make() // \u202ehidden\u0007", "await api.things.make() // hidden"),
        ("await shop.things.make()" + " " * 4_000, None),
    ],
)
def test_the_documents_own_sample_is_used_only_if_it_calls_as_scripts_do(source: str, kept: str | None) -> None:
    operation = {"parameters": [ID], "x-codeSamples": [{"lang": "TypeScript", "source": source}]}

    found = script(operation)

    assert found == kept if kept is not None else found.startswith("const { data, error } = await api.things.make({")


SCHEMAS = {
    "Tree": {
        "type": "object",
        "required": ["label"],
        "properties": {"label": {"type": "string"}, "up": {"$ref": "#/components/schemas/Tree"}},
    },
    "Pet": {
        "type": "object",
        "required": ["kind"],
        "properties": {"kind": {"type": "string"}},
        "discriminator": {"propertyName": "kind", "mapping": {"cat": "#/components/schemas/Cat"}},
    },
    "Cat": {
        "allOf": [
            {"$ref": "#/components/schemas/Pet"},
            {"type": "object", "required": ["lives"], "properties": {"lives": {"type": "integer", "minimum": 9}}},
        ]
    },
}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "minimum": 5, "maximum": 9, "multipleOf": 4},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        {"type": "integer", "exclusiveMaximum": -3},
        {"type": "string", "minLength": 30, "maxLength": 34, "pattern": "^AC[0-9a-f]{32}$"},
        {"type": "string", "pattern": "^(red|green)-[^0-9]+\\d{2,4}$"},
        {"type": "string", "maxLength": 2},
        {"type": "array", "items": {"type": "string"}, "minItems": 3, "uniqueItems": True},
        {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2, "uniqueItems": True},
        {"type": "array", "items": {"type": "integer"}, "maxItems": 0},
        {"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "readOnly": True}}},
        {
            "type": "object",
            "properties": {"a": {}, "b": {"type": "string"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        {"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}}, {"required": ["a"]}]},
        {"anyOf": [{"type": "null"}, {"type": "object", "required": ["x"], "properties": {"x": {"const": 7}}}]},
        {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer", "examples": ["seven"]}}},
        {"type": "integer", "default": "many"},
        {"enum": [None, 1]},
        {"anyOf": [{"allOf": [{"type": "string"}, {"type": "integer"}]}, {"type": "integer"}]},
        {"$ref": "#/components/schemas/Tree", "required": ["up"]},
        {"$ref": "#/components/schemas/Pet"},
        {"type": ["null", "boolean"]},
        {},
        True,
    ],
)
def test_a_made_body_passes_the_check_of_arguments(schema: Any) -> None:
    document = a_document(with_body(schema), SCHEMAS)

    assert _refusal(document, document.operations[0]) is None


def test_an_example_of_the_document_is_used_where_it_fits_and_only_there() -> None:
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    bodies = [
        example_arguments(document.operations[0], document.schemas)["body"]
        for given in ({"n": 7}, {"n": "seven"})
        for document in [a_document(with_body(schema, example=given))]
    ]

    assert bodies == [{"n": 7}, {"n": 1}]


def test_raw_bytes_are_given_as_a_binary() -> None:
    document = a_document(with_body({}, "image/png"))

    assert example_arguments(document.operations[0], document.schemas)["body"] == Binary(b"hello")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("^[a-z]{3}$", "aaa"),
        ("^(foo|bar)+\\.x?$", "foo."),
        ("\\d{4}-\\d{2}", "0000-00"),
        ("^[^a]$", "0"),
        ("(?=x)y", "y"),
        ("a|b", "a"),
        ("((", None),
        ("[", "["),
        ("x" * 500, None),
    ],
)
def test_a_text_is_built_along_a_simple_pattern(pattern: str, expected: str | None) -> None:
    assert matching(pattern) == expected


def _refusal(document: Document, operation: Operation) -> str | None:
    arguments = Arguments(**example_arguments(operation, document.schemas))
    try:
        build(operation, arguments, base_url="https://api.example/v1", schemas=document.schemas)
    except (InvalidArguments, RequestRefused) as refused:
        return str(refused)
    return None


@pytest.mark.parametrize(
    "name", ["openagenda.yaml", "petstore-3.1.json", "notion.json", "stripe-2022.json", "twilio-api.json"]
)
def test_examples_of_real_operations_pass_the_check_of_arguments(shared_data: Path, name: str) -> None:
    document = load((shared_data / "specs" / name).read_bytes())

    assert {o.call: refusal for o in document.operations if (refusal := _refusal(document, o))} == {}

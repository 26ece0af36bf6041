"""Parameters are read with every default of the specification filled in, each in its own place."""

from __future__ import annotations

from typing import Any

import pytest

from sandbridge_openapi.document import load
from sandbridge_openapi.model import Document, Parameter

STRING = {"type": "string"}


def read(parameters: str, path: str = "/p", more: str = "") -> Document:
    return load(f"openapi: 3.1.0\npaths:\n  '{path}': {{get: {{parameters: {parameters}}}{more}}}\n".encode())


def parameters(written: str, path: str = "/p", more: str = "") -> tuple[Parameter, ...]:
    (operation,) = read(written, path, more).operations
    return operation.parameters


def query(name: str, schema: Any = None, **more: Any) -> Parameter:
    given = {"required": False, "style": "form", "explode": True, **more}
    return Parameter(name, "query", STRING if schema is None else schema, **given)


ARRAY = {"type": "array", "items": STRING}


@pytest.mark.parametrize(
    ("written", "path", "expected"),
    [
        pytest.param(
            "[{name: tags, in: query, explode: false, schema: {type: array, items: {type: string}}}]",
            "/p",
            query("tags", ARRAY, explode=False),
            id="row_40 row_41",
        ),
        pytest.param(
            "[{name: f, in: query, style: deepObject, schema: {type: object}}]",
            "/p",
            query("f", {"type": "object"}, style="deepObject", explode=False),
            id="row_43",
        ),
        pytest.param(
            "[{name: t, in: query, style: pipeDelimited, schema: {type: array, items: {type: string}}}]",
            "/p",
            query("t", ARRAY, style="pipeDelimited", explode=False),
            id="row_46",
        ),
        pytest.param(
            "[{name: path, in: query, allowReserved: true, schema: {type: string}}]",
            "/p",
            query("path", allow_reserved=True),
            id="row_47",
        ),
        pytest.param(
            "[{name: id, in: path, required: true, style: matrix, explode: true, schema: {type: string}}]",
            "/w/{id}",
            Parameter("id", "path", STRING, True, "matrix", True),
            id="row_49",
        ),
        pytest.param(
            "[{name: X-Dry-Run, in: header, schema: {type: boolean}}]",
            "/p",
            Parameter("X-Dry-Run", "header", {"type": "boolean"}, False, "simple", False),
            id="row_50",
        ),
        pytest.param(
            "[{name: sid, in: cookie, required: true, schema: {type: string}}]",
            "/p",
            Parameter("sid", "cookie", STRING, True, "form", True),
            id="row_52",
        ),
        pytest.param(
            "[{name: X-Workspace, in: header, required: true, schema: {type: string}}]",
            "/p",
            Parameter("X-Workspace", "header", STRING, True, "simple", False),
            id="row_53",
        ),
        pytest.param(
            "[{name: limit, in: query, required: true, schema: {type: integer, default: 20}}]",
            "/p",
            query("limit", {"type": "integer", "default": 20}, send_default=True),
            id="row_59",
        ),
        pytest.param(
            "[{name: limit, in: query, schema: {type: integer, default: 20}}]",
            "/p",
            query("limit", {"type": "integer", "default": 20}),
            id="an optional default",
        ),
        pytest.param(
            "[{name: path, in: path, required: true, schema: {type: string}}]",
            "/files/{+path}",
            Parameter("path", "path", STRING, True, "simple", False, multi_segment=True),
            id="row_68",
        ),
        pytest.param(
            "[{name: path, in: path, x-multi-segment: true, schema: {type: string}}]",
            "/files/{path}",
            Parameter("path", "path", STRING, True, "simple", False, multi_segment=True),
            id="row_68 marked",
        ),
        pytest.param(
            "[{name: t, in: path, required: true, schema: {type: string}}]",
            "/{t}/x/{t}",
            Parameter("t", "path", STRING, True, "simple", False),
            id="row_65",
        ),
        pytest.param("[]", "/p/{id}", Parameter("id", "path", STRING, True, "simple", False), id="a placeholder alone"),
        pytest.param(
            "[{name: 'x){import os#', in: query, schema: {type: string}}]", "/p", query("x){import os#"), id="row_70"
        ),
        pytest.param(
            "[{name: filter, in: query, content: {application/json: {schema: {type: object}, example: {a: 1}}}}]",
            "/p",
            query("filter", {"type": "object"}, content_type="application/json", example={"a": 1}),
            id="described by content",
        ),
        pytest.param(
            "[{name: q, in: query, style: matrix, schema: {type: string}}]",
            "/p",
            query("q"),
            id="a style of another place",
        ),
        pytest.param("[{name: 7, in: query}]", "/p", query("7", True), id="a number as name"),
        pytest.param(
            '[{name: q, in: query, deprecated: true, description: "a\\u202Eb", '
            "examples: {one: {value: x}}, schema: {type: string}}]",
            "/p",
            query("q", deprecated=True, description="ab", example="x"),
            id="O10 about",
        ),
    ],
)
def test_a_parameter_is_read_with_its_defaults(written: str, path: str, expected: Parameter) -> None:
    assert parameters(written, path) == (expected,)


def test_row_53_headers_that_are_not_the_callers_business_are_ignored() -> None:
    names = ("Accept", "content-type", "AUTHORIZATION", "X-Other")
    written = ", ".join(f"{{name: {name}, in: header, required: true, schema: {{type: string}}}}" for name in names)

    assert [p.name for p in parameters(f"[{written}]")] == ["X-Other"]


def test_row_61_one_name_in_several_places_stays_several_parameters() -> None:
    written = (
        "[{name: id, in: path, required: true, schema: {type: string}}, {name: id, in: query, schema: {type: integer}}]"
    )

    found = [(p.location, p.schema) for p in parameters(written, "/w/{id}")]

    assert found == [("path", STRING), ("query", {"type": "integer"})]


def test_an_operation_inherits_its_paths_parameters_and_overrides_them_by_name_and_place() -> None:
    shared = "[{name: a, in: query, schema: {type: string}}, {name: X-B, in: header, schema: {type: string}}]"
    own = "[{name: x-b, in: header, schema: {type: integer}}, {name: a, in: header, schema: {type: string}}]"

    found = [(p.name, p.location, p.schema) for p in parameters(own, more=f", parameters: {shared}")]

    assert found == [
        ("a", "query", STRING),
        ("x-b", "header", {"type": "integer"}),
        ("a", "header", STRING),
    ]


def test_a_parameter_that_stands_twice_counts_once() -> None:
    document = read("[{name: a, in: query, schema: {type: string}}, {name: a, in: query, schema: {type: integer}}]")

    assert ([p.schema for p in document.operations[0].parameters], document.warnings[0].pointer) == (
        [STRING],
        "/paths/~1p/get/parameters/1",
    )


def test_row_11_a_parameter_by_reference_is_read_and_may_be_described_where_it_is_used() -> None:
    text = b"""
openapi: 3.1.0
paths:
  /a: {get: {parameters: [{$ref: '#/components/parameters/Limit'}]}}
  /b: {get: {parameters: [{$ref: '#/components/parameters/Limit', description: Here}]}}
  /c: {get: {parameters: [{$ref: '#/components/parameters/Alias'}]}}
  /d: {get: {parameters: [{$ref: '#/components/parameters/Alias', description: Here}]}}
components:
  parameters:
    Limit: {name: limit, in: query, description: There, schema: {type: integer, maximum: 100}}
    Alias: {$ref: '#/components/parameters/Limit', description: On the way}
"""
    found = [operation.parameters for operation in load(text).operations]

    limit = {"type": "integer", "maximum": 100}
    assert found == [(query("limit", limit, description=about),) for about in ("There", "Here", "On the way", "Here")]


def test_a_default_behind_a_reference_makes_a_required_parameter_optional() -> None:
    text = b"""
openapi: 3.1.0
paths: {/a: {get: {parameters: [{name: n, in: query, required: true, schema: {$ref: '#/components/schemas/N'}}]}}}
components: {schemas: {N: {type: integer, default: 5}}}
"""
    (parameter,) = load(text).operations[0].parameters

    assert (parameter.required, parameter.send_default) == (False, True)


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (
            "[{name: b, in: body, required: true}]",
            "the parameter b is in 'body'; it must be in path, query, header or cookie",
        ),
        ("[{in: query, required: true}]", "a parameter has no name"),
        ("[5]", "a parameter is not an object"),
        ("{a: 1}", "`parameters` is not a list"),
        ("[{$ref: '#/nowhere'}]", "a parameter cannot be read: #/nowhere points to nothing in this document"),
    ],
)
def test_an_operation_whose_parameter_cannot_be_read_is_skipped_and_says_where(written: str, reason: str) -> None:
    document = read(written)

    assert (document.operations, document.skipped[0].pointer) == ((), "/paths/~1p/get")
    assert document.skipped[0].reason.startswith(f"{reason} (at /paths/~1p/get/parameters")


@pytest.mark.parametrize(
    "written", ["[{in: query, name: ''}]", "[{in: querystring, name: q}]", "[{in: formData, name: f}]"]
)
def test_an_optional_parameter_that_cannot_be_read_is_left_out(written: str) -> None:
    document = read(written)

    assert ([o.parameters for o in document.operations], document.warnings[0].pointer) == (
        [()],
        "/paths/~1p/get/parameters/0",
    )


def test_a_path_parameter_without_a_placeholder_is_left_out() -> None:
    document = read("[{name: id, in: path, required: true, schema: {type: string}}]")

    assert (document.operations[0].parameters, document.warnings[0].pointer) == ((), "/paths/~1p")


def test_a_path_parameter_with_a_default_need_not_be_given() -> None:
    (parameter,) = parameters("[{name: v, in: path, required: true, schema: {type: string, default: v1}}]", "/{v}/x")

    assert (parameter.required, parameter.send_default) == (False, True)

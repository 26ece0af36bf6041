"""Swagger 2.0 operations become the same model as those of OpenAPI 3."""

from __future__ import annotations

import pytest

from sandbridge_openapi import request
from sandbridge_openapi.arguments import Arguments
from sandbridge_openapi.document import load
from sandbridge_openapi.errors import InvalidArguments, Problem
from sandbridge_openapi.model import Body, Document, Encoding, MediaType, Parameter, Response, Server

STRING = {"type": "string"}
BYTES = {"type": "string", "format": "binary"}
IDS = {"type": "array", "items": {"type": "integer"}}


def read(operation: str, root: str = "{}", item: str = "") -> Document:
    head = f"swagger: '2.0'\ninfo: {{title: t, version: '1'}}\n<<: {root}\n"
    return load(f"{head}paths: {{'/p': {{post: {operation}{item}}}}}\n".encode())


def test_row_112_a_document_is_converted() -> None:
    document = load(
        b"""
swagger: '2.0'
info: {title: t, version: '1'}
host: api.test
basePath: /v1
schemes: [https]
consumes: [application/json]
paths:
  /p:
    post:
      parameters: [{in: body, name: dto, required: true, schema: {$ref: '#/definitions/Dto'}}]
      responses: {'200': {description: ok, schema: {$ref: '#/definitions/Dto'}}}
definitions: {Dto: {type: object, properties: {a: {type: string}}}}
"""
    )
    (operation,) = document.operations
    media = (MediaType("application/json", {"$ref": "#/$defs/Dto"}),)

    assert (document.servers, operation.body, operation.responses, operation.parameters, document.schemas) == (
        (Server("https://api.test/v1"),),
        Body(True, media),
        (Response("200", "ok", media),),
        (),
        {"Dto": {"type": "object", "properties": {"a": STRING}}},
    )


def test_row_113_form_parameters_become_a_body_with_encodings() -> None:
    (operation,) = read(
        """{consumes: [multipart/form-data], parameters: [
        {in: formData, name: file, type: file, required: true, description: d},
        {in: formData, name: ids, type: array, items: {type: integer}, collectionFormat: multi},
        {in: formData, name: tags, type: array, items: {type: integer}, collectionFormat: pipes},
        {in: query, name: q, type: array, items: {type: integer}}]}"""
    ).operations

    schema = {
        "type": "object",
        "properties": {"file": {**BYTES, "description": "d"}, "ids": IDS, "tags": IDS},
        "required": ["file"],
    }
    encodings = {"ids": Encoding(style="form", explode=True), "tags": Encoding(style="pipeDelimited", explode=False)}
    assert (operation.body, operation.parameters) == (
        Body(True, (MediaType("multipart/form-data", schema, encodings),)),
        (Parameter("q", "query", IDS, False, "form", False),),
    )


@pytest.mark.parametrize(
    ("consumes", "kind", "types"),
    [
        ("[application/json]", "string", ["application/x-www-form-urlencoded"]),
        ("[]", "string", ["application/x-www-form-urlencoded"]),
        ("[application/x-www-form-urlencoded]", "string", ["application/x-www-form-urlencoded"]),
        (
            "[application/x-www-form-urlencoded, multipart/form-data]",
            "string",
            ["application/x-www-form-urlencoded", "multipart/form-data"],
        ),
        ("[application/x-www-form-urlencoded]", "file", ["multipart/form-data"]),
        ("[application/x-www-form-urlencoded, multipart/form-data]", "file", ["multipart/form-data"]),
    ],
)
def test_row_113_a_form_is_sent_in_a_type_that_can_carry_it(consumes: str, kind: str, types: list[str]) -> None:
    (operation,) = read(f"{{consumes: {consumes}, parameters: [{{in: formData, name: f, type: {kind}}}]}}").operations

    assert operation.body is not None
    assert [media.content_type for media in operation.body.media] == types


@pytest.mark.parametrize(
    ("place", "collection", "style", "explode"),
    [
        ("query", "csv", "form", False),
        ("query", "ssv", "spaceDelimited", False),
        ("query", "tsv", "tabDelimited", False),
        ("query", "pipes", "pipeDelimited", False),
        ("query", "multi", "form", True),
        ("header", "csv", "simple", False),
        ("header", "pipes", "pipeDelimited", False),
        ("header", "tsv", "tabDelimited", False),
    ],
)
def test_row_113_every_collection_format_has_its_style(place: str, collection: str, style: str, explode: bool) -> None:
    written = f"{{in: {place}, name: ids, type: array, items: {{type: integer}}, collectionFormat: {collection}}}"
    (parameter,) = read(f"{{parameters: [{written}]}}").operations[0].parameters

    assert (parameter.style, parameter.explode, parameter.schema) == (style, explode, IDS)


@pytest.mark.parametrize(
    ("root", "operation", "types"),
    [
        ("{consumes: [a/b, c/d]}", "", ["a/b", "c/d"]),
        ("{consumes: [a/b]}", "consumes: [e/f], ", ["e/f"]),
        pytest.param("{consumes: [a/b]}", "consumes: [], ", ["application/json"], id="row_113 cleared"),
        ("{}", "", ["application/json"]),
    ],
)
def test_a_body_is_sent_in_the_types_that_are_consumed(root: str, operation: str, types: list[str]) -> None:
    (found,) = read(f"{{{operation}parameters: [{{in: body, name: b, schema: {{type: string}}}}]}}", root).operations

    assert found.body == Body(False, tuple(MediaType(kind, STRING) for kind in types))


def test_responses_take_their_types_examples_and_headers_from_around_them() -> None:
    document = read(
        """{produces: [application/json, text/csv], responses: {
        200: {description: ok, schema: {type: string}, examples: {text/csv: 'a,b'},
        headers: {X-Rate: {type: integer}}}, 201: {description: file, schema: {type: file}},
        204: {description: none}, default: {$ref: '#/responses/Bad'}}}""",
        "{responses: {Bad: {description: bad, schema: {type: string}}}}",
    )

    assert document.operations[0].responses == (
        Response(
            "200",
            "ok",
            (MediaType("application/json", STRING), MediaType("text/csv", STRING, example="a,b")),
            {"X-Rate": {"type": "integer"}},
        ),
        Response("201", "file", (MediaType("application/json", BYTES), MediaType("text/csv", BYTES))),
        Response("204", "none"),
        Response("default", "bad", (MediaType("application/json", STRING), MediaType("text/csv", STRING))),
    )


def test_parameters_are_inherited_from_the_path_and_may_be_references() -> None:
    document = read(
        "{parameters: [{$ref: '#/parameters/Page'}, {in: body, name: own, schema: {type: integer}}]}",
        "{parameters: {Page: {in: query, name: page, type: integer, minimum: 0, exclusiveMinimum: true}}}",
        ", parameters: [{in: query, name: page, type: string}, {in: body, name: shared, schema: {type: string}}]",
    )
    (operation,) = document.operations

    assert (operation.parameters, operation.body) == (
        (Parameter("page", "query", {"type": "integer", "exclusiveMinimum": 0}, False, "form", True),),
        Body(False, (MediaType("application/json", {"type": "integer"}),)),
    )


def test_an_optional_parameter_with_a_default_keeps_it_and_a_required_one_sends_it() -> None:
    (operation,) = read(
        "{parameters: [{in: query, name: a, type: integer, default: 1}, "
        "{in: query, name: b, required: true, type: integer, default: 2}]}"
    ).operations

    assert [(p.name, p.required, p.send_default) for p in operation.parameters] == [
        ("a", False, False),
        ("b", False, True),
    ]


@pytest.mark.parametrize(
    ("root", "origin", "urls"),
    [
        ("{host: api.test, schemes: [http, https, wss]}", None, ["https://api.test/", "http://api.test/"]),
        ("{host: 'api.test:8443', basePath: v1}", None, ["https://api.test:8443/v1"]),
        ("{host: api.test}", "http://docs.test/s.json", ["http://api.test/"]),
        ("{host: 'https://api.test/', basePath: /v1}", "http://docs.test/s.json", ["https://api.test/v1"]),
        ("{basePath: /v1}", "https://docs.test/s.json", ["https://docs.test/v1"]),
        ("{basePath: /v1}", None, ["/v1"]),
        ("{}", None, ["/"]),
        ("{host: 'user:pw@api.test'}", None, ["https://api.test/"]),
    ],
)
def test_host_base_path_and_schemes_become_servers(root: str, origin: str | None, urls: list[str]) -> None:
    document = load(f"swagger: '2.0'\n<<: {root}\npaths: {{}}\n".encode(), origin=origin)

    assert [server.url for server in document.servers] == urls


def test_an_operation_may_state_schemes_of_its_own() -> None:
    document = read("{schemes: [http]}", "{host: api.test, schemes: [https]}")

    assert (document.servers, document.operations[0].servers) == (
        (Server("https://api.test/"),),
        (Server("http://api.test/"),),
    )


@pytest.mark.parametrize("parameter", ["{$ref: '#/parameters/None'}", "{name: x}", "7"])
def test_an_operation_whose_parameter_cannot_be_read_is_skipped(parameter: str) -> None:
    document = read(f"{{parameters: [{parameter}]}}", item=", get: {}")

    assert ([o.method for o in document.operations], [s.method for s in document.skipped]) == (["GET"], ["POST"])


@pytest.mark.parametrize(
    ("collection", "path", "header", "part"),
    [
        ("csv", "/p/a,b%20c", "a,b c", b"a,b c"),
        ("ssv", "/p/a%20b", "a b", b"a b"),
        ("pipes", "/p/a%7Cb%20c", "a|b c", b"a|b c"),
    ],
)
def test_row_113_every_collection_format_separates_the_items_in_every_place(
    collection: str, path: str, header: str, part: bytes
) -> None:
    array = f"required: true, type: array, items: {{type: string}}, collectionFormat: {collection}"
    places = {"path": "id", "header": "X-Ids", "formData": "tags"}
    stated = ", ".join(f"{{in: {place}, name: {name}, {array}}}" for place, name in places.items())
    document = load(
        b"swagger: '2.0'\ninfo: {title: t, version: '1'}\npaths: {'/p/{id}': {post: {consumes: [multipart/form-data], "
        + f"parameters: [{stated}], responses: {{'200': {{description: ok}}}}}}}}}}\n".encode()
    )
    items = ["a", "b c"] if collection in ("csv", "pipes") else ["a", "b"]
    given = Arguments(path={"id": items}, headers={"X-Ids": items}, body={"tags": items})

    sent = request.build(document.operations[0], given, base_url="https://api.test", schemas=document.schemas)

    assert (sent.url.removeprefix("https://api.test"), dict(sent.headers)["X-Ids"]) == (path, header)
    assert sent.body is not None
    assert sent.body.split(b"\r\n\r\n")[1].partition(b"\r\n--")[0] == part


def test_an_item_that_holds_the_separator_of_its_header_is_refused() -> None:
    array = "type: array, items: {type: string}, collectionFormat: pipes"
    document = read(
        f"{{parameters: [{{in: header, name: X-Ids, {array}}}], responses: {{'200': {{description: ok}}}}}}"
    )
    given = Arguments(headers={"X-Ids": ["a|b", "c"]})

    with pytest.raises(InvalidArguments) as caught:
        request.build(document.operations[0], given, base_url="https://api.test", schemas=document.schemas)

    assert caught.value.problems == (
        Problem("headers.X-Ids", "an item contains '|', which separates the items of this header"),
    )

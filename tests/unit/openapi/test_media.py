"""Bodies and responses keep every media type, and what cannot be read spoils only itself."""

from __future__ import annotations

import pytest

from sandbridge_openapi.document import load
from sandbridge_openapi.model import Body, Document, Encoding, MediaType, Operation, Response

STRING = {"type": "string"}
BYTES = {"type": "string", "format": "binary"}


def document(operation: str, components: str = "{}") -> Document:
    return load(f"openapi: 3.1.0\npaths:\n  /p: {{post: {operation}}}\ncomponents: {components}\n".encode())


def read(operation: str, components: str = "{}") -> Operation:
    (found,) = document(operation, components).operations
    return found


@pytest.mark.parametrize(
    ("written", "body"),
    [
        pytest.param(
            "{required: true, description: d, content: {application/json: {schema: {type: string}, example: a}}}",
            Body(True, (MediaType("application/json", STRING, example="a"),), "d"),
            id="JSON",
        ),
        pytest.param(
            "{content: {'application/json; charset=utf-8': {schema: {type: string}}}}",
            Body(False, (MediaType("application/json; charset=utf-8", STRING),)),
            id="row_85",
        ),
        pytest.param(
            "{content: {text/csv: {schema: {type: string}}, application/json: {schema: {type: string}}}}",
            Body(False, (MediaType("text/csv", STRING), MediaType("application/json", STRING))),
            id="row_81 several in document order",
        ),
        pytest.param(
            "{content: {application/x-www-form-urlencoded: {schema: {type: object}, "
            "encoding: {meta: {style: deepObject, explode: true}, "
            "ids: {style: form, explode: false, allowReserved: true}}}}}",
            Body(
                False,
                (
                    MediaType(
                        "application/x-www-form-urlencoded",
                        {"type": "object"},
                        {
                            "meta": Encoding(style="deepObject", explode=True),
                            "ids": Encoding(style="form", explode=False, allow_reserved=True),
                        },
                    ),
                ),
            ),
            id="row_75",
        ),
        pytest.param(
            "{required: true, content: {multipart/form-data: {schema: {type: object, required: [file], "
            "properties: {file: {type: string, format: binary}}}, "
            "encoding: {file: {contentType: image/png, headers: {X-A: {schema: {type: string}}}}, bad: 5}}}}",
            Body(
                True,
                (
                    MediaType(
                        "multipart/form-data",
                        {"type": "object", "required": ["file"], "properties": {"file": BYTES}},
                        {"file": Encoding(content_type="image/png", headers={"X-A": STRING})},
                    ),
                ),
            ),
            id="row_78 row_79",
        ),
        pytest.param(
            "{content: {application/octet-stream: {}, image/png: , text/plain: {}}}",
            Body(
                False,
                (
                    MediaType("application/octet-stream", BYTES),
                    MediaType("image/png", BYTES),
                    MediaType("text/plain", True),
                ),
            ),
            id="row_82 without a schema",
        ),
        pytest.param(
            "{content: {application/json: {schema: 5}}}",
            Body(False, (MediaType("application/json", True),)),
            id="a broken schema",
        ),
        pytest.param("{content: {}}", None, id="no media type"),
        pytest.param("", None, id="no body"),
    ],
)
def test_a_body_keeps_every_media_type(written: str, body: Body | None) -> None:
    assert read(f"{{requestBody: {written}}}").body == body


def test_row_18_a_body_of_conjunctions_keeps_all_parts() -> None:
    parts = (
        "[{type: object, properties: {a: {type: string}}}, "
        "{type: object, required: [b], properties: {b: {type: integer}}}]"
    )
    body = read(f"{{requestBody: {{content: {{application/json: {{schema: {{allOf: {parts}}}}}}}}}}}").body

    assert body is not None
    assert body.media[0].schema == {
        "allOf": [
            {"type": "object", "properties": {"a": STRING}},
            {"type": "object", "required": ["b"], "properties": {"b": {"type": "integer"}}},
        ]
    }


def test_row_10_a_body_by_reference_is_read() -> None:
    components = "{requestBodies: {Pet: {required: true, content: {application/json: {schema: {type: string}}}}}}"

    assert read("{requestBody: {$ref: '#/components/requestBodies/Pet'}}", components).body == Body(
        True, (MediaType("application/json", STRING),)
    )


@pytest.mark.parametrize("written", ["{$ref: '#/nowhere'}", "{$ref: 'http://h/x'}", "5"])
def test_an_operation_whose_body_cannot_be_read_is_skipped(written: str) -> None:
    found = document(f"{{requestBody: {written}}}")

    assert (found.operations, [s.pointer for s in found.skipped]) == ((), ["/paths/~1p/post"])


def test_row_7_all_responses_are_kept_and_what_they_refer_to_is_defined() -> None:
    found = document(
        "{responses: {200: {description: ok, content: {application/json: {schema: {type: array, items: "
        "{$ref: '#/components/schemas/Only'}}}}}, 4xx: {$ref: '#/components/responses/Bad'}, "
        "default: {$ref: '#/components/responses/Bad'}, x-note: 1, later: {}}}",
        "{schemas: {Only: {type: string}}, responses: {Bad: {description: bad, headers: "
        "{Retry-After: {schema: {type: integer}}, X-Old: {content: {text/plain: {schema: {type: string}}}}}}}}",
    )
    headers = {"Retry-After": {"type": "integer"}, "X-Old": STRING}

    assert (found.operations[0].responses, found.schemas) == (
        (
            Response(
                "200", "ok", (MediaType("application/json", {"type": "array", "items": {"$ref": "#/$defs/Only"}}),)
            ),
            Response("4XX", "bad", (), headers),
            Response("default", "bad", (), headers),
        ),
        {"Only": STRING},
    )


def test_a_response_that_cannot_be_read_is_kept_without_its_content_and_reported() -> None:
    found = document(
        "{responses: {200: {$ref: '#/nowhere'}, 201: 5, "
        "202: {headers: {X: {$ref: '#/no'}, Y: 5}, content: {a/b: {$ref: '#/n'}}}}}"
    )

    assert (found.operations[0].responses, len([w for w in found.warnings if w.pointer.startswith("/paths")])) == (
        (
            Response("200", ""),
            Response("201", ""),
            Response("202", "", (MediaType("a/b", True),), {"X": True, "Y": True}),
        ),
        4,
    )


@pytest.mark.parametrize(
    ("media", "example"),
    [
        ("{example: {a: 1}}", {"a": 1}),
        ("{examples: {one: {value: 1}, two: {value: 2}}}", 1),
        ("{examples: {gone: {$ref: '#/nowhere'}, two: {value: 2}}}", 2),
        ("{examples: {one: {$ref: '#/components/examples/E'}}}", "e"),
        ("{example: {$ref: '#/components/examples/E'}}", "e"),
        ("{examples: {far: {externalValue: 'http://h/x'}}}", None),
        ("{}", None),
    ],
)
def test_the_first_example_that_can_be_read_is_taken(media: str, example: object) -> None:
    (response,) = read(
        f"{{responses: {{200: {{content: {{a/b: {media}}}}}}}}}", "{examples: {E: {value: e}}}"
    ).responses

    assert response.media[0].example == example

"""Request bodies: the media type that is chosen, and the bytes that are sent."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sandbridge_openapi import body as bodies
from sandbridge_openapi import document, multipart
from sandbridge_openapi.arguments import NO_BODY, Binary, BodyValue, Form, FormPart
from sandbridge_openapi.body import Encoded
from sandbridge_openapi.errors import InvalidArguments
from sandbridge_openapi.model import Body, Document
from sandbridge_openapi.multipart import Part

PNG = b"\x89PNG\r\n\x1a\n\x00"
URLENCODED = "application/x-www-form-urlencoded"


def load(content: str, *, required: bool = False, version: str = "3.1.0") -> Document:
    operation = {
        "operationId": "o",
        "requestBody": {"required": required, "content": yaml.safe_load(content)},
        "responses": {"200": {"description": "ok"}},
    }
    tree = {"openapi": version, "info": {"title": "t", "version": "1"}, "paths": {"/w": {"post": operation}}}
    return document.load(json.dumps(tree).encode())


def encoded(content: str, value: BodyValue, *, wanted: str | None = None, required: bool = False) -> Encoded:
    loaded = load(content, required=required)
    return bodies.encode(loaded.operations[0].body, value, wanted=wanted, schemas=loaded.schemas)


def problems(content: str, value: BodyValue, **more: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidArguments) as caught:
        encoded(content, value, **more)
    return [(problem.where, problem.message) for problem in caught.value.problems]


def parts(sent: Encoded) -> list[tuple[str, bytes]]:
    """Each part's headers as one text, and its bytes."""
    assert sent.content_type is not None
    assert sent.data is not None
    boundary = b"--" + sent.content_type.partition("boundary=")[2].encode()
    pieces = sent.data.split(boundary)
    assert (pieces[0], pieces[-1]) == (b"", b"--\r\n")
    split = [piece.removeprefix(b"\r\n").removesuffix(b"\r\n").split(b"\r\n\r\n", 1) for piece in pieces[1:-1]]
    return [(head.decode(), data) for head, data in split]


JSON_OBJECT = "application/json: {schema: {type: object, properties: {a: {type: string}}}}"
SENT = [
    pytest.param(JSON_OBJECT, {"a": "é"}, "application/json", '{"a":"é"}', id="json"),
    pytest.param(
        "application/json: {schema: {type: object, properties: {body: {type: string}, title: {type: string}}}}",
        {"body": "hi"},
        "application/json",
        '{"body":"hi"}',
        id="row_62",
    ),
    pytest.param(
        "application/json: {schema: {type: object, properties: {target: {anyOf: [{type: object, properties: "
        "{id: {type: integer}}}, {type: object, properties: {slug: {type: string}}}]}}}}",
        {"target": {"slug": "a"}},
        "application/json",
        '{"target":{"slug":"a"}}',
        id="row_17",
    ),
    pytest.param(
        "application/json: {schema: {type: integer}}", 2**70, "application/json", str(2**70), id="row_73-json"
    ),
    pytest.param("application/json: {schema: {}}", None, "application/json", "null", id="json-null"),
    pytest.param("application/json: {schema: {}}", "x", "application/json", '"x"', id="json-string"),
    pytest.param("application/json: {schema: {}}", "\ud800", "application/json", '"\ufffd"', id="json-surrogate"),
    pytest.param(JSON_OBJECT, '{"a":"1"}', "application/json", '{"a":"1"}', id="row_84"),
    pytest.param(
        "application/json: {schema: {type: array, items: {}}}", "[1]", "application/json", "[1]", id="row_84-array"
    ),
    pytest.param(
        JSON_OBJECT.replace("application/json", "'application/json; charset=utf-8'"),
        {"a": "b"},
        "application/json; charset=utf-8",
        '{"a":"b"}',
        id="row_85",
    ),
    pytest.param("Application/JSON: {schema: {}}", {"a": 1}, "Application/JSON", '{"a":1}', id="row_85-case"),
    pytest.param(
        "application/vnd.x.v2+json: {schema: {}}", {"a": 1}, "application/vnd.x.v2+json", '{"a":1}', id="json-kin"
    ),
    pytest.param(
        "application/json: {schema: {type: object, required: [id, name], properties: {id: {type: string, "
        "readOnly: true}, name: {type: string}}}}",
        {"name": "n"},
        "application/json",
        '{"name":"n"}',
        id="row_87",
    ),
    pytest.param(
        "application/x-ndjson: {schema: {}}", [{"a": 1}, 2], "application/x-ndjson", '{"a":1}\n2\n', id="lines"
    ),
    pytest.param(
        "application/x-www-form-urlencoded: {schema: {type: object, properties: {amount: {type: integer}, "
        "metadata: {type: object, additionalProperties: {type: string}}}}}",
        {"amount": 1, "metadata": {"k": "v"}},
        URLENCODED,
        "amount=1&metadata[k]=v",
        id="row_75",
    ),
    pytest.param(
        "application/x-www-form-urlencoded: {schema: {}, encoding: {m: {style: deepObject, explode: true}}}",
        {"m": {"a": {"b": 1}, "l": ["x"]}},
        URLENCODED,
        "m[a][b]=1&m[l][]=x",
        id="row_75-deepObject",
    ),
    pytest.param(
        "application/x-www-form-urlencoded: {schema: {type: object}, encoding: {m: {contentType: application/json}}}",
        {"m": {"a": 1}},
        URLENCODED,
        "m=%7B%22a%22%3A1%7D",
        id="row_75-json-member",
    ),
    pytest.param(
        "application/x-www-form-urlencoded: {schema: {type: object}, encoding: {m: {style: form, explode: true}}}",
        {"m": {"a": 1, "b": 2}},
        URLENCODED,
        "a=1&b=2",
        id="row_75-form-object",
    ),
    pytest.param(
        "application/x-www-form-urlencoded: {schema: {type: object}, encoding: {j: {style: form, explode: false}}}",
        {"t": ["a", "b c"], "j": ["x", "y,z"], "n": None, "e": "", "p": "a+b&c=d"},
        URLENCODED,
        "t=a&t=b%20c&j=x,y%2Cz&e=&p=a%2Bb%26c%3Dd",
        id="form-lists",
    ),
    pytest.param(
        "application/x-www-form-urlencoded: {schema: {type: object}}",
        {"items": [{"sku": "a", "n": 2}, {"sku": "b"}]},
        URLENCODED,
        "items[0][sku]=a&items[0][n]=2&items[1][sku]=b",
        id="form-list-of-objects",
    ),
    pytest.param(
        "application/x-www-form-urlencoded: {schema: {type: object}}",
        Form((FormPart("a", "1"), FormPart("a", "é"))),
        URLENCODED,
        "a=1&a=%C3%A9",
        id="form-data-as-urlencoded",
    ),
    pytest.param("text/plain: {schema: {type: string}}", "hé", "text/plain", "hé", id="row_81-text"),
    pytest.param("application/xml: {schema: {type: object}}", "<a/>", "application/xml", "<a/>", id="row_81-xml"),
    pytest.param("text/csv: {schema: {type: string}}", "a,b\n1,2", "text/csv", "a,b\n1,2", id="row_81-csv"),
    pytest.param("application/x-ndjson: {}", '{"a":1}\n', "application/x-ndjson", '{"a":1}\n', id="row_81-ndjson"),
    pytest.param(
        "application/octet-stream: {schema: {type: string, format: binary}}",
        "hé",
        "application/octet-stream",
        "hé",
        id="row_82-string",
    ),
    pytest.param("text/plain: {schema: {type: number}}", 1e21, "text/plain", "1" + "0" * 21, id="text-number"),
    pytest.param(
        JSON_OBJECT + "\ntext/plain: {schema: {type: string}}",
        "plain",
        "text/plain",
        "plain",
        id="text-beside-json",
    ),
    pytest.param("'*/*': {schema: {}}", {"a": 1}, "application/json", '{"a":1}', id="any-object"),
    pytest.param("'*/*': {schema: {}}", "x", "text/plain; charset=utf-8", "x", id="any-string"),
    pytest.param(
        "multipart/form-data: {schema: {}}\napplication/json: {schema: {}}",
        {"a": 1},
        "application/json",
        '{"a":1}',
        id="json-before-forms",
    ),
]


@pytest.mark.parametrize(("content", "value", "content_type", "data"), SENT)
def test_a_value_is_sent_in_the_media_type_that_fits_it(
    content: str, value: BodyValue, content_type: str, data: str
) -> None:
    assert encoded(content, value) == Encoded(content_type, data.encode())


BYTES = [
    pytest.param("application/octet-stream: {}", None, "application/octet-stream", id="row_91"),
    pytest.param("image/png: {}", None, "image/png", id="row_82-png"),
    pytest.param("image/jpeg: {}\nimage/png: {}", "image/png", "image/png", id="own-type"),
    pytest.param("'image/*': {}", "image/webp", "image/webp", id="range"),
    pytest.param("'*/*': {}", None, "application/octet-stream", id="any"),
    pytest.param("'*/*': {}", "not a type\r\nX: 1", "application/octet-stream", id="own-type-unusable"),
    pytest.param("application/json: {}\napplication/zip: {}", None, "application/zip", id="beside-json"),
    pytest.param("text/csv: {}", None, "text/csv", id="text"),
]


@pytest.mark.parametrize(("content", "own", "content_type"), BYTES)
def test_bytes_go_out_unchanged_in_a_binary_type(content: str, own: str | None, content_type: str) -> None:
    assert encoded(content, Binary(PNG, content_type=own)) == Encoded(content_type, PNG)


def test_the_content_type_that_the_caller_chose_wins() -> None:
    content = "application/json: {}\ntext/plain; charset=iso-8859-1: {}\n'application/vnd.*': {}\n'image/*': {}"

    assert [
        encoded(content, "é", wanted="TEXT/plain"),
        encoded(content, "é", wanted="application/json; v=1"),
        encoded(content, Binary(PNG), wanted="image/gif"),
    ] == [
        Encoded("text/plain; charset=iso-8859-1", b"\xe9"),
        Encoded("application/json", '"é"'.encode()),
        Encoded("image/gif", PNG),
    ]


def test_row_76_scalars_and_objects_become_parts_of_a_multipart_form() -> None:
    sent = encoded(
        "multipart/form-data: {schema: {type: object, properties: {title: {type: string}, n: {type: integer}}}}",
        {"title": "é", "n": 2, "skipped": None, "on": True, "tags": ["a", "b"], "meta": {"k": [1]}},
    )

    assert parts(sent) == [
        ('Content-Disposition: form-data; name="title"', "é".encode()),
        ('Content-Disposition: form-data; name="n"', b"2"),
        ('Content-Disposition: form-data; name="on"', b"true"),
        ('Content-Disposition: form-data; name="tags"', b"a"),
        ('Content-Disposition: form-data; name="tags"', b"b"),
        ('Content-Disposition: form-data; name="meta"\r\nContent-Type: application/json', b'{"k":[1]}'),
    ]


FILE_FORM = (
    "multipart/form-data: {schema: {type: object, required: [file], properties: {file: {type: string, format: binary}, "
    "meta: {type: object}, more: {type: array, items: {type: string, format: binary}}}}, "
    "encoding: {file: {contentType: 'image/png, image/*'}, meta: {contentType: application/json}}}"
)


def test_row_78_79_files_are_sent_with_their_names_and_types() -> None:
    sent = encoded(
        FILE_FORM,
        {
            "file": Binary(PNG),
            "meta": {"a": 1},
            "more": [Binary(b"x", "b.gif", "image/gif"), Binary(b"y", 'q"\r\n.txt', "bad\r\ntype")],
        },
    )

    assert parts(sent) == [
        ('Content-Disposition: form-data; name="file"; filename="file"\r\nContent-Type: image/png', PNG),
        ('Content-Disposition: form-data; name="meta"\r\nContent-Type: application/json', b'{"a":1}'),
        ('Content-Disposition: form-data; name="more"; filename="b.gif"\r\nContent-Type: image/gif', b"x"),
        (
            'Content-Disposition: form-data; name="more"; filename="q%22%0D%0A.txt"\r\n'
            "Content-Type: application/octet-stream",
            b"y",
        ),
    ]


def test_a_string_for_a_file_is_sent_as_a_file() -> None:
    assert parts(encoded(FILE_FORM, {"file": "text", "more": ["z"]})) == [
        ('Content-Disposition: form-data; name="file"; filename="file"\r\nContent-Type: image/png', b"text"),
        (
            'Content-Disposition: form-data; name="more"; filename="more"\r\nContent-Type: application/octet-stream',
            b"z",
        ),
    ]


def test_a_form_data_of_the_script_keeps_its_order_and_repeats() -> None:
    form = Form((FormPart("b", "1"), FormPart("file", Binary(PNG, "é.png", "image/png")), FormPart("b", "2")))

    assert parts(encoded(FILE_FORM, form)) == [
        ('Content-Disposition: form-data; name="b"', b"1"),
        ('Content-Disposition: form-data; name="file"; filename="é.png"\r\nContent-Type: image/png', PNG),
        ('Content-Disposition: form-data; name="b"', b"2"),
    ]


def test_an_object_that_holds_bytes_prefers_a_form_to_json() -> None:
    sent = encoded("application/json: {}\n" + FILE_FORM, {"file": Binary(PNG)})

    assert [data for _, data in parts(sent)] == [PNG]


def test_bytes_inside_json_are_base64() -> None:
    sent = encoded("application/json: {schema: {type: object}}", {"a": [Binary(PNG)]})

    assert sent == Encoded("application/json", b'{"a":["iVBORw0KGgoA"]}')


WRONG = [
    pytest.param(JSON_OBJECT, "not json", 'should be an object, not the string "not json"', id="row_84"),
    pytest.param(
        JSON_OBJECT,
        Binary(PNG),
        "bytes cannot be sent; this operation takes application/json",
        id="bytes-for-object",
    ),
    pytest.param(
        "image/png: {}",
        {"a": 1},
        "an object cannot be sent; this operation takes image/png",
        id="object-for-bytes",
    ),
    pytest.param(
        "application/xml: {schema: {type: object, xml: {name: pet}}}",
        {"a": 1},
        "an object cannot be sent; write its text yourself; this operation takes application/xml",
        id="object-for-xml",
    ),
    pytest.param(
        "application/json: {}",
        Form((FormPart("a", "1"),)),
        "a FormData cannot be sent; this operation takes application/json",
        id="form-for-json",
    ),
    pytest.param(
        "application/x-www-form-urlencoded: {}",
        Form((FormPart("a", Binary(PNG)),)),
        "a FormData with files cannot be sent; this operation takes application/x-www-form-urlencoded",
        id="files-urlencoded",
    ),
    pytest.param(
        "application/x-www-form-urlencoded: {}",
        {"a": Binary(PNG)},
        "bytes cannot be sent as application/x-www-form-urlencoded",
        id="bytes-urlencoded",
    ),
    pytest.param(
        "application/x-www-form-urlencoded: {}",
        [1],
        "a list cannot be sent; this operation takes application/x-www-form-urlencoded",
        id="list-urlencoded",
    ),
    pytest.param(
        "'image/*': {}",
        Binary(PNG),
        "bytes cannot be sent; give the Content-Type; this operation takes image/*",
        id="range",
    ),
]


@pytest.mark.parametrize(("content", "value", "message"), WRONG)
def test_a_value_that_no_media_type_takes_is_refused_before_sending(
    content: str, value: BodyValue, message: str
) -> None:
    assert problems(content, value) == [("body", message)]


@pytest.mark.parametrize("value", [NO_BODY, None])
def test_a_missing_body_is_reported_only_where_it_is_required(value: BodyValue) -> None:
    content = JSON_OBJECT

    assert encoded(content, value) == Encoded(None, None)
    assert problems(content, value, required=True) == [
        ("body", "missing; it is an object with a, sent as application/json")
    ]


def test_a_content_type_that_the_operation_does_not_take_is_named_with_those_it_does() -> None:
    assert problems("application/json: {}\ntext/csv: {}", {}, wanted="text/html") == [
        ("body", "Content-Type text/html is not taken; this operation takes application/json, text/csv")
    ]


def test_a_form_data_without_a_required_field_is_refused_by_its_name() -> None:
    assert problems(FILE_FORM, Form((FormPart("meta", "{}"),))) == [("body.file", "missing; it is a file (bytes)")]


def test_a_value_too_deep_is_refused() -> None:
    deep: Any = []
    for _ in range(2000):
        deep = [deep]

    assert problems("application/json: {}", deep) == [("body", "deeper than 64 levels")]


def test_no_body_is_sent_where_the_operation_takes_none() -> None:
    assert bodies.encode(None, NO_BODY, wanted=None, schemas={}) == Encoded(None, None)
    assert bodies.encode(Body(False, ()), None, wanted=None, schemas={}) == Encoded(None, None)


@given(st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=40)), max_size=4))
def test_a_multipart_boundary_is_stable_and_never_occurs_in_the_parts(fields: list[tuple[str, bytes]]) -> None:
    made = [Part(name, data) for name, data in fields]
    first, second = multipart.encode(made), multipart.encode(made)
    boundary = b"--" + first[0].partition("boundary=")[2].encode()

    assert first == second
    assert first[1].count(boundary) == len(made) + 1


def test_a_boundary_that_the_content_foresees_is_changed() -> None:
    content_type, _ = multipart.encode([Part("a", b"x")])
    guessed = content_type.partition("boundary=")[2].encode()

    again, sent = multipart.encode([Part("a", b"x"), Part("b", guessed)])

    assert again.partition("boundary=")[2].encode() != guessed
    assert sent.count(again.partition("boundary=")[2].encode()) == 3


PATCH = (
    "{schema: {type: object, required: [kind], properties: {kind: {type: string}, n: {type: integer}, "
    "in: {type: object, properties: {a: {type: string}}}}}}"
)


def test_a_merge_patch_removes_members_by_null_whatever_their_type() -> None:
    sent = encoded(f"application/merge-patch+json: {PATCH}", {"n": None, "kind": "x", "in": {"a": None}, "new": None})

    assert sent.data == b'{"n":null,"kind":"x","in":{"a":null},"new":null}'


def test_a_null_is_only_a_removal_in_a_merge_patch() -> None:
    assert problems(f"application/json: {PATCH}", {"kind": "x", "n": None}) == [
        ("body.n", "should be an integer, not null")
    ]
    assert problems(f"application/merge-patch+json: {PATCH}", {"kind": 1.5, "n": None}) == [
        ("body.kind", "should be a string, not 1.5")
    ]


STYLED = [
    pytest.param("explode: false", {"l": ["x", "y"]}, [("l", b"x,y")], id="comma"),
    pytest.param("style: pipeDelimited, explode: false", {"l": ["x", "é"]}, [("l", "x|é".encode())], id="pipe"),
    pytest.param("style: form", {"l": ["x", "y"]}, [("l", b"x"), ("l", b"y")], id="repeated"),
    pytest.param("style: deepObject, contentType: text/csv", {"l": {"a b": 1}}, [("l[a b]", b"1")], id="deepObject"),
    pytest.param("style: form, explode: false", {"l": {"a": 1}}, [("l", b"a,1")], id="object"),
    pytest.param("style: form", {"l": "x,y z"}, [("l", b"x,y z")], id="scalar"),
]


@pytest.mark.parametrize(("encoding", "value", "sent"), STYLED)
def test_a_stated_style_splits_a_member_into_parts(
    encoding: str, value: BodyValue, sent: list[tuple[str, bytes]]
) -> None:
    content = f"multipart/form-data: {{schema: {{type: object}}, encoding: {{l: {{{encoding}}}}}}}"

    expected = [(f'Content-Disposition: form-data; name="{name}"', data) for name, data in sent]
    assert parts(encoded(content, value)) == expected


def test_an_item_that_holds_the_comma_of_its_part_is_refused() -> None:
    content = "multipart/form-data: {schema: {type: object}, encoding: {l: {explode: false}}}"

    assert problems(content, {"l": ["a,b", "c"]}) == [
        ("body", "an item of l contains ',', which separates the items of this part")
    ]


def test_a_style_does_not_count_in_the_parts_of_openapi_3_0() -> None:
    content = "multipart/form-data: {schema: {type: object}, encoding: {l: {style: form, explode: false}}}"
    loaded = load(content, version="3.0.3")

    sent = bodies.encode(loaded.operations[0].body, {"l": ["x", "y"]}, wanted=None, schemas=loaded.schemas)

    assert [data for _, data in parts(sent)] == [b"x", b"y"]


def test_an_object_is_not_sent_as_json_under_the_name_of_another_type() -> None:
    content = "multipart/form-data: {schema: {type: object}, encoding: {l: {contentType: application/xml}}}"

    assert (problems(content, {"l": {"a": 1}}), [data for _, data in parts(encoded(content, {"l": "<a/>"}))]) == (
        [("body", "l is sent as application/xml; give it as a string with that text, or as bytes")],
        [b"<a/>"],
    )


def test_a_list_that_a_form_states_as_json_is_one_json_text() -> None:
    content = f"{URLENCODED}: {{schema: {{type: object}}, encoding: {{l: {{contentType: application/json}}}}}}"

    assert encoded(content, {"l": ["x", "y"]}).data == b"l=%5B%22x%22%2C%22y%22%5D"

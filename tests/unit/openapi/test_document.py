"""A document is read as a whole: what it says about itself, every operation counted, none spoiling another."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbridge_openapi.bundle import bundle, canonical
from sandbridge_openapi.document import load, read_document
from sandbridge_openapi.errors import DocumentError
from sandbridge_openapi.model import Document, Json, Operation, Skipped, Tag, Warned


def read(text: str) -> Document:
    return load(f"openapi: 3.1.0\ninfo: {{title: t, version: '1'}}\n{text}".encode())


def test_a_document_says_what_it_is() -> None:
    document = load(
        b"""
openapi: 3.0.3
info: {title: "Pets\\u202E", version: 1.10, description: About pets}
servers: [{url: 'https://api.test'}]
tags: [{name: pets, description: All pets}, {name: 7}, nonsense, {}]
paths: {}
"""
    )

    assert (document.title, document.version, document.description, document.tags, document.warnings) == (
        "Pets",
        "1.10",
        "About pets",
        (Tag("pets", "All pets"), Tag("7")),
        (),
    )


def test_an_operation_is_read_with_all_it_says() -> None:
    document = read(
        """
servers: [{url: 'https://api.test'}]
paths:
  /pets/{id}:
    get:
      operationId: getPet
      tags: [pets, extra]
      summary: One pet
      description: "Returns\\u0007 one"
      deprecated: true
      x-sandbridge-policy: {hold: true}
      x-synonyms: [animal, fetch, animal]
      x-keywords: "lookup, one "
      x-codeSamples:
      - {lang: cURL, source: curl}
      - {lang: TypeScript, source: 'await api.getPet()'}
"""
    )

    assert (document.operations[0].parameters[0].name, document.warnings) == ("id", ())
    assert document.operations == (
        Operation(
            call="pets.getPet",
            operation_id="getPet",
            method="GET",
            path="/pets/{id}",
            pointer="/paths/~1pets~1{id}/get",
            summary="One pet",
            description="Returns one",
            tags=("pets", "extra"),
            parameters=document.operations[0].parameters,
            deprecated=True,
            sample="await api.getPet()",
            hints={"policy": {"hold": True}},
            keywords=("animal", "fetch", "lookup", "one"),
        ),
    )


def test_row_64_only_http_methods_are_operations() -> None:
    document = read(
        """
paths:
  x-note: {get: {}}
  /a:
    summary: things
    description: text
    servers: [{url: /x}]
    parameters: []
    x-owner: {get: {}}
    get: {}
    put: {}
    post: {}
    delete: {}
    options: {}
    head: {}
    patch: {}
    trace: {}
    query: {}
    additionalOperations: {COPY: {}}
webhooks: {made: {post: {}}}
"""
    )

    methods = ["GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE", "QUERY", "COPY"]
    assert ([o.method for o in document.operations], document.skipped) == (methods, ())


def test_row_119_a_bad_operation_is_skipped_with_its_place_and_reason_and_the_others_are_read() -> None:
    document = read(
        """
paths:
  /a:
    get: ~
    put: {operationId: same, parameters: [{name: x, in: nowhere, required: true}]}
    post: {operationId: same}
    additionalOperations: {'B AD': {}}
  /b: nonsense
  /c: {$ref: '#/nowhere', get: {}}
"""
    )

    where = "it must be in path, query, header or cookie (at /paths/~1a/put/parameters/0)"
    assert ([(o.call, o.pointer) for o in document.operations], document.skipped) == (
        # The skipped one keeps its name, so that mending it renames nothing.
        [("default.same2", "/paths/~1a/post"), ("c.get", "/paths/~1c/get")],
        (
            Skipped("/paths/~1a/get", "GET", "/a", "the operation is not an object"),
            Skipped("/paths/~1a/put", "PUT", "/a", f"the parameter x is in 'nowhere'; {where}"),
            Skipped("/paths/~1a/additionalOperations/B AD", "B AD", "/a", "'B AD' is no HTTP method"),
        ),
    )


def test_o10_reasons_and_warnings_hold_no_control_or_direction_characters() -> None:
    hidden = r'"a\u202Eb\u0007c"'
    document = read(
        f"paths: {{/a: {{get: {{parameters: [{{name: {hidden}, in: {hidden}, required: true}}]}}, "
        f"put: {{parameters: [{{name: {hidden}, in: {hidden}}}]}}}}}}"
    )

    texts = [document.skipped[0].reason, document.warnings[0].reason]
    assert [text.startswith("the parameter abc is in") and text.isprintable() for text in texts] == [True, True]


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("/x", "/x"),
        ("x/y", "/x/y"),
        pytest.param("/search?flag=&mode=x", "/search?flag=&mode=x", id="row_71"),
        ("/a#variant", "/a"),
    ],
)
def test_a_path_can_be_sent_as_it_is(key: str, path: str) -> None:
    assert [o.path for o in read(f"paths: {{'{key}': {{get: {{}}}}}}").operations] == [path]


@pytest.mark.parametrize(
    ("text", "code", "pointer"),
    [
        ("openapi: 4.0.0\npaths: {}", "unsupported_version", "/openapi"),
        ("swagger: '1.2'\npaths: {}", "unsupported_version", "/swagger"),
        ("hello: world", "unsupported_version", ""),
        ("just text", "unsupported_version", ""),
        ("", "unsupported_version", ""),
        ("openapi: 3.0.0\ninfo: {}", "no_operations_member", ""),
        ("swagger: '2.0'\ncomponents: {}", "no_operations_member", ""),
        ("openapi: 3.1.0\npaths: [a]", "no_operations_member", "/paths"),
    ],
)
def test_what_is_no_openapi_document_is_refused(text: str, code: str, pointer: str) -> None:
    with pytest.raises(DocumentError) as caught:
        load(text.encode())

    assert (caught.value.code, caught.value.pointer) == (code, pointer)


@pytest.mark.parametrize(
    ("head", "warned"),
    [
        ("openapi: 3.0", None),
        ("openapi: 3.1", None),
        ("openapi: 3.2.0", None),
        ("openapi: '3.9'", "/openapi"),
        ("swagger: 2.0", None),
        pytest.param("openapi: 3.0.3\nwebhooks: {x: {post: {}}}", "/webhooks", id="row_118"),
        pytest.param("openapi: 3.1.0\ncomponents: {schemas: {A: {nullable: true}}}", None, id="row_118 the other way"),
    ],
)
def test_versions_are_read_liberally(head: str, warned: str | None) -> None:
    document = load(
        f"{head}\ninfo: {{title: t, version: '1'}}\nservers: [{{url: 'https://a.test'}}]\npaths: {{}}".encode()
    )

    assert [w.pointer for w in document.warnings if w.pointer not in ("", "/servers")] == ([warned] if warned else [])


def test_a_document_without_paths_has_no_operations() -> None:
    assert read("webhooks: {made: {post: {}}}").operations == ()


def test_texts_are_cut_to_a_sane_length() -> None:
    (operation,) = read(f"paths: {{/a: {{get: {{description: {'x' * 20_000}, summary: {'y' * 20_000}}}}}}}").operations

    assert (len(operation.description), len(operation.summary)) == (8_000, 1_000)


def test_warnings_are_bounded() -> None:
    properties = ", ".join(f"p{n}: {{type: nonsense{n}}}" for n in range(2_000))
    document = read(
        f"paths: {{/a: {{get: {{parameters: [{{name: q, in: query, schema: {{properties: {{{properties}}}}}}}]}}}}}}"
    )

    assert (len(document.warnings), document.warnings[-1]) == (501, Warned("", "1501 more warnings were left out"))


def test_the_document_does_not_keep_the_text_it_came_from() -> None:
    class Tree(dict[str, object]):
        """A dict that can be watched."""

    bundled = bundle(b"openapi: 3.1.0\npaths: {/a: {get: {responses: {200: {description: ok}}}}}")
    tree = Tree(bundled.tree)
    watched = weakref.ref(tree)
    document = read_document(type(bundled)(tree, b"", "d"))
    del tree
    gc.collect()

    assert (watched(), len(document.operations)) == (None, 1)


DATA = Path(__file__).parents[2] / "data"


@pytest.mark.parametrize(
    ("name", "operations", "first", "server"),
    [
        ("petstore-2.0.yaml", 20, "pet.addPet", "http://petstore.swagger.io/v2"),
        ("petstore-3.0.json", 20, "pet.addPet", "http://petstore.swagger.io/v2"),
        ("petstore-3.1.json", 20, "pet.addPet", "http://petstore.swagger.io/v2"),
        ("uspto-3.0.yaml", 3, "metadata.listDataSets", "https://developer.uspto.gov/ds-api"),
    ],
)
def test_published_documents_are_read_without_a_warning(name: str, operations: int, first: str, server: str) -> None:
    document = load((DATA / name).read_bytes())

    assert (len(document.operations), document.operations[0].call, document.servers[0].url) == (
        operations,
        first,
        server,
    )
    assert (document.skipped, document.warnings) == ((), ())


@pytest.mark.parametrize(
    ("paths", "components"),
    [
        pytest.param(
            {f"/p{n}": {"$ref": "#/components/pathItems/Big"} for n in range(3_000)},
            {"pathItems": {"Big": {"get": {"tags": ["a"] * 3_000}}}},
            id="a path item that many paths share",
        ),
        pytest.param(
            {"/p": {"parameters": [{}] * 3_000, "additionalOperations": {f"M{n}": {} for n in range(3_000)}}},
            {},
            id="parameters that many operations share",
        ),
    ],
)
def test_o05_references_cannot_multiply_a_document(paths: Json, components: Json) -> None:
    with pytest.raises(DocumentError) as caught:
        load(canonical({"openapi": "3.1.0", "paths": paths, "components": components}))

    assert caught.value.code == "too_many_nodes"


JUNK: list[Json] = [
    None,
    True,
    0,
    -1.5,
    2**70,
    "",
    "#",
    "x",
    [],
    [None],
    [[1]],
    {},
    {"": None},
    {"$ref": None},
    {"$ref": "#"},
    {"$ref": "#/paths"},
    {"$ref": "#/nowhere"},
    {"$ref": "https://h/x"},
    {
        "allOf": [{"$ref": "#/components/schemas/Pet"}],
        "discriminator": {"propertyName": "name", "mapping": {"a": "Pet"}},
    },
    {"type": ["x", None, 1], "enum": {}, "required": 5, "properties": [], "items": [7]},
]


def places(node: Json) -> Iterator[tuple[Json, str | int]]:
    """Yield every member of `node`, at any depth, as its holder and key."""
    for key, value in list(node.items() if isinstance(node, dict) else enumerate(node)):
        yield node, key
        if isinstance(value, dict | list):
            yield from places(value)


@settings(max_examples=150)
@given(st.data())
def test_o05_whatever_is_put_in_any_place_the_rest_of_the_document_is_read(data: st.DataObject) -> None:
    tree = bundle((DATA / data.draw(st.sampled_from(["petstore-2.0.yaml", "petstore-3.1.json"]))).read_bytes()).tree
    parts = [tree[name] for name in ("paths", "components", "definitions", "securityDefinitions") if name in tree]
    for _ in range(data.draw(st.integers(1, 4))):
        holder, key = data.draw(st.sampled_from([place for part in parts for place in places(part)]))
        holder[key] = copy.deepcopy(data.draw(st.sampled_from(JUNK)))

    document = load(canonical(tree))

    pointers = [o.pointer for o in document.operations] + [s.pointer for s in document.skipped]
    assert len(set(pointers)) == len(pointers)
    assert len({o.call for o in document.operations}) == len(document.operations)


def test_the_pet_stores_of_three_versions_offer_the_same_calls() -> None:
    calls = [
        [(o.call, o.method, o.path) for o in load((DATA / name).read_bytes()).operations]
        for name in ("petstore-2.0.yaml", "petstore-3.0.json", "petstore-3.1.json")
    ]

    assert calls[0] == calls[1] == calls[2]


def test_path_items_that_refer_to_each_other_for_ever_are_reported() -> None:
    document = read("paths: {/a: {$ref: '#/paths/~1b'}, /b: {$ref: '#/paths/~1a'}}\n")

    reason = "the references of this path item never end; the operations there are not known"
    assert (document.operations, document.warnings[:2]) == (
        (),
        (Warned("/paths/~1a", reason), Warned("/paths/~1b", reason)),
    )

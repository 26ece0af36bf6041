"""Relative files become part of one document; nothing outside of the document's folder is ever read."""

from __future__ import annotations

import json

import pytest

from sandbridge_openapi.bundle import Bundle, bundle
from sandbridge_openapi.document import load, read_document

FILES = {
    "parts/pet.yaml": b"Pet: {type: object, properties: {owner: {$ref: '../people.yaml#/O'}, mate: {$ref: '#/Pet'}}}",
    "people.yaml": b"O: {properties: {name: {type: string}, home: {$ref: 'api.yaml#/components/schemas/Home'}}}",
    "animal.yaml": b"get: {operationId: getAnimal, responses: {200: {description: ok}}}",
    "my file.json": b'{"type": "string"}',
    "broken.yaml": b"a: [",
}
HEAD = "openapi: 3.1.0\ninfo: {title: t, version: '1'}\n"


class Folder:
    """Files in memory that remembers what was asked for."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.asked: list[str] = []

    def read(self, path: str) -> bytes:
        self.asked.append(path)
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]


def with_schema(schema: str) -> bytes:
    return f"""{HEAD}paths:
  /p: {{post: {{requestBody: {{content: {{application/json: {{schema: {schema}}}}}}}}}}}
components: {{schemas: {{Home: {{type: string}}}}}}
""".encode()


def test_row_13_relative_files_are_read_from_the_documents_own_place_and_become_named_schemas() -> None:
    folder = Folder(FILES)

    document = load(with_schema("{$ref: ./parts/pet.yaml#/Pet}"), origin="/specs/api.yaml", read=folder.read)

    assert (folder.asked, document.schemas) == (
        ["parts/pet.yaml", "people.yaml"],
        {
            "Pet": {
                "type": "object",
                "properties": {"owner": {"$ref": "#/$defs/O"}, "mate": {"$ref": "#/$defs/Pet"}},
            },
            "O": {"properties": {"name": {"type": "string"}, "home": {"$ref": "#/$defs/Home"}}},
            "Home": {"type": "string"},
        },
    )


def test_a_file_that_is_a_schema_gives_it_its_name() -> None:
    document = load(with_schema("{$ref: my%20file.json}"), read=Folder(FILES).read)

    assert document.schemas == {"my_file": {"type": "string"}}


def test_row_14_two_paths_may_share_one_path_item_of_another_file() -> None:
    text = HEAD + (
        "paths:\n"
        "  /cats/{id}: {$ref: ./animal.yaml, parameters: [{name: id, in: path, schema: {type: integer}}]}\n"
        "  /dogs/{id}: {$ref: ./animal.yaml}\n"
    )

    document = load(text.encode(), read=Folder(FILES).read)

    assert [(o.call, o.path, o.pointer, o.parameters[0].schema) for o in document.operations] == [
        ("default.getAnimal", "/cats/{id}", "/paths/~1cats~1{id}/get", {"type": "integer"}),
        ("default.getAnimal2", "/dogs/{id}", "/paths/~1dogs~1{id}/get", {"type": "string"}),
    ]


def test_row_14_two_paths_may_share_a_component() -> None:
    text = HEAD + (
        "paths:\n"
        "  /cats: {$ref: '#/components/pathItems/Animal'}\n"
        "  /dogs: {$ref: '#/components/pathItems/Animal', post: {}}\n"
        "components: {pathItems: {Animal: {get: {operationId: getAnimal}}}}\n"
    )

    assert [(o.call, o.method, o.path) for o in load(text.encode()).operations] == [
        ("default.getAnimal", "GET", "/cats"),
        ("default.getAnimal2", "GET", "/dogs"),
        ("dogs.post", "POST", "/dogs"),
    ]


@pytest.mark.parametrize(
    "reference",
    [
        pytest.param("http://169.254.169.254/latest/meta-data#/x", id="O02 row 13 metadata"),
        pytest.param("https://api.test/other.yaml", id="O02 another document"),
        pytest.param("file:///proc/self/environ", id="O02 file"),
        pytest.param("file:parts/pet.yaml", id="O02 file without slashes"),
        pytest.param("ftp://h/x", id="O02 ftp"),
        pytest.param("//h/x.yaml", id="O02 host"),
        pytest.param("/etc/passwd", id="O02 absolute path"),
        pytest.param("../secret.yaml", id="O02 escape"),
        pytest.param("parts/../../secret.yaml", id="O02 escape further down"),
        pytest.param("%2e%2e/secret.yaml", id="O02 encoded escape"),
        pytest.param("parts%2f..%2f..%2fsecret.yaml", id="O02 encoded slashes"),
        pytest.param("..\\\\secret.yaml", id="O02 backslash"),
        pytest.param("C:/secret.yaml", id="O02 drive"),
        pytest.param("secret.yaml%00.json", id="O02 NUL"),
        pytest.param("secret.yaml?x=1", id="O02 query"),
        pytest.param("..", id="O02 the folder above"),
    ],
)
def test_a_reference_out_of_the_folder_is_refused_before_anything_is_read(reference: str) -> None:
    folder = Folder({})

    document = load(with_schema(f'{{$ref: "{reference}"}}'), origin="https://api.test/openapi.yaml", read=folder.read)

    assert (folder.asked, [m.schema for o in document.operations if o.body for m in o.body.media]) == ([], [True])
    told = [w for w in document.warnings if "refused" in w.reason or "leads out" in w.reason]
    assert (told != [], [w for w in told if not w.pointer or "relative" not in w.reason]) == (True, [])


def test_without_a_reader_relative_references_stay_unread() -> None:
    document = load(HEAD.encode() + b"paths: {/p: {get: {parameters: [{$ref: 'p.yaml#/P'}]}, post: {}}}")

    assert ([o.method for o in document.operations], [(s.pointer, s.method) for s in document.skipped]) == (
        ["POST"],
        [("/paths/~1p/get", "GET")],
    )
    assert "p.yaml#/P leads out of the document" in document.skipped[0].reason


def test_a_reference_to_the_documents_own_url_stays_inside_it() -> None:
    text = with_schema("{$ref: 'https://api.test/openapi.yaml#/components/schemas/Home'}")

    document = load(text, origin="https://api.test/openapi.yaml")

    assert document.schemas == {"Home": {"type": "string"}}


@pytest.mark.parametrize("name", ["missing.yaml", "broken.yaml"])
def test_a_file_that_cannot_be_read_is_reported_once_and_spoils_nothing_else(name: str) -> None:
    folder = Folder(FILES)

    document = load(with_schema(f"{{anyOf: [{{$ref: {name}}}, {{$ref: {name}}}]}}"), read=folder.read)

    assert (folder.asked, len(document.operations)) == ([name], 1)
    assert [w.reason.startswith(f"{name} could not be read") for w in document.warnings].count(True) == 1


def test_what_only_looks_like_a_reference_is_left_alone() -> None:
    folder = Folder({})
    schema = "{example: {$ref: a.yaml}, default: {$ref: b.yaml}, properties: {$ref: {type: string}, example: {}}}"

    bundled = bundle(with_schema(schema), read=folder.read)

    assert (
        folder.asked,
        bundled.tree["paths"]["/p"]["post"]["requestBody"]["content"]["application/json"]["schema"],
    ) == (
        [],
        {
            "example": {"$ref": "a.yaml"},
            "default": {"$ref": "b.yaml"},
            "properties": {"$ref": {"type": "string"}, "example": {}},
        },
    )


def test_a_property_may_have_the_name_of_a_keyword_that_holds_data() -> None:
    folder = Folder(FILES)

    document = load(with_schema("{properties: {example: {$ref: my%20file.json}}}"), read=folder.read)

    assert (folder.asked, list(document.schemas)) == (["my file.json"], ["my_file"])


def test_files_that_refer_to_each_other_are_read_once() -> None:
    folder = Folder({"a.yaml": b"A: {$ref: 'b.yaml#/B'}", "b.yaml": b"B: {properties: {a: {$ref: 'a.yaml#/A'}}}"})

    document = load(with_schema("{$ref: a.yaml#/A}"), read=folder.read)

    assert (sorted(folder.asked), document.schemas) == (
        ["a.yaml", "b.yaml"],
        {"A": {"$ref": "#/$defs/B"}, "B": {"properties": {"a": {"$ref": "#/$defs/A"}}}},
    )


def test_too_many_files_are_not_read() -> None:
    folder = Folder({f"f{n}.yaml": f"A: {{$ref: 'f{n + 1}.yaml#/A'}}".encode() for n in range(700)})

    load(with_schema("{$ref: f0.yaml#/A}"), read=folder.read)

    assert len(folder.asked) == 500


def test_a_bundle_loaded_again_is_the_same_document() -> None:
    first = bundle(with_schema("{$ref: ./parts/pet.yaml#/Pet}"), origin="/specs/api.yaml", read=Folder(FILES).read)
    second = bundle(first.data)

    assert (second.digest, read_document(second)) == (first.digest, read_document(first))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b'{"a":1,"b":[1.5,null]}', id="JSON"),
        pytest.param(b"a: 1\nb: [1.5, ~]\n", id="YAML"),
        pytest.param(b'\xef\xbb\xbf{ "a": 1,\n "b": [1.5, null] }', id="JSON with blanks and a mark"),
    ],
)
def test_the_digest_does_not_depend_on_the_syntax(text: bytes) -> None:
    assert bundle(text) == Bundle(
        {"a": 1, "b": [1.5, None]},
        b'{"a":1,"b":[1.5,null]}',
        "993a7a2ceb877d40fc4b026f38d1b9d56ea47505ed09b616e4ac8f06d00883b0",
    )


def test_a_bundle_keeps_integers_of_any_size() -> None:
    assert json.loads(bundle(b"a: 123456789012345678901234567890").data) == {"a": 123456789012345678901234567890}


def test_paths_operations_and_components_may_stand_in_files_of_their_own() -> None:
    folder = Folder(
        {
            "paths.yaml": b"/p: {get: {$ref: list.yaml}, post: {$ref: gone.yaml}}",
            "list.yaml": b"operationId: l\nparameters: [{name: q, in: query, schema: {$ref: 'parts.yaml#/schemas/S'}}]",
            "parts.yaml": b"{schemas: {S: {type: string}}, securitySchemes: {key: {type: http, scheme: bearer}}}",
        }
    )
    text = f"{HEAD}paths: {{$ref: paths.yaml}}\ncomponents: {{$ref: parts.yaml}}\n"

    document = load(text.encode(), origin="/specs/api.yaml", read=folder.read)

    (operation,) = document.operations
    assert (
        operation.operation_id,
        operation.parameters[0].schema,
        document.schemas,
        list(document.security_schemes),
    ) == (
        "l",
        {"$ref": "#/$defs/S"},
        {"S": {"type": "string"}},
        ["key"],
    )
    assert [(skipped.pointer, skipped.reason) for skipped in document.skipped] == [
        ("/paths/~1p/post", "the operation is a reference that could not be followed (at /paths/~1p/post/$ref)")
    ]

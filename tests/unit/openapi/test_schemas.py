"""Schemas of every version become plain JSON Schema 2020-12, with named references and no endless ones."""

from __future__ import annotations

from typing import Any

import pytest

from sandbridge_openapi.diagnostics import Diagnostics
from sandbridge_openapi.model import Schema, Warned
from sandbridge_openapi.references import References
from sandbridge_openapi.schemas import SchemaReader
from sandbridge_openapi.syntax import parse


def read(text: str) -> Schema:
    """Return the schema written in `text`; it refers to nothing."""
    return SchemaReader(References({}), Diagnostics()).read(parse(text.encode(), Diagnostics()), "")


def read_all(text: str, start: str) -> tuple[Schema, dict[str, Schema], tuple[Warned, ...]]:
    """Return the schema `start` of the document `text`, every schema that it leads to, and the warnings."""
    diagnostics = Diagnostics()
    reader = SchemaReader(References(parse(text.encode(), diagnostics)), diagnostics)
    schema = reader.read({"$ref": start}, "")
    return schema, reader.finish(), diagnostics.warnings()


STRING = {"type": "string"}


@pytest.mark.parametrize(
    ("written", "schema"),
    [
        pytest.param("{type: number, nullable: true}", {"type": ["number", "null"]}, id="row_33"),
        pytest.param("{type: string, nullable: false}", STRING, id="row_36"),
        pytest.param("{type: string, x-nullable: true}", {"type": ["string", "null"]}, id="x-nullable of Swagger 2.0"),
        pytest.param("{nullable: true}", True, id="nullable anything"),
        pytest.param(
            "{type: string, enum: [a, b], nullable: true}",
            {"type": ["string", "null"], "enum": ["a", "b", None]},
            id="row_34 nullable enum",
        ),
        pytest.param("{const: a, nullable: true}", {"enum": ["a", None]}, id="nullable const"),
        pytest.param(
            "{anyOf: [{type: string, maxLength: 2000}, {type: 'null'}]}",
            {"anyOf": [{"type": "string", "maxLength": 2000}, {"type": "null"}]},
            id="row_37",
        ),
        pytest.param(
            "{oneOf: [{type: string}], nullable: true}", {"oneOf": [STRING, {"type": "null"}]}, id="nullable union"
        ),
        pytest.param(
            "{allOf: [{type: string}], nullable: true, description: d}",
            {"description": "d", "anyOf": [{"allOf": [STRING]}, {"type": "null"}]},
            id="nullable conjunction",
        ),
        pytest.param(
            "{type: integer, minimum: 0, exclusiveMinimum: true}",
            {"type": "integer", "exclusiveMinimum": 0},
            id="row_39",
        ),
        pytest.param(
            "{type: integer, minimum: 0, exclusiveMinimum: false}", {"type": "integer", "minimum": 0}, id="row_39 false"
        ),
        pytest.param(
            "{type: integer, exclusiveMaximum: 9}", {"type": "integer", "exclusiveMaximum": 9}, id="row_39 of 3.1"
        ),
        pytest.param("{exclusiveMaximum: true}", True, id="a flag without a bound"),
        pytest.param(
            "{type: string, enum: [open, closed, open]}", {"type": "string", "enum": ["open", "closed"]}, id="row_32"
        ),
        pytest.param("{enum: [1, true, 1.0, 'true', true]}", {"enum": [1, True, "true"]}, id="row_32 mixed"),
        pytest.param("{enum: []}", True, id="an enum that allows nothing"),
        pytest.param("{type: array}", {"type": "array", "items": True}, id="row_30"),
        pytest.param("{type: [array, 'null']}", {"type": ["array", "null"], "items": True}, id="row_30 nullable"),
        pytest.param(
            "{type: array, items: [{type: string}, {}]}", {"type": "array", "prefixItems": [STRING, True]}, id="tuple"
        ),
        pytest.param(
            "{type: array, items: {oneOf: [{type: string}, {type: number}]}}",
            {"type": "array", "items": {"oneOf": [STRING, {"type": "number"}]}},
            id="row_21",
        ),
        pytest.param(
            "{properties: {target: {anyOf: [{type: object, properties: {id: {type: integer}}}, {type: string}]}}}",
            {
                "properties": {
                    "target": {"anyOf": [{"type": "object", "properties": {"id": {"type": "integer"}}}, STRING]}
                }
            },
            id="row_17",
        ),
        pytest.param(
            "{type: object, properties: {x: {type: string}}, allOf: [{type: object, properties: {y: {type: string}}}]}",
            {
                "type": "object",
                "properties": {"x": STRING},
                "allOf": [{"type": "object", "properties": {"y": STRING}}],
            },
            id="row_20",
        ),
        pytest.param(
            "{allOf: [{type: object, properties: {body: {type: string}}}, {required: [body]}]}",
            {"allOf": [{"type": "object", "properties": {"body": STRING}}, {"required": ["body"]}]},
            id="row_23",
        ),
        pytest.param(
            "{oneOf: [{type: number}, {type: integer}]}",
            {"oneOf": [{"type": "number"}, {"type": "integer"}]},
            id="row_27",
        ),
        pytest.param(
            "{type: array, items: {type: object, properties: {box: {type: array, items: {type: number}}}}}",
            {
                "type": "array",
                "items": {"type": "object", "properties": {"box": {"type": "array", "items": {"type": "number"}}}},
            },
            id="row_29",
        ),
        pytest.param(
            "{type: object, properties: {$ref: {type: string, description: a column}, id: {type: string}}}",
            {"type": "object", "properties": {"$ref": {"type": "string", "description": "a column"}, "id": STRING}},
            id="row_5",
        ),
        pytest.param("{type: file}", {"type": "string", "format": "binary"}, id="row_113 file"),
        pytest.param(
            "{type: string, contentMediaType: application/octet-stream}",
            {"type": "string", "contentMediaType": "application/octet-stream", "format": "binary"},
            id="bytes of 3.1",
        ),
        pytest.param(
            "{type: string, contentMediaType: image/png, contentEncoding: base64}",
            {"type": "string", "contentMediaType": "image/png", "contentEncoding": "base64"},
            id="base64 of 3.1",
        ),
        pytest.param("{type: [string]}", STRING, id="a list of one type"),
        pytest.param("{type: STRING}", STRING, id="a type in capitals"),
        pytest.param("{type: date}", {"type": "string", "format": "date"}, id="a format as type"),
        pytest.param("{type: long}", {"type": "integer", "format": "int64"}, id="a type of another language"),
        pytest.param("{type: [any, string]}", True, id="any"),
        pytest.param("{type: nonsense}", True, id="no type at all"),
        pytest.param("{type: null}", {"type": "null"}, id="an unquoted null"),
        pytest.param("{type: string, example: a}", {"type": "string", "examples": ["a"]}, id="example"),
        pytest.param(
            "{type: string, examples: {one: {value: a}, two: {value: b}}}",
            {"type": "string", "examples": ["a", "b"]},
            id="named examples",
        ),
        pytest.param(
            "{type: object, properties: {a: {type: string, required: true}}}",
            {"type": "object", "properties": {"a": STRING}, "required": ["a"]},
            id="required on the property",
        ),
        pytest.param(
            "{dependencies: {a: [b], c: {required: [d]}}}",
            {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"required": ["d"]}}},
            id="dependencies of draft 7",
        ),
        pytest.param(
            "{type: object, additionalProperties: {}}", {"type": "object", "additionalProperties": True}, id="any map"
        ),
        pytest.param(
            "{type: object, additionalProperties: 'false'}",
            {"type": "object", "additionalProperties": False},
            id="text false",
        ),
        pytest.param("{minLength: '3', maxLength: 5.0, minimum: x}", {"maxLength": 5}, id="bounds that are no numbers"),
        pytest.param("{properties: [a], allOf: [], required: x}", True, id="members of the wrong kind"),
        pytest.param(
            "{properties: {a: 5, b: {type: string}}}", {"properties": {"a": True, "b": STRING}}, id="a broken member"
        ),
        pytest.param("{xml: {name: x}, externalDocs: {}, x-thing: 1, $id: y, title: T}", {"title": "T"}, id="left out"),
        pytest.param('{description: "a\\u202Eb\\u0000c"}', {"description": "abc"}, id="O10"),
        pytest.param(
            "{readOnly: true, writeOnly: true, deprecated: true, default: 1, pattern: '^a', uniqueItems: true}",
            {
                "readOnly": True,
                "writeOnly": True,
                "deprecated": True,
                "default": 1,
                "pattern": "^a",
                "uniqueItems": True,
            },
            id="kept",
        ),
    ],
)
def test_a_schema_becomes_json_schema(written: str, schema: Schema) -> None:
    assert read(written) == schema


DIR = """
components:
  schemas:
    Dir:
      type: object
      properties: {name: {type: string}, children: {type: array, items: {$ref: '#/components/schemas/Dir'}}}
    Repo: {type: object, properties: {owner: {$ref: '#/components/schemas/Owner'}}}
    Owner: {type: object, properties: {repos: {type: array, items: {$ref: '#/components/schemas/Repo'}}}}
    L1: {type: object, properties: {b: {$ref: '#/components/schemas/L2'}}}
    L2: {type: object, properties: {c: {type: object, properties: {id: {type: integer}}}}}
    Alias: {$ref: '#/components/schemas/L2', description: Beside}
    Maybe: {$ref: '#/components/schemas/L2', nullable: true}
    Map«string»/x: {type: string}
    获取: {type: string}
"""


@pytest.mark.parametrize(
    ("start", "named"),
    [
        pytest.param(
            "Dir",
            {
                "Dir": {
                    "type": "object",
                    "properties": {"name": STRING, "children": {"type": "array", "items": {"$ref": "#/$defs/Dir"}}},
                }
            },
            id="row_1",
        ),
        pytest.param(
            "Repo",
            {
                "Repo": {"type": "object", "properties": {"owner": {"$ref": "#/$defs/Owner"}}},
                "Owner": {
                    "type": "object",
                    "properties": {"repos": {"type": "array", "items": {"$ref": "#/$defs/Repo"}}},
                },
            },
            id="row_2",
        ),
        pytest.param(
            "L1",
            {
                "L1": {"type": "object", "properties": {"b": {"$ref": "#/$defs/L2"}}},
                "L2": {
                    "type": "object",
                    "properties": {"c": {"type": "object", "properties": {"id": {"type": "integer"}}}},
                },
            },
            id="row_8",
        ),
        pytest.param("获取", {"获取": STRING}, id="a name of letters"),
        pytest.param("Map«string»~1x", {"Map_string_x": STRING}, id="a name of anything"),
    ],
)
def test_a_referenced_schema_is_named_after_its_component_and_read_once(start: str, named: dict[str, Any]) -> None:
    schema, schemas, warnings = read_all(DIR, f"#/components/schemas/{start}")

    assert (schema, schemas, warnings) == ({"$ref": f"#/$defs/{next(iter(named))}"}, named, ())


def test_keywords_beside_a_reference_are_kept() -> None:
    _, schemas, _ = read_all(DIR, "#/components/schemas/Alias")

    assert schemas["Alias"] == {"$ref": "#/$defs/L2", "description": "Beside"}


def test_a_nullable_reference_allows_null() -> None:
    _, schemas, _ = read_all(DIR, "#/components/schemas/Maybe")

    assert schemas["Maybe"] == {"anyOf": [{"$ref": "#/$defs/L2"}, {"type": "null"}]}


NODES = """
type: object
properties:
  nodes:
    type: array
    items:
      type: object
      properties: {v: {type: string}, kids: {type: array, items: {$ref: '#/properties/nodes/items'}}}
"""


def test_row_4_any_pointer_into_the_tree_is_a_target_with_a_name_made_up_from_the_way_to_it() -> None:
    node = {
        "type": "object",
        "properties": {"v": STRING, "kids": {"type": "array", "items": {"$ref": "#/$defs/nodes"}}},
    }

    assert read_all(NODES, "#/properties/nodes/items")[:2] == ({"$ref": "#/$defs/nodes"}, {"nodes": node})


def test_a_made_up_name_never_takes_the_name_of_a_component() -> None:
    text = """
    components:
      schemas:
        Tree_nodes: {type: string}
        Tree: {properties: {nodes: {type: integer}}}
        All:
          properties:
            a: {$ref: '#/components/schemas/Tree/properties/nodes'}
            b: {$ref: '#/components/schemas/Tree_nodes'}
    """
    _, schemas, _ = read_all(text, "#/components/schemas/All")

    assert schemas == {
        "All": {"properties": {"a": {"$ref": "#/$defs/Tree_nodes2"}, "b": {"$ref": "#/$defs/Tree_nodes"}}},
        "Tree_nodes2": {"type": "integer"},
        "Tree_nodes": STRING,
    }


def test_components_whose_names_come_to_the_same_get_a_number() -> None:
    text = """
    definitions:
      a b: {type: string}
      a_b: {type: integer}
      All:
        properties: {x: {$ref: '#/definitions/a b'}, y: {$ref: '#/definitions/a_b'}, z: {$ref: '#/definitions/a%20b'}}
    """
    _, schemas, _ = read_all(text, "#/definitions/All")

    assert schemas == {
        "All": {
            "properties": {"x": {"$ref": "#/$defs/a_b"}, "y": {"$ref": "#/$defs/a_b2"}, "z": {"$ref": "#/$defs/a_b"}}
        },
        "a_b": STRING,
        "a_b2": {"type": "integer"},
    }


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        pytest.param("#/components/schemas/Nowhere", "points to nothing in this document", id="row_7 dangling"),
        pytest.param("http://169.254.169.254/latest/meta-data#/x", "is refused", id="row_13 O02 metadata"),
        pytest.param("file:///proc/self/environ", "is refused", id="O02 file"),
        pytest.param("ftp://h/x", "is refused", id="O02 ftp"),
        pytest.param("//h/x.json", "is refused", id="O02 host"),
        pytest.param("../../etc/passwd", "leads out of the document", id="O02 relative escape"),
        pytest.param("#name", "is the name of no `$anchor`", id="an anchor that does not exist"),
        pytest.param("#/info", "is not a schema", id="a pointer to something else"),
    ],
)
def test_a_reference_that_leads_nowhere_accepts_anything_and_is_reported(reference: str, reason: str) -> None:
    diagnostics = Diagnostics()
    reader = SchemaReader(References({"info": "x"}), diagnostics)

    schema = reader.read({"properties": {"a": {"$ref": reference}}}, "/s")

    warning = diagnostics.warnings()[0]
    assert (schema, warning.pointer) == ({"properties": {"a": True}}, "/s/properties/a/$ref")
    assert reason in warning.reason


def test_anchors_are_targets_too() -> None:
    text = "definitions: {A: {$anchor: here, type: string}, B: {$dynamicRef: '#here'}}"

    assert read_all(text, "#/definitions/B")[1] == {"B": {"$ref": "#/$defs/A"}, "A": STRING}


@pytest.mark.parametrize(
    ("reference", "schemas"),
    [
        pytest.param(
            "https://e.test/a",
            {"B": {"$ref": "#/$defs/A"}, "A": {"properties": {"x": {"$ref": "#/$defs/A_Inner"}}}, "A_Inner": STRING},
            id="the whole",
        ),
        pytest.param(
            "https://e.test/a#/$defs/Inner", {"B": {"$ref": "#/$defs/A_Inner"}, "A_Inner": STRING}, id="a part of it"
        ),
        pytest.param(
            "https://e.test/a#/properties/x",
            {"B": {"$ref": "#/$defs/A_x"}, "A_x": {"$ref": "#/$defs/A_Inner"}, "A_Inner": STRING},
            id="a part that refers to another",
        ),
    ],
)
def test_a_schema_is_found_by_its_own_id_and_is_the_root_of_its_pointers(
    reference: str, schemas: dict[str, Schema]
) -> None:
    inner = "$defs: {Inner: {type: string}}, properties: {x: {$ref: '#/$defs/Inner'}}"
    text = f"definitions: {{A: {{$id: 'https://e.test/a', {inner}}}, B: {{$ref: '{reference}'}}}}"

    assert read_all(text, "#/definitions/B")[1:] == (schemas, ())


@pytest.mark.parametrize(
    ("text", "schemas"),
    [
        pytest.param("definitions: {A: {$ref: '#/definitions/A'}}", {"A": {}}, id="itself"),
        pytest.param(
            "definitions: {A: {$ref: '#/definitions/B'}, B: {$ref: '#/definitions/A'}}",
            {"A": {"$ref": "#/$defs/B"}, "B": {}},
            id="each other",
        ),
        pytest.param(
            "definitions: {A: {type: object, allOf: [{$ref: '#/definitions/A'}, {required: [x]}]}}",
            {"A": {"type": "object", "allOf": [{}, {"required": ["x"]}]}},
            id="by allOf",
        ),
        pytest.param(
            "definitions: {A: {not: {anyOf: [{$ref: '#/definitions/A'}]}}}",
            {"A": {"not": {"anyOf": [{}]}}},
            id="by not",
        ),
    ],
)
def test_o05_a_schema_defined_by_itself_alone_is_cut_so_that_every_reader_ends(
    text: str, schemas: dict[str, Any]
) -> None:
    _, named, warnings = read_all(text, "#/definitions/A")

    assert (named, [w.reason.partition(" is ")[2] for w in warnings]) == (
        schemas,
        ["defined by nothing but itself; any value is accepted there"],
    )


def test_o05_a_long_chain_and_a_wide_union_are_read() -> None:
    chain = {f"C{n}": {"allOf": [{"$ref": f"#/definitions/C{n + 1}"}]} for n in range(5_000)}
    wide = {"oneOf": [{"const": n} for n in range(10_000)]}
    reader = SchemaReader(References({"definitions": {**chain, "C5000": wide}}), Diagnostics())
    reader.read({"$ref": "#/definitions/C0"}, "")

    assert len(reader.finish()) == 5_001

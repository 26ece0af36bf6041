"""A discriminator shows in the schema: tags are required, and a parent stands for its children."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from sandbridge_openapi.diagnostics import Diagnostics
from sandbridge_openapi.model import Json, Schema
from sandbridge_openapi.references import References
from sandbridge_openapi.schemas import SchemaReader
from sandbridge_openapi.syntax import parse


def read_all(text: str, start: str) -> dict[str, Schema]:
    reader = SchemaReader(References(parse(text.encode(), Diagnostics())), Diagnostics())
    reader.read({"$ref": start}, "")
    return reader.finish()


def accepts(schemas: dict[str, Schema], name: str, value: Json) -> bool:
    return jsonschema_rs.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schemas}).is_valid(value)


def tagged(name: str, value: Any) -> dict[str, Any]:
    tag = {"type": "object", "required": ["kind"], "properties": {"kind": value}}
    return {"allOf": [{"$ref": f"#/$defs/{name}"}, tag]}


PETS = """
components:
  schemas:
    Pet:
      type: object
      required: [kind]
      properties: {kind: {type: string}, friends: {type: array, items: {$ref: '#/components/schemas/Pet'}}}
      discriminator: {propertyName: kind, mapping: {cat: '#/components/schemas/Cat', dog: Dog}}
    Cat: {allOf: [{$ref: '#/components/schemas/Pet'}, {type: object, properties: {lives: {type: integer}}}]}
    Dog: {allOf: [{$ref: '#/components/schemas/Pet'}, {type: object, properties: {bark: {type: boolean}}}]}
"""


def test_row_24_a_parent_with_a_mapping_is_the_union_of_its_children() -> None:
    schemas = read_all(PETS, "#/components/schemas/Pet")

    assert schemas == {
        "Pet": {
            "anyOf": [tagged("Cat", {"const": "cat"}), tagged("Dog", {"const": "dog"})],
            "discriminator": {"propertyName": "kind", "mapping": {"cat": "#/$defs/Cat", "dog": "#/$defs/Dog"}},
        },
        "Cat": {
            "allOf": [{"$ref": "#/$defs/PetBase"}, {"type": "object", "properties": {"lives": {"type": "integer"}}}]
        },
        "Dog": {
            "allOf": [{"$ref": "#/$defs/PetBase"}, {"type": "object", "properties": {"bark": {"type": "boolean"}}}]
        },
        "PetBase": {
            "type": "object",
            "required": ["kind"],
            "properties": {"kind": {"type": "string"}, "friends": {"type": "array", "items": {"$ref": "#/$defs/Pet"}}},
        },
    }


@pytest.mark.parametrize(
    ("value", "accepted"),
    [
        ({"kind": "cat", "lives": 9}, True),
        ({"kind": "cat", "lives": "nine"}, False),
        ({"kind": "dog", "lives": "nine", "more": 1}, True),
        ({"kind": "cow"}, False),
        ({"lives": 9}, False),
        ({"kind": "cat", "friends": [{"kind": "dog", "bark": True}]}, True),
        ({"kind": "cat", "friends": [{"kind": "dog", "bark": 1}]}, False),
    ],
)
def test_row_24_the_tag_chooses_the_child_and_unknown_fields_pass(value: Json, accepted: bool) -> None:
    assert accepts(read_all(PETS, "#/components/schemas/Pet"), "Pet", value) is accepted


def test_children_without_a_mapping_are_found_by_what_they_extend_at_every_level() -> None:
    text = """
    definitions:
      Animal: {type: object, discriminator: kind, required: [kind], properties: {kind: {type: string}}}
      Bird: {allOf: [{$ref: '#/definitions/Animal'}, {type: object, properties: {wings: {type: integer}}}]}
      Duck: {allOf: [{$ref: '#/definitions/Bird'}, {type: object, properties: {pond: {type: string}}}]}
      Stone: {type: object}
    """
    schemas = read_all(text, "#/definitions/Animal")

    assert schemas["Animal"] == {
        "anyOf": [
            tagged("Bird", {"const": "Bird"}),
            tagged("Duck", {"const": "Duck"}),
            {"allOf": [{"$ref": "#/$defs/AnimalBase"}, {"type": "object", "required": ["kind"]}]},
        ],
        "discriminator": {"propertyName": "kind"},
    }
    assert accepts(schemas, "Animal", {"kind": "Duck", "pond": "deep", "wings": 2})


def test_tag_values_without_a_child_belong_to_the_parent_itself() -> None:
    text = """
    definitions:
      Pet:
        type: object
        properties: {kind: {enum: [cat, fish]}}
        discriminator: {propertyName: kind, mapping: {cat: '#/definitions/Cat'}}
      Cat: {allOf: [{$ref: '#/definitions/Pet'}]}
    """
    schemas = read_all(text, "#/definitions/Pet")

    assert [accepts(schemas, "Pet", {"kind": kind}) for kind in ("cat", "fish", "dog")] == [True, True, False]


def test_a_parent_and_a_child_that_both_have_children_do_not_go_round_in_circles() -> None:
    text = """
    definitions:
      A:
        type: object
        properties: {k: {type: string}}
        discriminator: {propertyName: k, mapping: {b: '#/definitions/B', c: '#/definitions/C'}}
      B: {allOf: [{$ref: '#/definitions/A'}], discriminator: {propertyName: k, mapping: {c: '#/definitions/C'}}}
      C: {allOf: [{$ref: '#/definitions/B'}, {required: [x]}]}
    """
    schemas = read_all(text, "#/definitions/A")

    assert [accepts(schemas, "A", value) for value in ({"k": "c", "x": 1}, {"k": "c"}, {"k": "z"})] == [
        True,
        False,
        False,
    ]


def test_a_discriminator_without_children_changes_nothing() -> None:
    text = "definitions: {A: {type: object, properties: {k: {type: string}}, discriminator: {propertyName: k}}}"

    assert read_all(text, "#/definitions/A") == {
        "A": {"type": "object", "properties": {"k": {"type": "string"}}, "discriminator": {"propertyName": "k"}}
    }


def test_row_26_the_tag_is_required_in_each_branch_of_a_union() -> None:
    text = """
    definitions:
      U:
        oneOf:
        - {type: object, properties: {kind: {const: a}, n: {type: integer}}}
        - {type: object, properties: {kind: {const: b}, s: {type: string}}}
        discriminator: {propertyName: kind}
    """
    schemas = read_all(text, "#/definitions/U")

    assert [branch["required"] for branch in schemas["U"]["oneOf"]] == [["kind"], ["kind"]]
    values: list[Json] = [{"kind": "a", "n": 1}, {"kind": "b", "s": "x"}, {"n": 1}, {"kind": "c"}]
    assert [accepts(schemas, "U", value) for value in values] == [True, True, False, False]


def test_row_26_branches_by_reference_take_their_tag_from_the_mapping() -> None:
    text = """
    definitions:
      U:
        oneOf: [{$ref: '#/definitions/A'}, {$ref: '#/definitions/B'}, {type: 'null'}]
        discriminator: {propertyName: kind, mapping: {a: A, a2: A, b: '#/definitions/B'}}
      A: {type: object, properties: {kind: {type: string}}}
      B: {type: object, required: [kind], properties: {kind: {enum: [b]}}}
    """
    schemas = read_all(text, "#/definitions/U")

    assert schemas["U"] == {
        "oneOf": [
            tagged("A", {"enum": ["a", "a2"]}),
            {"$ref": "#/$defs/B"},
            {"type": "null"},
        ],
        "discriminator": {"propertyName": "kind", "mapping": {"a": "#/$defs/A", "a2": "#/$defs/A", "b": "#/$defs/B"}},
    }


def test_row_26_a_branch_that_is_itself_such_a_union_needs_no_tag_of_its_own() -> None:
    text = """
    definitions:
      Outer: {oneOf: [{$ref: '#/definitions/Inner'}], discriminator: {propertyName: kind}}
      Inner: {oneOf: [{properties: {kind: {const: a}}}], discriminator: {propertyName: kind}}
    """
    schemas = read_all(text, "#/definitions/Outer")

    assert [schema["oneOf"] for schema in schemas.values() if isinstance(schema, dict)] == [
        [{"$ref": "#/$defs/Inner"}],
        [{"properties": {"kind": {"const": "a"}}, "required": ["kind"]}],
    ]


def test_o05_a_deep_hierarchy_does_not_multiply_itself() -> None:
    levels = 220
    schemas = {"L0": {"type": "object", "discriminator": "k"}}
    for n in range(1, levels):
        schemas[f"L{n}"] = {"allOf": [{"$ref": f"#/definitions/L{n - 1}"}], "discriminator": "k"}
    diagnostics = Diagnostics()
    reader = SchemaReader(References({"definitions": schemas}), diagnostics)
    reader.read({"$ref": "#/definitions/L0"}, "")
    named = reader.finish()

    branches = sum(len(s.get("anyOf", ())) for s in named.values() if isinstance(s, dict))
    assert (branches <= 21_000, len(diagnostics.warnings()) > 0) == (True, True)

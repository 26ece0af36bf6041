"""Bodies from a guest: read without trust."""

from __future__ import annotations

from typing import Any

import pytest

from sandbridge_kit.errors import Code, SandbridgeError
from sandbridge_openapi.arguments import NO_BODY, Arguments, Binary, Form, FormPart
from sandbridge_orchestrator.core.payload import read_arguments, read_body


@pytest.mark.parametrize(
    ("payload", "body", "value"),
    [
        (None, b"", NO_BODY),
        ({"kind": "json"}, b"null", None),
        ({"kind": "json"}, b'{"n": 123456789012345678901234567890}', {"n": 123456789012345678901234567890}),
        ({"kind": "text"}, "é".encode(), "é"),
        ({"kind": "text"}, b"\xff", "\ufffd"),
        ({"kind": "bytes", "name": "a.png", "mime": "image/png"}, b"\x89", Binary(b"\x89", "a.png", "image/png")),
        ({"kind": "bytes"}, b"", Binary(b"")),
        (
            {"kind": "json", "at": [0, 20], "binary": [{"at": [20, 22], "path": ["a", 1], "mime": "x/y"}]},
            b'{"a": [1, null]}    \x00\x01',
            {"a": [1, Binary(b"\x00\x01", None, "x/y")]},
        ),
        ({"kind": "json", "at": [0, 4], "binary": [{"at": [4, 5], "path": []}]}, b"nullX", Binary(b"X")),
        (
            {
                "kind": "form",
                "parts": [
                    {"field": "t", "at": [0, 2], "file": False},
                    {"field": "f", "at": [2, 3], "file": True, "name": "n", "mime": "m/m"},
                ],
            },
            b"hi\xff",
            Form((FormPart("t", "hi"), FormPart("f", Binary(b"\xff", "n", "m/m")))),
        ),
    ],
)
def test_a_body_is_what_the_script_gave(payload: Any, body: bytes, value: Any) -> None:
    assert read_body(payload, body) == value


@pytest.mark.parametrize(
    ("payload", "body"),
    [
        ({"kind": "soup"}, b""),
        ({}, b""),
        ({"kind": "json"}, b""),
        ({"kind": "json"}, b"{"),
        ({"kind": "json"}, b"NaN"),
        ({"kind": "json"}, b"\xff"),
        ({"kind": "json"}, b"[" * 100_000),
        ({"kind": "json"}, b"9" * 10_000),
        ({"kind": "json", "at": [0, 9]}, b"null"),
        ({"kind": "json", "at": [3, 1]}, b"null"),
        ({"kind": "json", "at": "all"}, b"null"),
        ({"kind": "json", "at": [0, 4], "binary": [{"at": [0, 99], "path": []}]}, b"null"),
        ({"kind": "json", "at": [0, 4], "binary": [{"at": [0, 1], "path": ["a"]}]}, b"null"),
        ({"kind": "json", "at": [0, 2], "binary": [{"at": [0, 1], "path": ["a"]}]}, b"{}"),
        ({"kind": "json", "at": [0, 7], "binary": [{"at": [0, 1], "path": ["a"]}]}, b'{"a":1}'),
        ({"kind": "json", "at": [0, 4], "binary": [{"at": [0, 1], "path": "a"}]}, b"null"),
        ({"kind": "json", "binary": [7]}, b"null"),
        ({"kind": "json", "binary": 7}, b"null"),
        ({"kind": "form"}, b""),
        ({"kind": "form", "parts": [{"field": "a"}]}, b""),
        ({"kind": "form", "parts": ["a"]}, b""),
        ({"kind": "form", "parts": [{"field": "a", "at": [0, 0]}] * 1_001}, b""),
    ],
)
def test_a_body_that_breaks_the_protocol_is_an_error_of_the_caller(payload: Any, body: bytes) -> None:
    with pytest.raises(SandbridgeError) as error:
        read_body(payload, body)

    assert error.value.failure.code == Code.INVALID_ARGUMENTS


def test_arguments_are_read_from_their_groups() -> None:
    head = {
        "path": {"id": 1},
        "query": {"q": [1]},
        "headers": {"Accept": "x"},
        "cookies": {"c": "v"},
        "payload": {"kind": "text", "type": "text/csv"},
    }

    assert read_arguments(head, b"a,b") == Arguments(
        path={"id": 1}, query={"q": [1]}, headers={"Accept": "x"}, cookies={"c": "v"}, body="a,b", body_type="text/csv"
    )

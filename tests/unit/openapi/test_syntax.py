"""The syntax of a document is told from its bytes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbridge_openapi.diagnostics import Diagnostics
from sandbridge_openapi.errors import DocumentError
from sandbridge_openapi.model import Json, Warned
from sandbridge_openapi.syntax import SIZE_LIMIT, parse
from sandbridge_openapi.yaml_text import Bounds

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        pytest.param(b'{"a": 1}', {"a": 1}, id="JSON"),
        pytest.param(b'\xef\xbb\xbf{"a": 1}', {"a": 1}, id="row_116 JSON with a mark"),
        pytest.param('{"a": "ä"}'.encode("utf-16"), {"a": "ä"}, id="UTF-16"),
        pytest.param('{"a": "ä"}'.encode("utf-32"), {"a": "ä"}, id="UTF-32"),
        pytest.param(b"a: 1", {"a": 1}, id="row_116 YAML"),
        pytest.param(b"\xef\xbb\xbfa: 1", {"a": 1}, id="YAML with a mark"),
        pytest.param(b'# note\n{"a": 1}', {"a": 1}, id="row_116 JSON inside YAML"),
        pytest.param(b'{\n  "a": [1, 2,], # note\n}', {"a": [1, 2]}, id="row_119 JSON with commas too many"),
        pytest.param(b'\n\n  {\n\t"a": 1\n}', {"a": 1}, id="row_119 indented JSON"),
        pytest.param(b'{"a": 123456789012345678901}', {"a": 123456789012345678901}, id="row_73 a big integer"),
    ],
)
def test_the_bytes_alone_decide(data: bytes, value: Json) -> None:
    assert parse(data, Diagnostics()) == value


@pytest.mark.parametrize(
    ("data", "code", "part"),
    [
        pytest.param(b"<!doctype html><title>Docs</title>", "unreadable", "web page", id="O16 a web page"),
        pytest.param(b"\x89PNG\r\n\x1a\n", "unreadable", "byte 0", id="O16 an image"),
        pytest.param(b'{"a": \x00}', "unreadable", "NUL", id="O16 NUL"),
        pytest.param(b'{"a": "\xff"}', "unreadable", "byte 7", id="not UTF-8"),
        pytest.param(b'{"a": 1', "unreadable", "neither JSON", id="cut off"),
        pytest.param(b" " * (SIZE_LIMIT + 1), "too_large", "limit", id="too many bytes"),
        pytest.param(b"[" * 100_000, "too_deep", "deep", id="O05 deep JSON"),
        pytest.param(b'{"a":' * 300 + b"1" + b"}" * 300, "too_deep", "levels", id="O05 deep objects"),
    ],
)
def test_an_unreadable_document_is_refused_and_says_why(data: bytes, code: str, part: str) -> None:
    with pytest.raises(DocumentError) as caught:
        parse(data, Diagnostics())

    assert (caught.value.code, part in caught.value.message) == (code, True)


def test_a_document_with_too_many_values_is_refused() -> None:
    with pytest.raises(DocumentError) as caught:
        parse(json.dumps({"a": list(range(200))}).encode(), Diagnostics(), Bounds(nodes=100))

    assert caught.value.code == "too_many_nodes"


def test_a_json_key_that_stands_twice_is_reported_and_the_last_one_counts() -> None:
    diagnostics = Diagnostics()

    value = parse(b'{"p": [{"a": ": ", "b": 1, "b": 2}]}', diagnostics)

    reason = "this key stands twice in its object; the last one was taken"
    assert (value, diagnostics.warnings()) == ({"p": [{"a": ": ", "b": 2}]}, (Warned("/p/0/b", reason),))


@given(JSON_VALUES)
def test_json_is_read_as_it_was_written(value: Json) -> None:
    diagnostics = Diagnostics()

    assert (parse(json.dumps({"v": value}).encode(), diagnostics), diagnostics.warnings()) == ({"v": value}, ())


@pytest.mark.timeout(10)
def test_quotes_inside_strings_do_not_make_the_search_for_keys_quadratic() -> None:
    assert parse(json.dumps({"a": '"' * 200_000}).encode(), Diagnostics()) == {"a": '"' * 200_000}


@pytest.mark.parametrize(
    ("data", "pointer"),
    [
        pytest.param(b'{"a": [1, {"b/c": %s}]}' % (b"[" * 300 + b"]" * 300), "/a/1/b~1c/0/0/0/0/0", id="JSON"),
        pytest.param(b'{"a": {}, "%s": %s}' % (b"k" * 300, b"[" * 300 + b"]" * 300), "", id="a long name"),
        pytest.param(b"a:\n- 1\n- b/c: %s" % (b"[" * 300 + b"]" * 300), "/a/1/b~1c/0/0/0/0/0", id="YAML"),
        pytest.param(
            b"a: &a [1,1,1,1,1,1,1,1,1,1]\n"
            + b"".join(b"%c: &%c [%s]\n" % (n, n, b",".join([b"*%c" % (n - 1)] * 10)) for n in b"bcdefgh"),
            "/g",
            id="aliases that multiply",
        ),
    ],
)
def test_a_document_beyond_its_bounds_is_refused_with_the_pointer_of_where(data: bytes, pointer: str) -> None:
    with pytest.raises(DocumentError) as caught:
        parse(data, Diagnostics())

    assert (caught.value.code in ("too_deep", "too_many_nodes"), caught.value.pointer) == (True, pointer)

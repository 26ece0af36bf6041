"""Heads of messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbridge_kit.heads import HEAD_BYTES, HeadError, read_head, write_head


@given(
    st.dictionaries(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
            max_leaves=8,
        ),
        max_size=5,
    )
)
def test_a_head_is_read_as_it_was_written(head: dict[str, Any]) -> None:
    assert read_head(write_head(head)) == head


def test_half_a_surrogate_pair_arrives_as_the_replacement_character() -> None:
    assert (read_head(write_head({"a": "\ud800é😀"})), read_head(rb'{"a":"\ud800x"}')) == (
        {"a": "\ufffdé😀"},
        {"a": "\ufffdx"},
    )


def test_a_head_is_plain_json_in_utf_8() -> None:
    assert write_head({"a": "é"}).decode() == json.dumps({"a": "é"}, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize("head", [{"a": "x" * HEAD_BYTES}, {"a": float("inf")}], ids=["large", "infinite"])
def test_a_head_that_cannot_be_sent_is_refused(head: dict[str, Any]) -> None:
    with pytest.raises(HeadError):
        write_head(head)


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (b'{"a":1,"a":2}', "a key twice"),
        (b'{"a":{"b":1,"b":1}}', "a key twice"),
        (b"[" * 65 + b"]" * 65, "deeper than 64"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "deeper than 64"),
        (b"[1]", "not a JSON object"),
        (b"hello", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b'{"a":NaN}', "NaN"),
        (b'{"a":1e999999}', "beyond a double"),
        (b"[" * 65 + b'"' + b'\\"' * 100_000, "deeper than 64"),
        ('{"a":1}'.encode("utf-16"), "not JSON"),
        (b'{"a":' + b"9" * 5000 + b"}", "not JSON"),
    ],
)
def test_a_head_that_breaks_a_rule_is_refused(head: bytes, reason: str) -> None:
    with pytest.raises(HeadError, match=reason):
        read_head(head)


def test_brackets_inside_text_are_not_depth() -> None:
    head = {"a": "[{" * 500 + '\\"['}

    assert read_head(json.dumps(head).encode()) == head

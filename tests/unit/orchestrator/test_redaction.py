"""Secrets never come back, in any likely spelling."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbridge_orchestrator.core.redaction import Redactor

SECRET = 'c4n4ry+/"key\\=é~ 1'


@pytest.mark.parametrize(
    "echo",
    [
        SECRET,
        json.dumps({"auth": SECRET}),
        json.dumps({"auth": SECRET}, ensure_ascii=False),
        json.dumps({"auth": SECRET}).replace("/", "\\/"),
        quote(SECRET, safe=""),
        quote(SECRET),
        quote_plus(SECRET),
        quote(SECRET, safe="").lower(),
        base64.b64encode(SECRET.encode()).decode(),
        base64.b64encode(SECRET.encode()).decode().rstrip("="),
        base64.urlsafe_b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="),
        SECRET.replace('"', "&quot;"),
        SECRET.encode().hex(),
        SECRET.encode().hex().upper(),
    ],
)
def test_a_secret_is_replaced_in_text_and_in_bytes(echo: str) -> None:
    redactor = Redactor([SECRET])
    # The secret's own start, wherever its spelling keeps it, must be gone.
    traces = ("c4n4ry", base64.b64encode(SECRET.encode()).decode()[:8])

    text, data = redactor.text(f"<{echo}>"), redactor.data(f"<{echo}>".encode()).decode()

    assert (text, [trace for trace in traces if trace in text]) == (data, [])
    assert "[redacted]" in text


@given(
    prefix=st.binary(max_size=8),
    secret=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=40),
    suffix=st.binary(max_size=8),
)
def test_a_secret_inside_a_longer_base64_text_cannot_be_read_back(prefix: bytes, secret: str, suffix: bytes) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        shown = Redactor([secret]).text(encode(prefix + secret.encode() + suffix).decode())

        assert "[redacted]" in shown


def test_a_basic_pair_is_found_by_its_password() -> None:
    pair = base64.b64encode(b"someone:correct-horse-battery").decode()

    shown = Redactor(["correct-horse-battery"]).text(f"Basic {pair}")

    assert base64.b64decode(shown.removeprefix("Basic ").split("[redacted]")[0] + "==").startswith(b"someone")
    assert "[redacted]" in shown


def test_binary_data_around_a_secret_is_kept() -> None:
    assert Redactor(["s3cr3t-key"]).data(b"\x00\xff s3cr3t-key \xfe") == b"\x00\xff [redacted] \xfe"


def test_text_without_a_secret_is_left_as_it_is() -> None:
    assert Redactor(["s3cr3t-key"]).text("nothing here") == "nothing here"


def test_a_secret_too_short_to_be_one_does_not_spoil_answers() -> None:
    assert Redactor(["a", "id"]).text('{"id": "a"}') == '{"id": "a"}'


def test_a_redactor_prints_nothing_of_its_secrets() -> None:
    assert repr(Redactor(["s3cr3t-key"])) == "<redactor>"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (r'"\u0073\u0033cr\u0033t+key"', '"[redacted]"'),
        (r'"s3cr3t\u002Bkey"', '"[redacted]"'),
        (r'"s3cr3t\u002bkey\u0022"', r'"[redacted]\u0022"'),
        (r'"\\u0073 \u005c\u0022 \u00e9"', r'"\\u0073 \u005c\u0022 \u00e9"'),
    ],
)
def test_json_cannot_hide_a_secret_behind_escapes(text: str, shown: str) -> None:
    assert Redactor(["s3cr3t+key"]).json(text.encode()).decode() == shown


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10))
def test_redacting_json_without_secrets_keeps_its_value(value: object) -> None:
    escaped = "".join(f"\\u{ord(c):04x}" if c.isalnum() and ord(c) < 128 else c for c in json.dumps("a+b"))
    for text in (json.dumps(value), f'[{json.dumps(value)}, "\\u0041{escaped[1:]}]'):
        assert json.loads(Redactor(["s3cr3t-key"]).json(text.encode())) == json.loads(text)

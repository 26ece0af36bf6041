"""What a guest sees of a response."""

from __future__ import annotations

import pytest

from sandbridge_orchestrator.core.answers import Received, Reply, classified, reply, shown_headers
from sandbridge_orchestrator.core.redaction import NOTHING, Redactor

UTF16 = '{"a": "é"}'.encode("utf-16")


@pytest.mark.parametrize(
    ("content_type", "body", "payload", "sent"),
    [
        ("application/json", b"", None, b""),
        (None, b"", None, b""),
        ("application/json", b'{"a": 1}', {"kind": "json"}, b'{"a": 1}'),
        ("application/problem+json; charset=utf-8", b"[]", {"kind": "json"}, b"[]"),
        ("APPLICATION/JSON", b"\xef\xbb\xbf[]", {"kind": "json"}, b"[]"),
        ("application/json; charset=utf-16", UTF16, {"kind": "json"}, '{"a": "é"}'.encode()),
        ("application/json", b"90071992547409931234", {"kind": "json"}, b"90071992547409931234"),
        ("application/json", b"{oops", {"kind": "text", "mime": "application/json"}, b"{oops"),
        ("application/json", b"\xff", {"kind": "text", "mime": "application/json"}, "\ufffd".encode()),
        ("text/plain; charset=latin-1", b"caf\xe9", {"kind": "text", "mime": "text/plain"}, "café".encode()),
        ("text/plain; charset=nonsense", b"ok", {"kind": "text", "mime": "text/plain"}, b"ok"),
        ('text/plain; a=b; Charset = "Shift_JIS"', b"\x82\xa0", {"kind": "text", "mime": "text/plain"}, "あ".encode()),
        ("text/plain; charset=punycode", b"a-4g", {"kind": "text", "mime": "text/plain"}, b"a-4g"),
        ("text/plain; charset=unicode_escape", rb"\x41", {"kind": "text", "mime": "text/plain"}, rb"\x41"),
        ("text/csv", b"\xff,1", {"kind": "text", "mime": "text/csv"}, "\ufffd,1".encode()),
        ("application/xml", b"<a/>", {"kind": "text", "mime": "application/xml"}, b"<a/>"),
        ("image/svg+xml", b"<svg/>", {"kind": "text", "mime": "image/svg+xml"}, b"<svg/>"),
        ("image/png", b"\x89PNG\r\n", {"kind": "bytes", "mime": "image/png"}, b"\x89PNG\r\n"),
        (None, b"\x00", {"kind": "bytes"}, b"\x00"),
    ],
)
def test_a_body_is_json_text_or_bytes_by_its_type(
    content_type: str | None, body: bytes, payload: dict[str, str] | None, sent: bytes
) -> None:
    assert classified(content_type, body) == (payload, sent)


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/plain; charset=punycode", b"a-" + b"b" * 3_000_000),
        ('text/plain; charset="' + ";" * 60_000, b"x"),
        ("text/plain; " + "charset*0*=utf-8''a;" * 3_000, b"x"),
    ],
    ids=["punycode", "an open quote", "many continuations"],
)
def test_no_content_type_makes_reading_a_body_slow(content_type: str, body: bytes) -> None:
    # Quadratic readers need minutes for these; the suite's own timeout would end them.
    assert classified(content_type, body) == ({"kind": "text", "mime": "text/plain"}, body)


def test_headers_are_lower_case_joined_and_without_what_no_script_may_see() -> None:
    headers = (
        ("X-A", "1"),
        ("x-a", "2"),
        ("Set-Cookie", "sid=1"),
        ("Authorization", "Bearer x"),
        ("WWW-Authenticate", "Basic"),
        ("Proxy-Authenticate", "Basic"),
        ("Connection", "close"),
        ("Content-Length", "3"),
        ("X-Echo", "key-of-mine"),
    )

    assert shown_headers(headers, Redactor(["key-of-mine"])) == {
        "x-a": "1, 2",
        "content-length": "3",
        "x-echo": "[redacted]",
    }


def test_the_length_of_a_compressed_body_is_not_shown_for_the_plain_one() -> None:
    assert shown_headers((("Content-Encoding", "gzip"), ("Content-Length", "3")), NOTHING) == {}


def test_an_empty_answer_with_a_json_type_is_no_error() -> None:
    received = Received(204, (("content-type", "application/json"),), b"")

    assert reply(received, NOTHING) == Reply({"status": 204, "headers": {"content-type": "application/json"}})


@pytest.mark.parametrize("charset", ["utf-16", "utf-8", "utf-7", "utf-32"])
def test_a_secret_is_found_in_whatever_charset_it_comes(charset: str) -> None:
    body = '{"a": "key-of-mine"}'.encode(charset)
    received = Received(200, (("content-type", f"application/json; charset={charset}"),), body)

    assert reply(received, Redactor(["key-of-mine"])).body == b'{"a": "[redacted]"}'


def test_json_that_spells_a_secret_with_escapes_is_redacted() -> None:
    received = Received(200, (("content-type", "application/json"),), rb'["key\u002dof-mine"]')

    assert reply(received, Redactor(["key-of-mine"])).body == b'["[redacted]"]'

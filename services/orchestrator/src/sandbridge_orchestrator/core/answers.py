"""From an HTTP response to the answer that a guest gets: headers filtered, body classified, secrets replaced."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from sandbridge_kit.errors import Code, Failure, fail
from sandbridge_openapi.model import Json
from sandbridge_orchestrator.core.redaction import Redactor

_DROPPED = frozenset(
    {
        "set-cookie",
        "set-cookie2",
        "authorization",
        "www-authenticate",
        "authentication-info",
        "connection",
        "keep-alive",
        "transfer-encoding",
        "trailer",
        "upgrade",
    }
)
_DROPPED_WITH_ENCODING = frozenset({"content-encoding", "content-length"})
_TEXT_TYPES = frozenset(
    {
        "application/xml",
        "application/csv",
        "application/javascript",
        "application/ecmascript",
        "application/graphql",
        "application/x-www-form-urlencoded",
        "application/x-ndjson",
        "application/jsonl",
        "application/json-seq",
        "application/yaml",
        "application/x-yaml",
        "application/sql",
        "application/toml",
        "application/rtf",
    }
)
_UTF8_BOM = b"\xef\xbb\xbf"
_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([A-Za-z0-9._:+-]{1,40})\"?\s*(?:;|$)", re.IGNORECASE)
_READ_CHARSET_CHARS = 1_000
_CHARSETS = re.compile(
    r"ascii|utf-(?:7|8|8-sig|16(?:-[bl]e)?|32(?:-[bl]e)?)|iso8859-\d+|cp\d+|koi8-[rtu]|mac-[a-z0-9]+|tis-620"
    r"|gb2312|gbk|gb18030|big5(?:hkscs)?|hz|shift_jis\w*|euc_\w+|iso2022_\w+|johab"
)
"""Python's names of character sets. Its other codecs are not for the web; that of `punycode` takes hours for 10 MiB."""


@dataclass(frozen=True, slots=True)
class Received:
    """A response as the sender read it: whole, decompressed, with headers in their order."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """Return the values of the header, joined by commas; None where it is absent."""
        values = [value for key, value in self.headers if key.lower() == name]
        return ", ".join(values) if values else None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a guest gets: the answer's head and its body."""

    head: Mapping[str, Any]
    body: bytes = b""


def reply(received: Received, redactor: Redactor) -> Reply:
    """Return the answer to an `api` ask, without the secrets that `redactor` knows."""
    headers = shown_headers(received.headers, redactor)
    # Redacted after decoding: a secret in UTF-16 would not be found before.
    payload, body = classified(received.header("content-type"), received.body)
    body = redactor.json(body) if payload == {"kind": "json"} else redactor.data(body)
    head: dict[str, Any] = {"status": received.status, "headers": headers}
    if payload is not None:
        head["payload"] = payload
    return Reply(head, body)


def error_reply(failure: Failure) -> Reply:
    """Return the answer that makes the guest's call throw."""
    error: dict[str, Any] = {
        "code": failure.code.value,
        "message": failure.message,
        "hint": failure.advice,
        "retryable": failure.retryable,
    }
    if failure.retry_after_ms is not None:
        error["retryAfterMs"] = failure.retry_after_ms
    return Reply({"error": error})


def shown_headers(headers: Iterable[tuple[str, str]], redactor: Redactor) -> dict[str, str]:
    """Return the headers that a script may see: lower-case names, values of one name joined by commas."""
    lowered = [(name.lower(), value) for name, value in headers]
    hidden = _DROPPED
    if any(name == "content-encoding" for name, _ in lowered):
        hidden = _DROPPED | _DROPPED_WITH_ENCODING
    shown: dict[str, str] = {}
    for name, value in lowered:
        if name in hidden or name.startswith("proxy-"):
            continue
        clean = redactor.text(value)
        shown[redactor.text(name)] = f"{shown[name]}, {clean}" if name in shown else clean
    return shown


def classified(content_type: str | None, body: bytes) -> tuple[dict[str, Any] | None, bytes]:
    """Return the payload's head and the bytes to send for a response body.

    JSON (also `+json`) that parses is JSON; text types are decoded by their charset, faulty characters replaced; the
    rest stays bytes. An empty body is no payload, whatever its type says.
    """
    if not body:
        return None, b""
    mime, charset = media_type(content_type)
    if mime == "application/json" or mime.endswith("+json"):
        text = _utf8(body, charset)
        return ({"kind": "json"} if _is_json(text) else {"kind": "text", "mime": mime}), text
    if mime.startswith("text/") or mime.endswith("+xml") or mime in _TEXT_TYPES:
        return {"kind": "text", "mime": mime}, _utf8(body, charset)
    return {"kind": "bytes", **({"mime": mime} if mime else {})}, body


def media_type(content_type: str | None) -> tuple[str, str | None]:
    """Return the lower-case media type without parameters, and the charset (RFC 9110 section 8.3)."""
    if not content_type:
        return "", None
    mime = content_type.partition(";")[0].strip().lower()
    found = _CHARSET.search(content_type[:_READ_CHARSET_CHARS]) if ";" in content_type else None
    return mime, None if found is None else found[1].lower()


def json_of(answer: Reply) -> Json:
    """Return the JSON value of an answer, for pagination; raises `invalid_arguments` where it has none."""
    if answer.head.get("payload", {}).get("kind") != "json":
        raise fail(
            Code.INVALID_ARGUMENTS,
            "This operation's answer is not JSON, so there are no items to page through.",
            hint="Call the operation itself and read its answer.",
        )
    try:
        return json.loads(answer.body)
    except RecursionError:
        raise fail(Code.INVALID_ARGUMENTS, "This operation's answer is nested too deep to page through.") from None


def _utf8(body: bytes, charset: str | None) -> bytes:
    if charset in (None, "utf-8", "us-ascii"):
        plain = body.removeprefix(_UTF8_BOM)
        try:
            plain.decode("utf-8")
        except UnicodeDecodeError:
            return plain.decode("utf-8", "replace").encode()
        return plain
    try:
        return body.decode(charset if _is_charset(charset) else "utf-8", "replace").encode()
    except ValueError:
        return body.decode("utf-8", "replace").encode()


def _is_charset(name: str) -> bool:
    try:
        return _CHARSETS.fullmatch(codecs.lookup(name).name) is not None
    except LookupError:
        return False


def _is_json(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True

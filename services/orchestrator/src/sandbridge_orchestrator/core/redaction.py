"""Replacing secrets in what comes back from an API, in any spelling that an echo is likely to use."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

MARK = "[redacted]"
_MARK = MARK.encode()
_SHORTEST = 4
"""A shorter secret would be found everywhere in ordinary text; it is no secret."""

_SHORTEST_CORE = 6
"""The same for a piece of base64, of which long texts hold every short combination."""

_ESCAPE = re.compile(rb"\\(?:\\|u00[2-7][0-9a-fA-F])")


class Redactor:
    """Replaces a fixed set of secrets by `[redacted]`; prints as nothing.

    Each secret is found as it is, JSON-, HTML- and URL-encoded, in hexadecimal, and as base64 (standard and URL-safe,
    padded or not), on its own or at any offset inside a longer text, as in a Basic pair.
    """

    __slots__ = ("_bytes", "_secrets", "_text")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = frozenset(secrets)
        spellings = {
            spelling for secret in self._secrets if len(secret) >= _SHORTEST for spelling in _spellings(secret)
        }
        # The longest first, so that padding and quotes of a full spelling do not stay behind.
        ordered = sorted(spellings, key=lambda text: (-len(text), text))
        self._text = tuple(ordered)
        self._bytes = tuple(text.encode() for text in ordered)

    def __repr__(self) -> str:
        return "<redactor>"

    def adding(self, secrets: Iterable[str]) -> Redactor:
        """Return a redactor that knows these secrets too: this one where it does already."""
        more = self._secrets.union(secrets)
        return self if more == self._secrets else Redactor(more)

    def text(self, value: str) -> str:
        """Return `value` without the secrets."""
        for spelling in self._text:
            if spelling in value:
                value = value.replace(spelling, MARK)
        return value

    def data(self, value: bytes) -> bytes:
        """Return `value` without the secrets; binary data too."""
        for spelling in self._bytes:
            if spelling in value:
                value = value.replace(spelling, _MARK)
        return value

    def json(self, value: bytes) -> bytes:
        """Return JSON text without the secrets, also where it spells them with `\\u00XX` escapes."""
        return self.data(_ESCAPE.sub(_unescaped, value) if b"\\u00" in value else value)


NOTHING = Redactor()


def _unescaped(escape: re.Match[bytes]) -> bytes:
    # An escaped backslash is matched only so that what follows it is not taken for an escape.
    text = escape[0]
    if text == b"\\\\":
        return text
    character = bytes([int(text[4:], 16)])
    return text if character in (b'"', b"\\", b"\x7f") else character


def _spellings(secret: str) -> Iterable[str]:
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield json.dumps(secret)[1:-1].replace("/", "\\/")
    yield html.escape(secret)
    for encoded in (quote(secret, safe=""), quote(secret), quote(secret, safe="!'()*"), quote_plus(secret)):
        yield encoded
        yield _lower_hex(encoded)
    raw = secret.encode()
    yield raw.hex()
    yield raw.hex().upper()
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        padded = encode(raw).decode()
        yield padded
        yield padded.replace("/", "\\/")
        yield quote(padded, safe="")
        for offset in range(3):
            core = _core(encode(bytes(offset) + raw).decode(), offset, len(raw))
            if len(core) >= _SHORTEST_CORE:
                yield core


def _core(encoded: str, offset: int, length: int) -> str:
    # Only the characters whose six bits all come from the secret are the same whatever stands around it.
    first = -(-offset * 8 // 6)
    last = (offset + length) * 8 // 6
    return encoded[first:last]


def _lower_hex(encoded: str) -> str:
    parts = encoded.split("%")
    return parts[0] + "".join(f"%{part[:2].lower()}{part[2:]}" for part in parts[1:])

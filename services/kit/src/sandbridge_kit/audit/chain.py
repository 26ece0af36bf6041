"""The lines of a stream and the key that turns with each of them.

The key of record n gives the key of its MAC and the key of record n+1 (HKDF-Expand, RFC 5869 section 2.3), and is then
overwritten. Whoever takes over a process holds the keys of what is still to come, and can change nothing before.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Mapping
from typing import Any

KEY_BYTES = 32
_MAC_MEMBER = re.compile(rb',"mac":"([0-9a-f]{64})"\}')
_MAC_MEMBER_BYTES = len(',"mac":""}') + 64
_INFO = b"sandbridge audit ratchet v1"


class Ratchet:
    """The keys of one stream, from one record on. Prints as nothing."""

    __slots__ = ("_mac", "_next")

    def __init__(self, key: bytes) -> None:
        """`key` belongs to the next record; 32 bytes."""
        self._next = bytearray(key)
        self._mac = bytearray(KEY_BYTES)
        self.turn()

    def __repr__(self) -> str:
        return "<ratchet>"

    def turn(self) -> None:
        """Go on to the next record. There is no way back."""
        first = hmac.digest(self._next, _INFO + b"\x01", "sha256")
        self._mac[:] = hmac.digest(self._next, first + _INFO + b"\x02", "sha256")
        self._next[:] = first

    @property
    def mac_key(self) -> bytes:
        """The key of this record's MAC."""
        return bytes(self._mac)

    def copy(self) -> Ratchet:
        """Return another ratchet at the same place."""
        other = Ratchet.__new__(Ratchet)
        other._mac, other._next = bytearray(self._mac), bytearray(self._next)
        return other


def mac_of(body: bytes, mac_key: bytes) -> str:
    """Return the MAC of a line up to its `mac` member, in hex (HMAC-SHA256)."""
    return hmac.digest(mac_key, body, "sha256").hex()


def body_of(members: Mapping[str, Any]) -> bytes:
    """Return the record as one JSON object in printable ASCII, without its closing brace."""
    text = json.dumps(members, ensure_ascii=True, separators=(",", ":"))
    return text[:-1].replace("\x7f", "\\u007f").encode("ascii")


def line_of(body: bytes, mac: str | None) -> bytes:
    """Return the complete line; without a key there is no MAC."""
    return body + (b"}\n" if mac is None else b',"mac":"' + mac.encode() + b'"}\n')


def split(line: bytes) -> tuple[bytes, str | None]:
    """Return what the MAC of a line covers, and the MAC; None where the line has none."""
    found = _MAC_MEMBER.fullmatch(line, len(line) - _MAC_MEMBER_BYTES) if len(line) > _MAC_MEMBER_BYTES else None
    return (line, None) if found is None else (line[:-_MAC_MEMBER_BYTES], found[1].decode())

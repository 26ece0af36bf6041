"""The frame format of docs/reference/guest-protocol.md: bytes to messages and back, with every bound checked first."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MAX_HEAD_BYTES = 256 * 1024
MAX_CHUNK_BYTES = 1024 * 1024
MAX_DEPTH = 64
_PREFIX = struct.Struct(">II")
# A string without an end is taken whole too: looking for one anew at each of its quotes would take quadratic time.
_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class FrameError(Exception):
    """The peer broke the frame format; the message says which rule."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame as it stood on the pipe."""

    head: Mapping[str, Any]
    body: bytes = b""


def encode(head: Mapping[str, Any], body: bytes = b"") -> Iterator[bytes]:
    """Yield the frames of one message; a body beyond one chunk becomes several frames.

    Raises FrameError where the head is larger than 256 KiB.
    """
    first = body[:MAX_CHUNK_BYTES]
    if len(body) <= MAX_CHUNK_BYTES:
        yield _pack(head, first)
        return
    yield _pack({**head, "more": True}, first)
    rest = {key: head[key] for key in ("t", "seq") if key in head}
    for at in range(MAX_CHUNK_BYTES, len(body), MAX_CHUNK_BYTES):
        is_last = at + MAX_CHUNK_BYTES >= len(body)
        yield _pack(rest if is_last else {**rest, "more": True}, body[at : at + MAX_CHUNK_BYTES])


def _pack(head: Mapping[str, Any], body: bytes) -> bytes:
    text = json.dumps(head, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode(errors="replace")
    if len(text) > MAX_HEAD_BYTES:
        raise FrameError(f"a head of {len(text)} bytes; at most {MAX_HEAD_BYTES} are allowed")
    return _PREFIX.pack(len(text), len(body)) + text + body


def decode_head(raw: bytes) -> Mapping[str, Any]:
    """Return the head in `raw`. Raises FrameError where it is too deep, has a key twice, or is no JSON object."""
    if _depth(raw) > MAX_DEPTH:
        raise FrameError(f"a head is nested deeper than {MAX_DEPTH} levels")
    try:
        # Text, not bytes: from bytes json would also take UTF-16 and UTF-32.
        head = json.loads(
            raw.decode(), object_pairs_hook=_members, parse_constant=_refuse_constant, parse_float=_finite
        )
    except (ValueError, RecursionError) as error:
        raise FrameError(f"a head is not JSON: {error}"[:200]) from None
    if not isinstance(head, dict):
        raise FrameError("a head is not a JSON object")
    return head if _SURROGATE.search(raw) is None else _well_formed(head)


def _well_formed(head: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replace halves of surrogate pairs, which no encoding of Unicode can carry on, by U+FFFD."""
    text = json.dumps(head, ensure_ascii=False).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    found: Mapping[str, Any] = json.loads(text)
    return found


def _depth(raw: bytes) -> int:
    depth = deepest = 0
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH:
        return 0
    for token in _STRUCTURE.finditer(raw):
        mark = token.group()
        if mark in (b"[", b"{"):
            depth += 1
            deepest = max(deepest, depth)
        elif mark in (b"]", b"}"):
            depth -= 1
    return deepest


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise FrameError("a head has a key twice")
    return members


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise FrameError("a head holds a number beyond a double")
    return value


def _refuse_constant(name: str) -> float:
    raise FrameError(f"a head holds {name}, which is not JSON")


class Decoder:
    """Collects bytes and gives out whole frames. A frame's size is judged as soon as its prefix is here."""

    __slots__ = ("_at", "_pending")

    def __init__(self) -> None:
        self._pending = bytearray()
        self._at = 0

    @property
    def is_empty(self) -> bool:
        """True where no part of a frame is waiting for its rest."""
        return len(self._pending) == self._at

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that `data` completes, in order. Raises FrameError at the first that breaks a rule."""
        self._pending += data
        while (frame := self._next()) is not None:
            yield frame
        del self._pending[: self._at]
        self._at = 0

    def _next(self) -> Frame | None:
        if len(self._pending) - self._at < _PREFIX.size:
            return None
        head_size, body_size = _PREFIX.unpack_from(self._pending, self._at)
        if head_size > MAX_HEAD_BYTES:
            raise FrameError(f"a head of {head_size} bytes; at most {MAX_HEAD_BYTES} are allowed")
        if body_size > MAX_CHUNK_BYTES:
            raise FrameError(f"a frame's body of {body_size} bytes; at most {MAX_CHUNK_BYTES} are allowed")
        start = self._at + _PREFIX.size
        end = start + head_size + body_size
        if len(self._pending) < end:
            return None
        head = decode_head(bytes(self._pending[start : start + head_size]))
        body = bytes(self._pending[start + head_size : end])
        self._at = end
        return Frame(head, body)

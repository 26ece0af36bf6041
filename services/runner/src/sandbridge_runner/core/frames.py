"""The frame format of docs/reference/guest-protocol.md: bytes to messages and back, with every bound checked first."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sandbridge_kit.heads import HEAD_BYTES, HeadError, read_head, write_head

MAX_CHUNK_BYTES = 1024 * 1024
_PREFIX = struct.Struct(">II")


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
    try:
        text = write_head(head)
    except HeadError as error:
        raise FrameError(str(error)) from None
    return _PREFIX.pack(len(text), len(body)) + text + body


def _head(raw: bytes) -> Mapping[str, Any]:
    try:
        return read_head(raw)
    except HeadError as error:
        raise FrameError(str(error)) from None


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
        if head_size > HEAD_BYTES:
            raise FrameError(f"a head of {head_size} bytes; at most {HEAD_BYTES} are allowed")
        if body_size > MAX_CHUNK_BYTES:
            raise FrameError(f"a frame's body of {body_size} bytes; at most {MAX_CHUNK_BYTES} are allowed")
        start = self._at + _PREFIX.size
        end = start + head_size + body_size
        if len(self._pending) < end:
            return None
        head = _head(bytes(self._pending[start : start + head_size]))
        body = bytes(self._pending[start + head_size : end])
        self._at = end
        return Frame(head, body)

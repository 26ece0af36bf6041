"""Bodies in pieces, as every stream of `protos/` carries them. Pure; every bound is checked first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sandbridge_kit.heads import HEAD_BYTES, HeadError, read_head

PIECE_BYTES = 1024 * 1024
MESSAGE_BYTES = PIECE_BYTES + HEAD_BYTES + 64 * 1024
"""The largest message that is sent or taken: one piece, one head, and what frames them."""


class PieceError(Exception):
    """The other side broke a rule of the stream; the message says which."""


class BodyTooLarge(PieceError):
    """A body is larger than this run allows."""


def pieces(body: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yield a body's pieces, each with whether it is the last. An empty body is one empty piece."""
    if len(body) <= PIECE_BYTES:
        yield body, True
        return
    for at in range(0, len(body), PIECE_BYTES):
        yield body[at : at + PIECE_BYTES], at + PIECE_BYTES >= len(body)


@dataclass(frozen=True, slots=True)
class Piece:
    """One message of a body that may span several: only the first has a head, only the final one is `last`."""

    seq: int
    head: bytes
    body: bytes
    last: bool


class Joiner:
    """Puts the pieces of one direction together; the pieces of a body follow one another without a gap."""

    __slots__ = ("_first", "_held", "_limit", "_parts")

    def __init__(self, limit: int) -> None:
        """`limit` is the most bytes that one body may have."""
        self._limit = limit
        self._first: Piece | None = None
        self._parts: list[bytes] = []
        self._held = 0

    def add(self, piece: Piece) -> tuple[Mapping[str, Any], bytes] | None:
        """Return head and body of the message that `piece` completes, if it does.

        Raises PieceError for a piece against the rules, BodyTooLarge as soon as a body passes the limit.
        """
        first = self._first
        if len(piece.body) > PIECE_BYTES:
            raise PieceError(f"a piece of {len(piece.body)} bytes; at most {PIECE_BYTES} are allowed")
        if first is not None and (piece.seq != first.seq or piece.head):
            raise PieceError(f"another message before the last piece of {first.seq}")
        if first is not None and not piece.body:
            raise PieceError("an empty piece in the middle of a body")
        self._held += len(piece.body)
        if self._held > self._limit:
            raise BodyTooLarge(f"a body of more than {self._limit} bytes")
        if first is None and piece.last:
            self._held = 0
            return _head(piece), piece.body
        if first is None:
            self._first = piece
        self._parts.append(piece.body)
        if not piece.last:
            return None
        whole = _head(first or piece), b"".join(self._parts)
        self._first, self._parts, self._held = None, [], 0
        return whole


def _head(piece: Piece) -> Mapping[str, Any]:
    try:
        return read_head(piece.head)
    except HeadError as error:
        raise PieceError(str(error)) from None

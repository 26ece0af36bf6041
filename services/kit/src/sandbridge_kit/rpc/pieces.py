"""Bodies in pieces and heads as JSON, as every stream of `protos/` carries them. Pure; every bound is checked first."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

PIECE_BYTES = 1024 * 1024
HEAD_BYTES = 256 * 1024
HEAD_DEPTH = 64
MESSAGE_BYTES = PIECE_BYTES + HEAD_BYTES + 64 * 1024
"""The largest message that is sent or taken: one piece, one head, and what frames them."""
_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


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


def write_head(head: Mapping[str, Any]) -> bytes:
    """Return a head as JSON in UTF-8. Raises PieceError where it is larger than 256 KiB."""
    try:
        text = json.dumps(head, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:
        # Lone surrogates have no UTF-8; as escapes they arrive as they were.
        text = json.dumps(head, separators=(",", ":"), allow_nan=False).encode()
    except ValueError as error:
        raise PieceError(f"a head cannot be written as JSON: {error}"[:200]) from None
    if len(text) > HEAD_BYTES:
        raise PieceError(f"a head of {len(text)} bytes; at most {HEAD_BYTES} are allowed")
    return text


def read_head(raw: bytes) -> Mapping[str, Any]:
    """Return a head. Raises PieceError where it is too large or too deep, has a key twice, or is no JSON object."""
    if len(raw) > HEAD_BYTES:
        raise PieceError(f"a head of {len(raw)} bytes; at most {HEAD_BYTES} are allowed")
    if _depth(raw) > HEAD_DEPTH:
        raise PieceError(f"a head is nested deeper than {HEAD_DEPTH} levels")
    try:
        head = json.loads(raw, object_pairs_hook=_members, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise PieceError(f"a head is not JSON: {error}"[:200]) from None
    if not isinstance(head, dict):
        raise PieceError("a head is not a JSON object")
    return head


def _depth(raw: bytes) -> int:
    depth = deepest = 0
    if raw.count(b"[") + raw.count(b"{") <= HEAD_DEPTH:
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
        raise PieceError("a head has a key twice")
    return members


def _refuse(name: str) -> float:
    raise PieceError(f"a head holds {name}, which is not JSON")


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
            return read_head(piece.head), piece.body
        if first is None:
            self._first = piece
        self._parts.append(piece.body)
        if not piece.last:
            return None
        whole = read_head((first or piece).head), b"".join(self._parts)
        self._first, self._parts, self._held = None, [], 0
        return whole

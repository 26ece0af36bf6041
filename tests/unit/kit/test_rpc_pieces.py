"""Bodies in pieces, heads as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from sandbridge_kit.heads import HEAD_BYTES, HEAD_DEPTH, write_head
from sandbridge_kit.rpc import BodyTooLarge, Joiner, Piece, PieceError, pieces
from sandbridge_kit.rpc.pieces import PIECE_BYTES

MIB = 1024 * 1024


def sent(seq: int, head: Mapping[str, Any], body: bytes) -> list[Piece]:
    first = write_head(head)
    return [Piece(seq, first if at == 0 else b"", part, last) for at, (part, last) in enumerate(pieces(body))]


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 2 * PIECE_BYTES, 10 * MIB])
def test_a_body_is_put_together_again(size: int) -> None:
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    joiner = Joiner(10 * MIB)
    joined = [joiner.add(piece) for piece in sent(1, {"a": 1}, body)]

    assert (joined[:-1], joined[-1]) == ([None] * (max(1, -(-size // PIECE_BYTES)) - 1), ({"a": 1}, body))


def test_bodies_follow_one_another() -> None:
    joiner = Joiner(3 * MIB)
    parts = [*sent(1, {}, b"a" * 2 * MIB), *sent(2, {"b": 1}, b""), *sent(3, {}, b"c" * 3 * MIB)]

    assert [whole and len(whole[1]) for whole in map(joiner.add, parts) if whole] == [2 * MIB, 0, 3 * MIB]


@pytest.mark.parametrize(
    "parts",
    [
        [Piece(1, b"{}", b"a", False), Piece(2, b"", b"b", True)],
        [Piece(1, b"{}", b"a", False), Piece(1, b"{}", b"b", True)],
        [Piece(1, b"{}", b"a", False), Piece(1, b"", b"", False)],
        [Piece(1, b"{}", b"a" * (PIECE_BYTES + 1), True)],
        [Piece(1, b"", b"", True)],
        [Piece(1, b"[]", b"", True)],
        [Piece(1, b'{"a":1,"a":2}', b"", True)],
        [Piece(1, b'{"a":NaN}', b"", True)],
        [Piece(1, b"{" * 100, b"", True)],
        [Piece(1, b'{"a":' + b"[" * HEAD_DEPTH + b"]" * HEAD_DEPTH + b"}", b"", True)],
        [Piece(1, b'{"a":"' + b"x" * HEAD_BYTES + b'"}', b"", True)],
        [Piece(1, b"\xff{}", b"", True)],
    ],
    ids=str,
)
def test_a_piece_against_the_rules_is_refused(parts: list[Piece]) -> None:
    joiner = Joiner(10 * MIB)
    for part in parts[:-1]:
        joiner.add(part)

    with pytest.raises(PieceError):
        joiner.add(parts[-1])


def test_a_body_is_refused_as_soon_as_it_passes_the_limit() -> None:
    joiner = Joiner(MIB + 10)
    joiner.add(Piece(1, b"{}", b"a" * MIB, False))

    with pytest.raises(BodyTooLarge, match="more than 1048586 bytes"):
        joiner.add(Piece(1, b"", b"b" * 11, False))

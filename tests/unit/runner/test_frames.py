"""The frame format: what goes in comes out, and a broken rule is named."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbridge_kit.heads import HEAD_BYTES
from sandbridge_runner.core.frames import (
    MAX_CHUNK_BYTES,
    Decoder,
    Frame,
    FrameError,
    encode,
)

HEADS = st.dictionaries(st.text(max_size=8), st.integers() | st.text(max_size=20) | st.lists(st.none()), max_size=5)


def raw(head: bytes, body: bytes = b"") -> bytes:
    return struct.pack(">II", len(head), len(body)) + head + body


@given(st.lists(st.tuples(HEADS, st.binary(max_size=50)), max_size=5), st.integers(1, 40))
def test_frames_cut_anywhere_come_out_whole(messages: list[tuple[dict[str, Any], bytes]], size: int) -> None:
    sent = b"".join(piece for head, body in messages for piece in encode(head, body))
    decoder = Decoder()

    heard = [frame for at in range(0, len(sent), size) for frame in decoder.feed(sent[at : at + size])]

    assert (heard, decoder.is_empty) == ([Frame(head, body) for head, body in messages], True)


def test_a_long_body_is_sent_in_chunks_of_which_the_last_has_no_more() -> None:
    body = bytes(2 * MAX_CHUNK_BYTES + 5)

    frames = list(Decoder().feed(b"".join(encode({"t": "answer", "seq": 3, "x": 1}, body))))

    assert [(frame.head, len(frame.body)) for frame in frames] == [
        ({"t": "answer", "seq": 3, "x": 1, "more": True}, MAX_CHUNK_BYTES),
        ({"t": "answer", "seq": 3, "more": True}, MAX_CHUNK_BYTES),
        ({"t": "answer", "seq": 3}, 5),
    ]


@pytest.mark.parametrize("sizes", [(HEAD_BYTES + 1, 0), (2, MAX_CHUNK_BYTES + 1), (0xFFFFFFFF, 0xFFFFFFFF)])
def test_a_size_beyond_the_bound_is_refused_before_its_bytes_come(sizes: tuple[int, int]) -> None:
    with pytest.raises(FrameError, match="at most"):
        list(Decoder().feed(struct.pack(">II", *sizes)))


def test_a_head_that_is_too_large_is_not_sent() -> None:
    with pytest.raises(FrameError, match="at most 262144"):
        list(encode({"a": "x" * HEAD_BYTES}))

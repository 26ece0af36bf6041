"""The frame protocol under fire from the guest's side: typed ends, bounded memory, and no run that hears another.

`corpus/*.bin` holds streams that once broke something or come close to a rule; each is what a guest says after `ready`.
Whatever hypothesis finds belongs there too.
"""

from __future__ import annotations

import itertools
import json
import struct
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbridge_kit.heads import HEAD_BYTES
from sandbridge_kit.ports.runner import Failed, Finished, Returned, RunEvent, RunLimits
from sandbridge_runner.core.conversation import Conversation, Ended, Ready
from sandbridge_runner.core.frames import MAX_CHUNK_BYTES, encode

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.bin"))
LIMITS = RunLimits(result_bytes=4096, console_bytes=1024, body_bytes=2048)
KINDS = ["api", "fetch", "page", "result", "input", "file", "timer", "shell", ""]
TYPES = ["ready", "start", "console", "ask", "answer", "finished", "", "\ud800"]
Heard = list[RunEvent | Ready | str]


def raw(head: bytes, body: bytes = b"") -> bytes:
    return struct.pack(">II", len(head), len(body)) + head + body


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
HEADS = st.fixed_dictionaries(
    {},
    optional={
        "t": st.sampled_from(TYPES) | VALUES,
        "seq": st.integers(-1, 5) | VALUES,
        "kind": st.sampled_from(KINDS) | VALUES,
        "level": st.sampled_from(["log", "warn", "fatal"]) | VALUES,
        "text": st.text(max_size=50) | VALUES,
        "ok": VALUES,
        "more": VALUES,
        "error": st.fixed_dictionaries(
            {}, optional={"code": VALUES, "message": VALUES, "line": VALUES, "column": VALUES}
        ),
        "payload": VALUES,
    },
)
LIKELY = st.sampled_from(
    [
        {"t": "console", "level": "log", "text": "x"},
        {"t": "ask", "seq": 1, "kind": "api"},
        {"t": "ask", "seq": 2, "kind": "timer"},
        {"t": "ask", "seq": 1, "kind": "file", "more": True},
        {"t": "ask", "seq": 1},
        {"t": "finished", "ok": True},
        {"t": "finished", "ok": False, "error": {"code": "script_error"}},
    ]
)
MESSAGES = st.builds(lambda head, body: raw(json.dumps(head).encode(), body), HEADS | LIKELY, st.binary(max_size=60))
SIZES = st.builds(
    lambda head, body: struct.pack(">II", head, body), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)
)
STREAMS = st.lists(MESSAGES | SIZES | st.binary(max_size=40), max_size=8).map(b"".join)


def conversation() -> Conversation:
    made = Conversation()
    assert list(made.feed(b"".join(encode({"t": "ready", "build": "x"})))) == [Ready()]
    made.start(LIMITS)
    return made


def step(listener: Conversation, data: bytes, heard: Heard) -> bool:
    """Feed `data`; False once the run has ended."""
    try:
        heard.extend(listener.feed(data))
    except Ended as error:
        heard.append(str(error.failure.code))
        return False
    return True


def hear(stream: bytes, cuts: Sequence[int]) -> Heard:
    heard: Heard = []
    listener = conversation()
    edges = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    for start, end in itertools.pairwise(edges):
        if not step(listener, stream[start:end], heard):
            break
    return heard


def is_carried_on(event: RunEvent | Ready | str) -> bool:
    """True where what comes after the runner can carry it: JSON of Unicode text and finite numbers."""
    head: Any = getattr(event, "head", None)
    if head is not None:
        json.dumps(head, allow_nan=False, ensure_ascii=False).encode()
    if isinstance(event, Finished) and isinstance(event.outcome, Returned):
        json.loads(event.outcome.result)
    if isinstance(event, Finished) and isinstance(event.outcome, Failed):
        (event.outcome.failure.message + event.outcome.failure.hint).encode()
    return True


@settings(max_examples=300)
@given(STREAMS, st.lists(st.integers(0, 10_000), max_size=6))
def test_any_stream_gives_events_or_a_typed_end_however_it_is_cut(stream: bytes, cuts: list[int]) -> None:
    heard = hear(stream, cuts)

    assert (hear(stream, []), all(is_carried_on(event) for event in heard)) == (heard, True)


@settings(max_examples=100)
@given(STREAMS, STREAMS, st.integers(1, 7))
def test_two_runs_that_are_heard_in_turns_hear_what_each_hears_alone(one: bytes, other: bytes, size: int) -> None:
    heard: tuple[Heard, Heard] = ([], [])
    listeners = [conversation(), conversation()]
    alive = [True, True]
    for at in range(0, max(len(one), len(other)), size):
        for turn, stream in enumerate((one, other)):
            piece = stream[at : at + size]
            alive[turn] = alive[turn] and (not piece or step(listeners[turn], piece, heard[turn]))

    assert heard == (hear(one, range(0, len(one), size)), hear(other, range(0, len(other), size)))


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_every_stream_of_the_corpus_gives_events_or_a_typed_end(path: Path) -> None:
    stream = path.read_bytes()
    heard = hear(stream, range(0, len(stream), 4096))

    assert (bool(heard), all(is_carried_on(event) for event in heard)) == (True, True)


def test_the_corpus_is_here() -> None:
    assert len(CORPUS) >= 20


def piece(**members: Any) -> bytes:
    return raw(json.dumps({"t": "ask", "seq": 1, "kind": "file", **members}).encode(), b"x")


FLOODS = {
    "bytes of a frame that never ends": (struct.pack(">II", HEAD_BYTES, MAX_CHUNK_BYTES), b" " * 4096),
    "pieces of one byte": (b"", piece(more=True)),
    "empty pieces": (b"", raw(b'{"t":"ask","seq":1,"kind":"file","more":true}')),
    "console lines": (b"", raw(b'{"t":"console","level":"log","text":"xxxxxxxxxxxxxxxx"}')),
    "questions": (b"", None),
}


@pytest.mark.parametrize(("before", "repeated"), FLOODS.values(), ids=FLOODS)
def test_what_a_run_holds_of_a_flood_is_bounded(before: bytes, repeated: bytes | None) -> None:
    listener = conversation()
    limit = HEAD_BYTES + MAX_CHUNK_BYTES + 2 * 1024 * 1024
    tracemalloc.start()
    try:
        is_alive = step(listener, before, [])
        for number in range(1, 20_000):
            data = repeated or raw(json.dumps({"t": "ask", "seq": number, "kind": "timer", "ms": 0}).encode())
            if not (is_alive := is_alive and step(listener, data, [])):
                break
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (is_alive, held < limit) == (False, True)

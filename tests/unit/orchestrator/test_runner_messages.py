"""What a runner says is next to hostile code: anything may come, and only the protocol is let through."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sandbridge.runner.v1 import runner_pb2 as pb
from sandbridge_kit.errors import Code
from sandbridge_kit.ports.runner import Ask, Console, Failed, Finished, Returned, RunLimits
from sandbridge_kit.rpc import PieceError
from sandbridge_orchestrator.adapters.runner_messages import EventReader

LIMITS = RunLimits(result_bytes=50, console_bytes=60, body_bytes=40)

texts = st.text(max_size=30)
heads = st.sampled_from([b"", b"{}", b'{"a": [1]}', b"[]", b"{", b'{"a":1,"a":1}', b"1" * 5000]) | st.binary(max_size=8)
asks = st.builds(
    pb.Ask,
    seq=st.integers(0, 4),
    kind=st.integers(0, 9),
    head=heads,
    body=st.binary(max_size=30),
    last=st.booleans(),
)
failures = st.builds(
    pb.Failure,
    code=st.sampled_from([*Code, "x", ""]),
    message=texts,
    retry_after_ms=st.integers(0, 9),
    position=st.none() | st.builds(pb.Position, line=st.integers(0, 3), column=st.integers(0, 3)),
)
messages = st.one_of(
    st.builds(pb.RunResponse),
    st.builds(pb.RunResponse, started=st.builds(pb.Started, guest_build=texts)),
    st.builds(pb.RunResponse, console=st.builds(pb.Console, level=st.sampled_from(["log", "error", "x"]), text=texts)),
    st.builds(pb.RunResponse, ask=asks),
    st.builds(pb.RunResponse, result=st.builds(pb.ResultPiece, data=st.binary(max_size=30))),
    st.builds(
        pb.RunResponse,
        finished=st.one_of(
            st.builds(pb.Finished),
            st.builds(pb.Finished, returned=st.builds(pb.Returned, result=st.binary(max_size=30))),
            st.builds(pb.Finished, failed=st.builds(pb.Failed, failure=failures), peak_memory_bytes=st.integers(0, 9)),
        ),
    ),
)


def events(sent: list[Any]) -> list[Any]:
    """What is let through until the end of the run or the first broken rule."""
    reader, found = EventReader(LIMITS), []
    for message in sent:
        try:
            event = reader.read(message)
        except PieceError:
            return found
        if event is not None:
            found.append(event)
        if isinstance(event, Finished):
            return found
    return found


@given(st.lists(messages, max_size=25))
def test_whatever_a_runner_sends_is_an_event_within_the_limits_or_a_broken_rule(sent: list[Any]) -> None:
    found = events(sent)
    asked = [event for event in found if isinstance(event, Ask)]
    written = [len(event.text.encode()) for event in found if isinstance(event, Console)]
    results = [e.outcome.result for e in found if isinstance(e, Finished) and isinstance(e.outcome, Returned)]
    places = [e.outcome.failure.position for e in found if isinstance(e, Finished) and isinstance(e.outcome, Failed)]

    assert [ask.seq for ask in asked] == list(range(1, len(asked) + 1))
    assert all(len(ask.body) <= LIMITS.body_bytes and isinstance(ask.head, dict) for ask in asked)
    assert sum(written) <= LIMITS.console_bytes + 1024 + 120
    assert all(0 < len(result) <= LIMITS.result_bytes for result in results)
    assert all(place is None or (place.line > 0 and place.column > 0) for place in places)

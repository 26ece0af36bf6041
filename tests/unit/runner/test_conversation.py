"""What a guest may say: a hostile one is believed in nothing but its own result."""

from __future__ import annotations

from typing import Any

import pytest

from sandbridge_kit.errors import Code, Failure, Position
from sandbridge_kit.ports.runner import Ask, Console, Failed, Finished, Returned, RunEvent, RunLimits
from sandbridge_runner.core.conversation import Conversation, Ended, Ready
from sandbridge_runner.core.frames import encode

LIMITS = RunLimits(result_bytes=100, console_bytes=20, body_bytes=50)
READY = {"t": "ready", "build": "x"}


def said(*messages: tuple[dict[str, Any], bytes] | dict[str, Any]) -> bytes:
    pairs = [message if isinstance(message, tuple) else (message, b"") for message in messages]
    return b"".join(piece for head, body in pairs for piece in encode(head, body))


def started(limits: RunLimits = LIMITS) -> Conversation:
    conversation = Conversation()
    assert list(conversation.feed(said(READY))) == [Ready()]
    conversation.start(limits)
    return conversation


def heard(*messages: tuple[dict[str, Any], bytes] | dict[str, Any]) -> list[Ready | RunEvent]:
    return list(started().feed(said(*messages)))


def ending(*messages: tuple[dict[str, Any], bytes] | dict[str, Any]) -> Failure:
    with pytest.raises(Ended) as raised:
        heard(*messages)
    return raised.value.failure


def an_ask(seq: Any, kind: Any = "api", **members: Any) -> dict[str, Any]:
    return {"t": "ask", "seq": seq, "kind": kind, **members}


DONE = ({"t": "finished", "ok": True}, b"1")


def test_console_asks_and_result_come_out_in_order() -> None:
    log = {"t": "console", "level": "log", "text": "hi"}

    assert heard(log, (an_ask(1, call="a.b"), b"xy"), an_ask(2, "timer", ms=1), DONE) == [
        Console("log", "hi"),
        Ask(1, "api", {"call": "a.b"}, b"xy"),
        Ask(2, "timer", {"ms": 1}),
        Finished(Returned(b"1")),
    ]


@pytest.mark.parametrize(
    "messages",
    [
        [an_ask(2)],
        [an_ask(1), an_ask(3)],
        [an_ask(1), an_ask(1)],
        [an_ask(True)],
        [an_ask("1")],
        [an_ask(1, "shell")],
        [an_ask(1, ["api"])],
        [DONE, DONE],
        [DONE, an_ask(1)],
        [DONE, {"t": "console", "level": "log", "text": "x"}],
        [READY],
        [{"t": "answer", "seq": 1}],
        [{"t": ["x"]}],
        [{}],
        [{"t": "console", "level": "fatal", "text": "x"}],
        [{"t": "console", "level": "log", "text": 1}],
        [{"t": "finished", "ok": "true"}],
        [{"t": "finished", "ok": False}],
        [({"t": "finished", "ok": True}, b"not json")],
        [({"t": "finished", "ok": True}, b"")],
        [({"t": "finished", "ok": True}, b"NaN")],
        [(an_ask(1), bytes(51))],
        [an_ask(1, more=True), DONE],
        [an_ask(1, more=True), an_ask(2)],
    ],
    ids=str,
)
def test_a_broken_rule_ends_the_run(messages: list[Any]) -> None:
    assert ending(*messages).code is Code.GUEST_EXITED


def test_bytes_that_are_no_frame_end_the_run() -> None:
    with pytest.raises(Ended) as raised:
        list(started().feed(b"hello, this is not a frame at all"))

    assert raised.value.failure.code is Code.GUEST_EXITED


def test_speaking_before_the_script_is_there_ends_the_run() -> None:
    conversation = Conversation()
    with pytest.raises(Ended):
        list(conversation.feed(said(READY, DONE)))


def test_a_result_in_pieces_is_joined_and_bounded() -> None:
    pieces = [({"t": "finished", "ok": True, "more": True}, b'"ab'), ({"t": "finished"}, b'c"')]

    assert heard(*pieces) == [Finished(Returned(b'"abc"'))]
    assert ending(({"t": "finished", "ok": True, "more": True}, bytes(60)), ({"t": "finished"}, bytes(60))).code is (
        Code.OUTPUT_EXCEEDED
    )


def test_a_result_nested_too_deep_is_output_exceeded() -> None:
    conversation = started(RunLimits())
    deep = b"[" * 5000 + b"]" * 5000

    (event,) = conversation.feed(said(({"t": "finished", "ok": True}, deep)))

    assert isinstance(event, Finished)
    assert isinstance(event.outcome, Failed)
    assert event.outcome.failure.code is Code.OUTPUT_EXCEEDED


def test_a_result_with_a_lone_surrogate_is_a_result() -> None:
    body = rb'["\ud800", "\ud83d"]'

    assert heard(({"t": "finished", "ok": True}, body)) == [Finished(Returned(body))]


@pytest.mark.parametrize(
    "body", [b"1e999", rb'["\ud800", 1e999]', rb'["\ud800", NaN]', rb'["\ud800"', b"9" * 99 + b"x"]
)
def test_a_result_that_no_reader_of_json_would_take_ends_the_run(body: bytes) -> None:
    assert ending(({"t": "finished", "ok": True}, body)).code == Code.GUEST_EXITED


def test_a_failure_comes_with_its_place_and_no_more_than_it_may_say() -> None:
    error = {"code": "script_error", "message": "no", "hint": "h", "line": 2, "column": 3, "extra": 1}

    assert heard({"t": "finished", "ok": False, "error": error}) == [
        Finished(Failed(Failure(Code.SCRIPT_ERROR, "no", "h", None, Position(2, 3))))
    ]


@pytest.mark.parametrize("place", [{"line": 0, "column": 1}, {"line": "1", "column": 1}, {"line": 1}, {}])
def test_a_place_that_makes_no_sense_is_left_out(place: dict[str, Any]) -> None:
    error = {"code": "script_error", "message": "no", **place}

    assert heard({"t": "finished", "ok": False, "error": error}) == [Finished(Failed(Failure(Code.SCRIPT_ERROR, "no")))]


@pytest.mark.parametrize("code", ["cancelled", "timed_out", "at_capacity", "denied_by_policy", "nonsense", None, 1])
def test_a_guest_cannot_give_a_code_that_is_not_its_own(code: Any) -> None:
    (event,) = heard({"t": "finished", "ok": False, "error": {"code": code, "message": "x"}})

    assert event == Finished(Failed(Failure(Code.SCRIPT_ERROR, "x")))


def test_a_code_that_came_with_an_answer_may_end_the_run() -> None:
    conversation = started()
    list(conversation.feed(said(an_ask(1))))

    known = conversation.answered(1, {"code": "denied_by_policy"})
    again = conversation.answered(1, None)
    (event,) = conversation.feed(
        said({"t": "finished", "ok": False, "error": {"code": "denied_by_policy", "message": "no"}})
    )

    assert (known, again, event) == (True, False, Finished(Failed(Failure(Code.DENIED_BY_POLICY, "no"))))


def test_console_output_beyond_its_share_is_dropped() -> None:
    line = {"t": "console", "level": "log", "text": "x" * 15}

    events = heard(*[line] * 200)

    assert sum(len(event.text) for event in events if isinstance(event, Console)) < 20 + 1024 + 16


def test_more_unanswered_asks_than_anyone_needs_end_the_run() -> None:
    assert ending(*[an_ask(n) for n in range(1, 10_002)]).code is Code.CALL_LIMIT

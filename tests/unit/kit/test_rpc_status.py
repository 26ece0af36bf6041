"""Failures on the wire."""

from __future__ import annotations

import grpc
import pytest
from grpc.aio import AioRpcError, Metadata
from hypothesis import given
from hypothesis import strategies as st

from sandbridge_kit.errors import ERRORS, Code, Failure, Position
from sandbridge_kit.rpc.status import FAILURE_KEY, STATUS, decode_failure, encode_failure, failure_of

LOST = Failure(Code.SANDBOX_LOST, "gone")
HEADER_BYTES = 8192

failures = st.builds(
    Failure,
    st.sampled_from(Code),
    st.text(max_size=200),
    st.text(max_size=100),
    st.none() | st.integers(0, 10**7),
    st.none() | st.builds(Position, st.integers(1, 10**6), st.integers(1, 10**6)),
)


def an_error(status: grpc.StatusCode, *trailer: tuple[str, bytes]) -> AioRpcError:
    return AioRpcError(status, Metadata(), Metadata(*trailer), "details")


@pytest.mark.parametrize("code", list(Code))
def test_each_code_arrives_as_it_was_sent(code: Code) -> None:
    sent = Failure(code, f"about {code}", "do this", 250, Position(3, 7))

    assert failure_of(an_error(STATUS[code], (FAILURE_KEY, encode_failure(sent))), LOST) == sent


def test_only_backpressure_sends_a_caller_to_the_next_runner() -> None:
    exhausted = {code for code, status in STATUS.items() if status is grpc.StatusCode.RESOURCE_EXHAUSTED}

    assert (exhausted, {code for code in exhausted if ERRORS[code].fault or not ERRORS[code].retryable}) == (
        {Code.AT_CAPACITY, Code.RATE_LIMITED, Code.CALLER_BUSY},
        set(),
    )


def test_no_code_is_sent_as_success_or_as_a_fault_of_the_server() -> None:
    assert set(STATUS.values()) & {grpc.StatusCode.OK, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN} == set()
    assert set(STATUS) == set(Code)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (grpc.StatusCode.DEADLINE_EXCEEDED, Code.TIMED_OUT),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, Code.AT_CAPACITY),
        *((status, LOST.code) for status in grpc.StatusCode if status.name in {"UNAVAILABLE", "INTERNAL", "CANCELLED"}),
        (grpc.StatusCode.PERMISSION_DENIED, LOST.code),
    ],
)
def test_a_status_without_a_failure_means_what_its_name_says_or_that_the_service_is_lost(
    status: grpc.StatusCode, code: Code
) -> None:
    assert failure_of(an_error(status), LOST).code == code


@given(failures)
def test_any_failure_survives_the_way(failure: Failure) -> None:
    assert decode_failure(encode_failure(failure)) == failure


@pytest.mark.parametrize("character", ["a", "é", "\0", '"', "\U0001f600"])
def test_a_long_failure_is_cut_and_fits_a_header(character: str) -> None:
    raw = encode_failure(Failure(Code.SCRIPT_ERROR, character * 20_000, character * 20_000))
    arrived = decode_failure(raw)

    assert arrived is not None
    assert (len(raw) * 4 / 3 <= HEADER_BYTES, arrived.message[-1], arrived.hint[-1]) == (True, "…", "…")
    assert set(arrived.message[:-1]) == {character}


@given(st.binary(max_size=60) | st.sampled_from([b"{}", b"[]", b"null", b'{"code":"x","message":""}', b"[" * 9000]))
def test_what_is_no_failure_is_read_as_none(raw: bytes) -> None:
    assert decode_failure(raw) is None


def test_a_lone_surrogate_in_a_message_does_not_stop_it() -> None:
    assert decode_failure(encode_failure(Failure(Code.SCRIPT_ERROR, "a\ud800b"))) == Failure(Code.SCRIPT_ERROR, "a?b")

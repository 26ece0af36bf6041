"""Errors on the wire: a status for every code, and the whole failure in the trailer.

The status and its text are for tools and proxies: the text is the code's name or another constant, nothing else. The
failure itself travels as JSON in binary trailing metadata, which no access log prints.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import grpc

from sandbridge_kit.errors import Code, Failure, Position, SandbridgeError

FAILURE_KEY = "sandbridge-failure-bin"
_TEXT_BYTES = 3000
_MAX_BYTES = 6000
"""Of a whole failure: as base64 and with what gRPC adds it stays well within a header block."""

STATUS: Mapping[Code, grpc.StatusCode] = {
    Code.SCRIPT_ERROR: grpc.StatusCode.ABORTED,
    Code.SYNTAX_ERROR: grpc.StatusCode.INVALID_ARGUMENT,
    Code.TYPE_ERROR: grpc.StatusCode.INVALID_ARGUMENT,
    Code.TIMED_OUT: grpc.StatusCode.DEADLINE_EXCEEDED,
    Code.MEMORY_EXCEEDED: grpc.StatusCode.OUT_OF_RANGE,
    Code.PROCESS_LIMIT: grpc.StatusCode.OUT_OF_RANGE,
    Code.OUTPUT_EXCEEDED: grpc.StatusCode.OUT_OF_RANGE,
    Code.CODE_TOO_LARGE: grpc.StatusCode.INVALID_ARGUMENT,
    Code.CALL_LIMIT: grpc.StatusCode.OUT_OF_RANGE,
    Code.RESPONSE_TOO_LARGE: grpc.StatusCode.OUT_OF_RANGE,
    Code.GUEST_EXITED: grpc.StatusCode.ABORTED,
    Code.SANDBOX_LOST: grpc.StatusCode.UNAVAILABLE,
    Code.INVALID_ARGUMENTS: grpc.StatusCode.INVALID_ARGUMENT,
    Code.UNKNOWN_OPERATION: grpc.StatusCode.NOT_FOUND,
    Code.DENIED_BY_POLICY: grpc.StatusCode.PERMISSION_DENIED,
    Code.APPROVAL_REQUIRED: grpc.StatusCode.FAILED_PRECONDITION,
    Code.STILL_RUNNING: grpc.StatusCode.FAILED_PRECONDITION,
    Code.APPROVAL_DECLINED: grpc.StatusCode.PERMISSION_DENIED,
    Code.APPROVAL_EXPIRED: grpc.StatusCode.DEADLINE_EXCEEDED,
    Code.EGRESS_DENIED: grpc.StatusCode.PERMISSION_DENIED,
    Code.UPSTREAM_UNREACHABLE: grpc.StatusCode.UNAVAILABLE,
    Code.CREDENTIAL_ERROR: grpc.StatusCode.UNAUTHENTICATED,
    Code.REAUTHORISE: grpc.StatusCode.UNAUTHENTICATED,
    Code.REPLAY_DIVERGED: grpc.StatusCode.ABORTED,
    Code.OUTCOME_UNKNOWN: grpc.StatusCode.DATA_LOSS,
    # Whoever gets RESOURCE_EXHAUSTED from a runner tries the next one: only backpressure has it.
    Code.AT_CAPACITY: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Code.RATE_LIMITED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Code.CALLER_BUSY: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Code.DISABLED: grpc.StatusCode.FAILED_PRECONDITION,
    Code.CANCELLED: grpc.StatusCode.CANCELLED,
    Code.AUDIT_UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
}
"""The status that goes with each code."""


def encode_failure(failure: Failure) -> bytes:
    """Return the failure as the trailer carries it; long texts are cut so that it fits."""
    most = _TEXT_BYTES
    while len(raw := _written(failure, most)) > _MAX_BYTES:
        # Characters that JSON escapes take up to six times their bytes.
        most //= 2
    return raw


def _written(failure: Failure, most: int) -> bytes:
    members: dict[str, Any] = {
        "code": failure.code,
        "message": _cut(failure.message, most),
        "hint": _cut(failure.hint, most // 2),
    }
    if failure.retry_after_ms is not None:
        members["retry_after_ms"] = failure.retry_after_ms
    if failure.position is not None:
        members["position"] = [failure.position.line, failure.position.column]
    return json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def decode_failure(raw: bytes) -> Failure | None:
    """Return the failure in a trailer; None where it is no such thing."""
    if len(raw) > _MAX_BYTES:
        return None
    try:
        members = json.loads(raw)
        wait, position = members.get("retry_after_ms"), members.get("position")
        return Failure(
            Code(members["code"]),
            str(members["message"]),
            str(members.get("hint", "")),
            wait if isinstance(wait, int) and wait >= 0 else None,
            Position(int(position[0]), int(position[1])) if position else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        return None


def _cut(text: str, limit: int) -> str:
    raw = text.encode(errors="replace")
    return raw.decode() if len(raw) <= limit else raw[: limit - 3].decode(errors="ignore") + "…"


async def abort(
    context: grpc.aio.ServicerContext[Any, Any], failure: Failure, *, status: grpc.StatusCode | None = None
) -> NoReturn:
    """End the call with this failure; `status` where another than the code's own fits better."""
    trailer = ((FAILURE_KEY, encode_failure(failure)),)
    await context.abort(status or STATUS[failure.code], failure.code.value, trailer)


def failure_of(error: grpc.aio.AioRpcError, lost: Failure) -> Failure:
    """Return what the other side said went wrong; `lost` where the connection or the other side itself failed."""
    trailer: Any = error.trailing_metadata()
    for name, value in trailer or ():
        if name == FAILURE_KEY and isinstance(value, bytes) and (failure := decode_failure(value)) is not None:
            return failure
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return Failure(Code.TIMED_OUT, "the deadline passed before an answer came")
    if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return Failure(Code.AT_CAPACITY, "the service takes no more calls now")
    return lost


@contextlib.contextmanager
def translated(lost: Failure) -> Iterator[None]:
    """Turn what gRPC raises inside into a SandbridgeError; see `failure_of`."""
    try:
        yield
    except grpc.aio.AioRpcError as error:
        raise SandbridgeError(failure_of(error, lost)) from None
    except (grpc.aio.UsageError, asyncio.InvalidStateError):
        # The channel is closed, or the call is over.
        raise SandbridgeError(lost) from None
    except asyncio.CancelledError:
        # A channel that is closed under a call looks as if the waiting task itself were cancelled.
        if is_cancelled():
            raise
        raise SandbridgeError(lost) from None


def is_cancelled() -> bool:
    """True where the current task itself is being cancelled, and not only a call that it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0

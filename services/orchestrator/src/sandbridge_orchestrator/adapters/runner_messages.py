"""The runner port's values as messages of `runner.v1`. What a runner says is checked: it is next to hostile code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import get_args

from sandbridge.runner.v1 import runner_pb2 as pb
from sandbridge_kit.errors import Code, Failure, Position, fail
from sandbridge_kit.ports.runner import (
    Ask,
    AskKind,
    Console,
    Failed,
    Finished,
    Returned,
    RunEvent,
    RunLimits,
    Start,
)
from sandbridge_kit.rpc import BodyTooLarge, Joiner, Piece, PieceError

_MAX_TEXT = 8_000
_LEVELS = frozenset({"log", "info", "warn", "error", "debug"})
_KINDS: Mapping[int, AskKind] = {pb.AskKind.Value(f"ASK_KIND_{kind.upper()}"): kind for kind in get_args(AskKind)}


def start_message(start: Start, most_code_bytes: int) -> pb.RunRequest:
    """Return the first message of a run. Raises `code_too_large` for code that is not worth sending."""
    code = start.code.encode(errors="replace")
    if len(code) > most_code_bytes:
        raise fail(Code.CODE_TOO_LARGE, f"the code has {len(code)} bytes; far fewer are accepted")
    limits = pb.RunLimits(**{item.name: getattr(start.limits, item.name) for item in fields(RunLimits)})
    return pb.RunRequest(
        start=pb.Start(
            run_id=start.run_id,
            code=code.decode(),
            now_ms=start.now_ms,
            seed=start.seed,
            api_names=start.api_names,
            limits=limits,
            catalog_digests=start.catalog_digests,
            dry_run=start.dry_run,
            check=start.check,
        )
    )


def cancel_message(failure: Failure) -> pb.RunRequest:
    """Return the message that ends a run with this failure."""
    reason = pb.Failure(
        code=failure.code,
        message=_sendable(failure.message),
        hint=_sendable(failure.hint),
        retry_after_ms=failure.retry_after_ms,
    )
    return pb.RunRequest(cancel=pb.Cancel(reason=reason))


def _sendable(text: str) -> str:
    return text[:_MAX_TEXT].encode(errors="replace").decode()


class EventReader:
    """Reads the messages of one run, in order."""

    def __init__(self, limits: RunLimits) -> None:
        self._limits = limits
        self._joiner = Joiner(limits.body_bytes)
        self._asked = 0
        self._console_left = limits.console_bytes + 1024
        self._result: list[bytes] = []
        self._result_bytes = 0

    def read(self, message: pb.RunResponse) -> RunEvent | None:
        """Return the event that `message` completes, if it does. Raises PieceError where it breaks the protocol."""
        match message.WhichOneof("message"):
            case "console":
                return self._console(message.console)
            case "ask":
                return self._ask(message.ask)
            case "result":
                self._add_to_result(message.result.data)
                return None
            case "finished":
                return self._finished(message.finished)
            case _:
                raise PieceError("a message that has no place here")

    def _console(self, console: pb.Console) -> Console | None:
        if console.level not in _LEVELS:
            raise PieceError("a console line of an unknown level")
        if self._console_left <= 0:
            return None
        self._console_left -= len(console.text.encode()) + 1
        return Console(console.level, console.text)

    def _ask(self, part: pb.Ask) -> Ask | None:
        whole = self._joiner.add(Piece(part.seq, part.head, part.body, part.last))
        if whole is None:
            return None
        if part.seq != self._asked + 1 or part.kind not in _KINDS:
            raise PieceError(f"ask {self._asked + 1} is missing, or of an unknown kind")
        self._asked += 1
        return Ask(part.seq, _KINDS[part.kind], *whole)

    def _add_to_result(self, data: bytes) -> None:
        self._result_bytes += len(data)
        if not data:
            raise PieceError("an empty piece of a result")
        if self._result_bytes > self._limits.result_bytes:
            raise BodyTooLarge(f"a result of more than {self._limits.result_bytes} bytes")
        self._result.append(data)

    def _finished(self, finished: pb.Finished) -> Finished:
        peak = finished.peak_memory_bytes if finished.HasField("peak_memory_bytes") else None
        if finished.WhichOneof("outcome") == "failed":
            return Finished(Failed(read_failure(finished.failed.failure)), peak)
        # A result that has gone ahead in pieces has an end, too: no JSON text is empty.
        self._add_to_result(finished.returned.result)
        return Finished(Returned(b"".join(self._result)), peak)


def read_failure(failure: pb.Failure) -> Failure:
    """Return a runner's failure; one with a code that does not exist is `sandbox_lost`."""
    code = Code(failure.code) if failure.code in list(Code) else Code.SANDBOX_LOST
    place = failure.position
    has_place = failure.HasField("position") and place.line > 0 and place.column > 0
    return Failure(
        code,
        failure.message[:_MAX_TEXT],
        failure.hint[:_MAX_TEXT],
        failure.retry_after_ms if failure.HasField("retry_after_ms") else None,
        Position(place.line, place.column) if has_place else None,
    )

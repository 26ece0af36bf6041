"""What a guest may say, and when: frames in, events out. Everything it says is hostile until it stands here."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

import orjson

from sandbridge_kit.errors import Code, Failure, Position
from sandbridge_kit.ports.runner import Ask, AskKind, Console, Failed, Finished, Returned, RunEvent, RunLimits
from sandbridge_runner.core.frames import Decoder, Frame, FrameError

KINDS = frozenset(get_args(AskKind))
LEVELS = frozenset({"log", "info", "warn", "error", "debug"})
MAX_UNANSWERED = 10_000
MAX_TEXT = 8_000
MAX_DROPPED = 1_000
"""Console frames beyond a run's share that are read and dropped before their number ends the run."""
MAX_NUMBER = 2**31 - 1
OWN_CODES = frozenset(
    {Code.SCRIPT_ERROR, Code.SYNTAX_ERROR, Code.OUTPUT_EXCEEDED, Code.MEMORY_EXCEEDED, Code.INVALID_ARGUMENTS}
)
"""Codes that a guest may give by itself; any other must have come in with an answer."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The guest has started and waits for a script."""


class Ended(Exception):
    """The guest ended the run against the rules; carries the failure to report."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Conversation:
    """One guest's side of one run. Feed it bytes; it yields `Ready` and events, and raises `Ended` on a broken rule."""

    def __init__(self) -> None:
        self._decoder = Decoder()
        self._is_ready = False
        self._limits: RunLimits | None = None
        self._finished = False
        self._asked = 0
        self._unanswered: set[int] = set()
        self._codes = set(OWN_CODES)
        self._console_left = 0
        self._head: Mapping[str, Any] | None = None
        # One buffer, not a list: a piece of one byte would cost fifty as an object.
        self._body = bytearray()
        self._dropped = 0

    def start(self, limits: RunLimits) -> None:
        """The script is on its way: from now on the guest may speak, within these limits."""
        self._limits = limits
        self._console_left = limits.console_bytes

    def answered(self, seq: int, error: Mapping[str, Any] | None) -> bool:
        """Note an answer; False where nothing is waiting for it."""
        if seq not in self._unanswered:
            return False
        self._unanswered.discard(seq)
        if error is not None and error.get("code") in list(Code):
            self._codes.add(Code(error["code"]))
        return True

    def feed(self, data: bytes) -> Iterator[Ready | RunEvent]:
        """Yield what `data` completes. Raises `Ended` with `guest_exited`, or with the limit that was passed."""
        try:
            for frame in self._decoder.feed(data):
                yield from self._take(frame)
        except FrameError as error:
            raise Ended(_exited(f"the sandbox broke the frame protocol: {error}")) from None

    def _take(self, frame: Frame) -> Iterator[Ready | RunEvent]:
        if self._finished:
            raise FrameError("a frame after finished")
        if self._limits is None:
            if self._is_ready or frame.head.get("t") != "ready":
                raise FrameError("a frame before the script started")
            self._is_ready = True
            yield Ready()
            return
        whole = self._assembled(frame, self._limits)
        if whole is not None:
            yield from self._event(whole.head, whole.body, self._limits)

    def _assembled(self, frame: Frame, limits: RunLimits) -> Frame | None:
        head, more = frame.head, frame.head.get("more", False)
        kind = (self._head or head).get("t")
        if self._head is not None and (head.get("t"), head.get("seq")) != (kind, self._head.get("seq")):
            raise FrameError("a frame in the middle of another message")
        held = len(self._body) + len(frame.body)
        if kind == "finished" and held > limits.result_bytes:
            raise Ended(Failure(Code.OUTPUT_EXCEEDED, f"the result is larger than {limits.result_bytes} bytes"))
        if kind != "finished" and held > limits.body_bytes:
            raise FrameError(f"a body of more than {limits.body_bytes} bytes")
        if self._head is None and more is False:
            return frame
        if not frame.body:
            raise FrameError("an empty frame in the middle of a message")
        self._head = head if self._head is None else self._head
        self._body += frame.body
        if more is not False:
            return None
        whole = Frame({name: value for name, value in self._head.items() if name != "more"}, bytes(self._body))
        self._head, self._body = None, bytearray()
        return whole

    def _event(self, head: Mapping[str, Any], body: bytes, limits: RunLimits) -> Iterator[RunEvent]:
        match head.get("t"):
            case "console":
                yield from self._console(head, limits)
            case "ask":
                yield self._ask(head, body)
            case "finished":
                self._finished = True
                yield Finished(self._outcome(head, body))
            case _:
                raise FrameError("a frame of an unknown type")

    def _console(self, head: Mapping[str, Any], limits: RunLimits) -> Iterator[Console]:
        level, text = head.get("level"), head.get("text")
        if level not in LEVELS or not isinstance(text, str):
            raise FrameError("a console frame without level or text")
        size = len(text.encode(errors="replace")) + 1
        # The guest cuts its own output and says so in one more line; this holds for one that does not.
        if self._console_left > -1024:
            self._console_left -= size
            yield Console(level, text[: limits.console_bytes].encode(errors="replace").decode())
            return
        self._dropped += 1
        if self._dropped > MAX_DROPPED:
            raise FrameError("console output went on after its share was used up")

    def _ask(self, head: Mapping[str, Any], body: bytes) -> Ask:
        kind, seq = head.get("kind"), head.get("seq")
        if not isinstance(kind, str) or kind not in KINDS:
            raise FrameError("an ask of an unknown kind")
        if seq != self._asked + 1 or isinstance(seq, bool):
            raise FrameError(f"ask {self._asked + 1} is missing")
        self._asked += 1
        self._unanswered.add(self._asked)
        if len(self._unanswered) > MAX_UNANSWERED:
            raise Ended(Failure(Code.CALL_LIMIT, f"more than {MAX_UNANSWERED} calls and timers at once"))
        members = {name: value for name, value in head.items() if name not in ("t", "seq", "kind")}
        return Ask(self._asked, cast(AskKind, kind), members, body)

    def _outcome(self, head: Mapping[str, Any], body: bytes) -> Returned | Failed:
        if head.get("ok") is True:
            try:
                require_json(body)
            except RecursionError:
                return Failed(Failure(Code.OUTPUT_EXCEEDED, "the result is nested too deep"))
            except ValueError:
                raise FrameError("a result that is not JSON") from None
            return Returned(body)
        members = head.get("error")
        if head.get("ok") is not False or not isinstance(members, dict):
            raise FrameError("a finished frame without result or error")
        return Failed(self._failure(members))

    def _failure(self, error: Mapping[str, Any]) -> Failure:
        code = error.get("code")
        known = Code(code) if code in self._codes else Code.SCRIPT_ERROR
        line, column, wait = (_number(error.get(name)) for name in ("line", "column", "retryAfterMs"))
        return Failure(
            known,
            _text(error.get("message")) or "the script failed",
            _text(error.get("hint")),
            wait,
            Position(line, column) if line and column else None,
        )


def require_json(text: bytes) -> None:
    """Raise ValueError for what is no JSON, or holds a number beyond a double; RecursionError for too many levels."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if "depth limit" in str(error):
            raise RecursionError from None
        if b"\\u" not in text:
            raise
        # orjson alone refuses lone surrogates, which JSON.stringify writes as escapes.
        json.loads(text, parse_float=_finite, parse_constant=_finite)


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError("a number beyond a double")
    return value


def _number(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= MAX_NUMBER else None


def _text(value: object) -> str:
    return value[:MAX_TEXT].encode(errors="replace").decode() if isinstance(value, str) else ""


def _exited(message: str) -> Failure:
    return Failure(Code.GUEST_EXITED, message)

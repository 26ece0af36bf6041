"""The closed list of error codes, and the one error that carries them.

A code is stable: results, audit and metrics use it. `ERRORS` says for each whether a retry can help, whether it is a
fault (backpressure and a caller's own cancel are not), and what the model should do next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Code(StrEnum):
    """Every way in which a run or a call can fail."""

    SCRIPT_ERROR = "script_error"
    SYNTAX_ERROR = "syntax_error"
    TYPE_ERROR = "type_error"
    TIMED_OUT = "timed_out"
    MEMORY_EXCEEDED = "memory_exceeded"
    PROCESS_LIMIT = "process_limit"
    OUTPUT_EXCEEDED = "output_exceeded"
    CODE_TOO_LARGE = "code_too_large"
    CALL_LIMIT = "call_limit"
    RESPONSE_TOO_LARGE = "response_too_large"
    GUEST_EXITED = "guest_exited"
    SANDBOX_LOST = "sandbox_lost"
    INVALID_ARGUMENTS = "invalid_arguments"
    UNKNOWN_OPERATION = "unknown_operation"
    DENIED_BY_POLICY = "denied_by_policy"
    APPROVAL_REQUIRED = "approval_required"
    STILL_RUNNING = "still_running"
    APPROVAL_DECLINED = "approval_declined"
    APPROVAL_EXPIRED = "approval_expired"
    EGRESS_DENIED = "egress_denied"
    UPSTREAM_UNREACHABLE = "upstream_unreachable"
    CREDENTIAL_ERROR = "credential_error"
    REAUTHORISE = "reauthorise"
    REPLAY_DIVERGED = "replay_diverged"
    OUTCOME_UNKNOWN = "outcome_unknown"
    AT_CAPACITY = "at_capacity"
    RATE_LIMITED = "rate_limited"
    CALLER_BUSY = "caller_busy"
    DISABLED = "disabled"
    CANCELLED = "cancelled"
    AUDIT_UNAVAILABLE = "audit_unavailable"


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """What is true of every error with one code."""

    hint: str
    """The next step, for a model."""
    retryable: bool = False
    fault: bool = True
    """False for backpressure and for what the caller itself stopped."""


ERRORS: Mapping[Code, ErrorKind] = {
    Code.SCRIPT_ERROR: ErrorKind("Fix the script at the position given and run it again."),
    Code.SYNTAX_ERROR: ErrorKind("Fix the syntax at the position given; the script did not start."),
    Code.TYPE_ERROR: ErrorKind("Fix the call as its signature says; nothing was sent."),
    Code.TIMED_OUT: ErrorKind("Do less in one run: fewer calls, smaller pages, or calls in parallel."),
    Code.MEMORY_EXCEEDED: ErrorKind("Keep less in memory: page through the data and keep only the fields you need."),
    Code.PROCESS_LIMIT: ErrorKind("Scripts cannot start processes or threads; use plain JavaScript."),
    Code.OUTPUT_EXCEEDED: ErrorKind("Return less: aggregate, select fields, or save parts with file()."),
    Code.CODE_TOO_LARGE: ErrorKind("Shorten the script; pass data through API calls, not in the code."),
    Code.CALL_LIMIT: ErrorKind("Make fewer API calls in one run: use filters, larger pages, or several runs."),
    Code.RESPONSE_TOO_LARGE: ErrorKind("Ask the API for less: a smaller page, fewer fields, or a filter."),
    Code.GUEST_EXITED: ErrorKind("Let the script end by returning a value."),
    Code.SANDBOX_LOST: ErrorKind("Run it again; if it fails the same way, make the script simpler.", retryable=True),
    Code.INVALID_ARGUMENTS: ErrorKind("Correct the named argument; nothing was sent."),
    Code.UNKNOWN_OPERATION: ErrorKind("Use one of the nearest names, or find the operation with search_docs."),
    Code.DENIED_BY_POLICY: ErrorKind("This operation is not allowed here; do not try another way around it."),
    Code.APPROVAL_REQUIRED: ErrorKind("A person must approve this call first."),
    Code.STILL_RUNNING: ErrorKind("The run goes on; ask again later.", retryable=True, fault=False),
    Code.APPROVAL_DECLINED: ErrorKind("A person declined this call; do not repeat it."),
    Code.APPROVAL_EXPIRED: ErrorKind("Nobody answered in time; start the run again if it is still wanted."),
    Code.EGRESS_DENIED: ErrorKind("Only the configured API can be reached; use its operations."),
    Code.UPSTREAM_UNREACHABLE: ErrorKind("The API did not answer; try again later.", retryable=True),
    Code.CREDENTIAL_ERROR: ErrorKind("The server's credential for this API is missing or was refused; tell the user."),
    Code.REAUTHORISE: ErrorKind("The user must sign in again."),
    Code.REPLAY_DIVERGED: ErrorKind("The script did not repeat its earlier calls; start it as a new run."),
    Code.OUTCOME_UNKNOWN: ErrorKind("The call may have taken effect; check the API before repeating it."),
    Code.AT_CAPACITY: ErrorKind("The server is busy; retry after the time given.", retryable=True, fault=False),
    Code.RATE_LIMITED: ErrorKind("Too many runs; retry after the time given.", retryable=True, fault=False),
    Code.CALLER_BUSY: ErrorKind("Wait for one of your runs to finish, then retry.", retryable=True, fault=False),
    Code.DISABLED: ErrorKind("This is switched off here; search_docs still works.", fault=False),
    Code.CANCELLED: ErrorKind("The run was cancelled.", fault=False),
    Code.AUDIT_UNAVAILABLE: ErrorKind(
        "Calls cannot be recorded right now, so none are made; try later.", retryable=True
    ),
}


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the caller's own code; both numbers start at 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Failure:
    """One error as a value. `hint` is empty where the code's own hint says it all."""

    code: Code
    message: str
    hint: str = ""
    retry_after_ms: int | None = None
    position: Position | None = None

    @property
    def advice(self) -> str:
        """The next step: this failure's own hint, else its code's."""
        return self.hint or ERRORS[self.code].hint

    @property
    def retryable(self) -> bool:
        """True where the same request may succeed later."""
        return ERRORS[self.code].retryable


class SandbridgeError(Exception):
    """A failure on its way to whoever asked."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"{failure.code}: {failure.message}")
        self.failure = failure


def fail(code: Code, message: str, *, hint: str = "", retry_after_ms: int | None = None) -> SandbridgeError:
    """Return (not raise) the error for `code`, so that callers write `raise fail(...)`."""
    return SandbridgeError(Failure(code, message, hint, retry_after_ms))

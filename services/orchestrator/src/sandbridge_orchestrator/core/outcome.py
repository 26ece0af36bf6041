"""What `execute` was asked and how a run ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, assert_never

from sandbridge_kit.errors import Failure
from sandbridge_openapi.model import Json


@dataclass(frozen=True, slots=True)
class ExecuteRequest:
    """One script to run. `timeout_ms` is clamped to the server's limit; `dry_run` sends no unsafe call.

    `check`: look for mistakes in types first, and run nothing where there are any.
    """

    code: str
    timeout_ms: int | None = None
    dry_run: bool = False
    check: bool = False


@dataclass(frozen=True, slots=True)
class LogLine:
    """One console line."""

    level: str
    text: str


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One API call as the model sees it. `path` has credentials masked."""

    operation: str
    method: str
    path: str
    status: int | None
    duration_ms: float
    bytes: int
    decision: str


@dataclass(frozen=True, slots=True)
class FileMade:
    """A file that the script made with `file()`."""

    name: str
    mime: str
    data: bytes
    handle: str


@dataclass(frozen=True, slots=True)
class Truncated:
    """The result was cut; all `bytes` of it are kept under `handle`."""

    bytes: int
    handle: str


@dataclass(frozen=True, slots=True)
class Report:
    """What every outcome tells."""

    run_id: str
    logs: tuple[LogLine, ...]
    calls: tuple[CallRecord, ...]
    duration_ms: float


@dataclass(frozen=True, slots=True)
class RunReturned:
    """The script returned. `result` is already cut to what a model may see."""

    report: Report
    result: Json
    truncated: Truncated | None = None
    files: tuple[FileMade, ...] = ()


@dataclass(frozen=True, slots=True)
class RunFailed:
    """The script threw or was ended."""

    report: Report
    failure: Failure


@dataclass(frozen=True, slots=True)
class RunCancelled:
    """The caller stopped it."""

    report: Report
    failure: Failure


@dataclass(frozen=True, slots=True)
class Question:
    """Why a call is held."""

    operation: str
    method: str
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class RunHeld:
    """A person must decide; the sandbox is gone and its slot is free."""

    report: Report
    questions: tuple[Question, ...]


RunOutcome: TypeAlias = RunReturned | RunFailed | RunCancelled | RunHeld


def outcome_code(outcome: RunOutcome) -> str:
    """Return the one word that audit and metrics use for how a run ended: `returned`, `held` or an error code."""
    match outcome:
        case RunReturned():
            return "returned"
        case RunFailed(failure=failure) | RunCancelled(failure=failure):
            return failure.code.value
        case RunHeld():
            return "held"
        case _:
            assert_never(outcome)

"""`runner.v1.Runner.Run`: one script in one single-use sandbox.

The caller opens a run, reads its events, and answers each `Ask` by its number. Bodies are whole here; the wire and the
guest's pipe carry them in chunks. Everything that can differ between two runs of the same script reaches the guest
as `Start` or as an `Answer`, so the same messages give the same run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from sandbridge_kit.errors import Failure

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What one run may use. The runner clamps each to its own ceiling."""

    wall_clock_ms: int = 30_000
    memory_bytes: int = 256 * MIB
    """Resident memory of the whole sandbox, not only the JavaScript heap."""
    result_bytes: int = 10 * MIB
    console_bytes: int = 64 * 1024
    body_bytes: int = 10 * MIB
    """Largest body of one ask or answer."""
    in_flight_bytes: int = 32 * MIB
    """Bodies held at once for one run."""


@dataclass(frozen=True, slots=True)
class Start:
    """What a run begins with. `seed` is 32 random bytes; `now_ms` is Unix time."""

    run_id: str
    code: str
    now_ms: int
    seed: bytes
    api_names: tuple[str, ...]
    limits: RunLimits = field(default_factory=RunLimits)
    catalog_digests: tuple[str, ...] = ()
    dry_run: bool = False
    check: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to the `Ask` with the same `seq`. The guest's clock jumps to `at_ms` when it is delivered."""

    seq: int
    at_ms: float
    head: Mapping[str, Any]
    """JSON, ≤ 256 KiB. `{"error": {code, message, hint, retryable, retryAfterMs}}` makes the guest's call throw."""
    body: bytes = b""


AskKind: TypeAlias = Literal["api", "fetch", "page", "result", "input", "file", "timer"]


@dataclass(frozen=True, slots=True)
class Started:
    """The sandbox has taken the script. `guest_build` identifies guest and engine, for replay."""

    guest_build: str


@dataclass(frozen=True, slots=True)
class Console:
    """One line the script logged. `level` is log, info, warn, error or debug."""

    level: str
    text: str


@dataclass(frozen=True, slots=True)
class Ask:
    """The script wants something from outside. Numbers count from 1 without gaps, in the order asked."""

    seq: int
    kind: AskKind
    head: Mapping[str, Any]
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Returned:
    """The script returned; `result` is UTF-8 JSON text."""

    result: bytes


@dataclass(frozen=True, slots=True)
class Failed:
    """The script threw, or the sandbox ended it."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a run: exactly one, and nothing after it."""

    outcome: Returned | Failed
    peak_memory_bytes: int | None = None


RunEvent: TypeAlias = Started | Console | Ask | Finished


class Run(Protocol):
    """One open run. Leaving its context destroys the sandbox, whatever state it is in."""

    def events(self) -> AsyncIterator[RunEvent]:
        """Yield events in order; ends after `Finished`."""
        ...

    async def answer(self, answer: Answer) -> None:
        """Deliver one answer; answers reach the guest in the order of these calls. Ignored once the run is over."""
        ...

    async def cancel(self, failure: Failure) -> None:
        """Kill the sandbox now; the run then finishes with this failure."""
        ...


@dataclass(frozen=True, slots=True)
class RunnerStatus:
    """How full a runner is."""

    free_slots: int
    running: int
    idle_spares: int


class Runner(Protocol):
    """Starts runs."""

    def open(self, start: Start) -> AbstractAsyncContextManager[Run]:
        """Enter to start a run. Entering raises `at_capacity` when no slot is free; it never queues."""
        ...

    def status(self) -> RunnerStatus:
        """Return the state of now."""
        ...

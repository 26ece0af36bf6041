"""Ports with behaviour that a test writes down: real implementations, nothing patched."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sandbridge_kit.errors import Code, Failure, SandbridgeError, fail
from sandbridge_kit.ports.runner import (
    Answer,
    Ask,
    AskKind,
    Console,
    Failed,
    Finished,
    Returned,
    Run,
    RunEvent,
    RunnerStatus,
    Start,
    Started,
)


class ScriptedGuest:
    """The guest's side of one run, for a script written in Python."""

    def __init__(self, start: Start) -> None:
        self.start = start
        self.answers: list[Answer] = []
        """Every answer delivered, in the order of delivery."""
        self._events: asyncio.Queue[RunEvent] = asyncio.Queue()
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._asked = 0

    def begin(self, kind: AskKind, head: Mapping[str, Any], body: bytes = b"") -> asyncio.Future[Answer]:
        """Ask without waiting; the future gets the answer."""
        self._asked += 1
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[self._asked] = future
        self._events.put_nowait(Ask(self._asked, kind, head, body))
        return future

    async def ask(self, kind: AskKind, head: Mapping[str, Any], body: bytes = b"") -> Answer:
        """Ask and wait for the answer; raises SandbridgeError where it is an error."""
        answer = await self.begin(kind, head, body)
        error = answer.head.get("error")
        if error is not None:
            raise SandbridgeError(
                Failure(Code(error["code"]), error["message"], error["hint"], error.get("retryAfterMs"))
            )
        return answer

    async def call(self, name: str, *, json_body: Any = None, api: str = "api", **groups: Any) -> Answer:
        """Call an operation: `call("orders.get", path={"id": 1})`."""
        head = {"api": api, "call": name, **groups}
        if json_body is None:
            return await self.ask("api", head)
        return await self.ask("api", {**head, "payload": {"kind": "json"}}, json.dumps(json_body).encode())

    def log(self, text: str, level: str = "log") -> None:
        """Write one console line."""
        self._events.put_nowait(Console(level, text))


Script: TypeAlias = Callable[[ScriptedGuest], Awaitable[Any]]
"""What it returns is the result; a SandbridgeError becomes the run's failure."""


class ScriptedRun:
    """A `ports.runner.Run` whose events come from a script."""

    def __init__(self, guest: ScriptedGuest, script: Script) -> None:
        self._guest = guest
        self._script = script
        self._task = asyncio.create_task(self._perform())
        self.cancelled: Failure | None = None

    async def _perform(self) -> None:
        events = self._guest._events
        events.put_nowait(Started("scripted"))
        try:
            result = await self._script(self._guest)
            text = result if isinstance(result, bytes) else json.dumps(result).encode()
            events.put_nowait(Finished(Returned(text)))
        except SandbridgeError as error:
            events.put_nowait(Finished(Failed(error.failure)))

    async def events(self) -> AsyncIterator[RunEvent]:
        """Yield events in order; ends after `Finished`."""
        while True:
            event = await self._guest._events.get()
            yield event
            if isinstance(event, Finished):
                return

    async def answer(self, answer: Answer) -> None:
        """Deliver one answer; ignored once the run is over."""
        waiting = self._guest._waiting.pop(answer.seq, None)
        if waiting is not None and not self._task.done() and not waiting.done():
            self._guest.answers.append(answer)
            waiting.set_result(answer)

    async def cancel(self, failure: Failure) -> None:
        """End the script now; the run then finishes with this failure."""
        if self.cancelled is None and not self._task.done():
            self.cancelled = failure
            self._task.cancel()
            self._guest._events.put_nowait(Finished(Failed(failure)))

    async def close(self) -> None:
        """End the script, whatever state it is in."""
        self._task.cancel()
        await asyncio.wait([self._task])


@dataclass
class ScriptedRunner:
    """A `ports.runner.Runner` that plays one script for every run."""

    script: Script
    slots: int = 4
    starts: list[Start] = field(default_factory=list)
    guests: list[ScriptedGuest] = field(default_factory=list)
    runs: list[ScriptedRun] = field(default_factory=list)
    running: int = 0

    @contextlib.asynccontextmanager
    async def open(self, start: Start) -> AsyncIterator[Run]:
        """Start the script; raises `at_capacity` when no slot is free."""
        if self.running >= self.slots:
            raise fail(Code.AT_CAPACITY, "No slot is free.")
        self.running += 1
        self.starts.append(start)
        guest = ScriptedGuest(start)
        self.guests.append(guest)
        run = ScriptedRun(guest, self.script)
        self.runs.append(run)
        try:
            yield run
        finally:
            self.running -= 1
            await run.close()

    def status(self) -> RunnerStatus:
        """Return the state of now."""
        return RunnerStatus(self.slots - self.running, self.running, 0)

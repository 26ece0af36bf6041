"""Runs: one script, one guest, one end. Implements the runner port over a warm pool."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from types import TracebackType
from typing import Self

from sandbridge_kit.errors import Code, Failure, fail
from sandbridge_kit.ports.runner import (
    Answer,
    Ask,
    Failed,
    Finished,
    Run,
    RunEvent,
    RunLimits,
    RunnerStatus,
    Start,
    Started,
)
from sandbridge_runner.core import verdict
from sandbridge_runner.core.conversation import Ended, Ready
from sandbridge_runner.core.fence import without_fence
from sandbridge_runner.core.frames import FrameError, encode
from sandbridge_runner.core.limits import MAX_CODE_BYTES, clamp
from sandbridge_runner.engines.base import Ending, Engine
from sandbridge_runner.pool import PoolSettings, Spare, WarmPool
from sandbridge_runner.watch import MemoryWatch, Watched

MAX_QUEUED_EVENTS = 1000
CAPACITY_RETRY_MS = 500
LOADING_S = 0.1
"""Time that a script has to load before its guest may write nothing more."""

# Killing a guest, cleaning up after it and starting the next one each block the loop for a millisecond or more, so the
# answer of a run goes out first.
KILL_AFTER_RESULT_S = 0.003
REFILL_AFTER_RUN_S = 0.005


class PoolRunner:
    """Implements `ports.runner.Runner`: at most `slots` runs at once, never more than `ceilings` each."""

    def __init__(
        self,
        engine: Engine,
        *,
        slots: int = 4,
        spares: int = 2,
        ceilings: RunLimits | None = None,
        pool: PoolSettings | None = None,
    ) -> None:
        """`pool` sets the finer points of warmth; its `spares` is replaced by `spares`."""
        self._engine = engine
        self._slots = slots
        self._ceilings = ceilings or RunLimits()
        self._settings = replace(pool or PoolSettings(), spares=spares)
        self._running: set[PooledRun] = set()
        self._entering = 0
        self._pool: WarmPool | None = None
        self._watch = MemoryWatch()

    async def start(self) -> None:
        """Prepare the engine and warm the pool. Raises `sandbox_lost` where guests do not start here."""
        await asyncio.to_thread(self._engine.prepare)
        self._pool = WarmPool(self._engine, self._settings)
        try:
            await self._pool.fill()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Cancel the runs, kill every guest, wait until none is left, remove what the engine made."""
        for run in list(self._running):
            run.end(Failure(Code.CANCELLED, "the server is stopping"))
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()
        self._watch.stop()
        await asyncio.to_thread(self._engine.dispose)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def status(self) -> RunnerStatus:
        """Return the state of now."""
        running = len(self._running) + self._entering
        return RunnerStatus(max(0, self._slots - running), running, self._pool.idle if self._pool else 0)

    @asynccontextmanager
    async def open(self, start: Start) -> AsyncIterator[Run]:
        """Enter to start a run. Entering raises `at_capacity`, `code_too_large`, or `sandbox_lost`."""
        if self._pool is None:
            raise fail(Code.AT_CAPACITY, "the runner is not started or is stopping", retry_after_ms=CAPACITY_RETRY_MS)
        code = without_fence(start.code).encode(errors="replace")
        if len(code) > MAX_CODE_BYTES:
            raise fail(Code.CODE_TOO_LARGE, f"the code has {len(code)} bytes; at most {MAX_CODE_BYTES} are accepted")
        if self.status().free_slots == 0:
            raise fail(Code.AT_CAPACITY, f"all {self._slots} sandboxes are in use", retry_after_ms=CAPACITY_RETRY_MS)
        self._entering += 1
        try:
            spare = await self._pool.take()
        finally:
            self._entering -= 1
        run = PooledRun(spare, clamp(start.limits, self._ceilings), self._watch)
        self._running.add(run)
        try:
            run.begin(start, code, self._engine.build, self._pool)
            yield run
        finally:
            self._running.discard(run)
            run.close()
            if self._pool is not None:
                self._pool.refill_after(REFILL_AFTER_RUN_S)


class PooledRun:
    """Implements `ports.runner.Run`."""

    def __init__(self, spare: Spare, limits: RunLimits, watch: MemoryWatch) -> None:
        self._pipe = spare.pipe
        self._guest = spare.pipe.guest
        self._spare = spare
        self._conversation = spare.conversation
        self._limits = limits
        self._watch = watch
        self._loop = asyncio.get_running_loop()
        self._events: deque[RunEvent] = deque()
        self._has_event = asyncio.Event()
        self._held: dict[int, int] = {}
        self._held_bytes = 0
        self._is_over = False
        self._deadline: asyncio.TimerHandle | None = None
        self._loading: asyncio.TimerHandle | None = None
        self._watched = Watched(self._guest, limits.memory_bytes, self._memory_exceeded)

    def begin(self, start: Start, code: bytes, build: str, pool: WarmPool) -> None:
        """Hand the script to the guest and start the clocks."""
        limits = self._limits
        pool.leased(self._spare, self._heard, self._died)
        self._conversation.start(limits)
        self._push(Started(build))
        head = {
            "t": "start",
            "run_id": start.run_id,
            "now_ms": start.now_ms,
            "seed": start.seed.hex(),
            "apis": list(start.api_names),
            "dry_run": start.dry_run,
            "limits": {
                "result_bytes": limits.result_bytes,
                "console_bytes": limits.console_bytes,
                "body_bytes": limits.body_bytes,
            },
        }
        for data in encode(head, code):
            self._pipe.write(data)
        # While the guest reads: what these take is not waited for.
        self._guest.bound(limits.memory_bytes)
        self._deadline = self._loop.call_later(limits.wall_clock_ms / 1000, self._timed_out)
        self._loading = self._loop.call_later(LOADING_S, self._guest.loaded)
        self._watch.add(self._watched)
        if self._pipe.ended.is_set():
            # It died between being ready and being taken: nobody else will tell.
            self.end(Failure(Code.SANDBOX_LOST, "the sandbox died before the script started"))

    async def events(self) -> AsyncIterator[RunEvent]:
        """Yield events in order; ends after `Finished`."""
        while True:
            while not self._events:
                self._has_event.clear()
                await self._has_event.wait()
            event = self._events.popleft()
            self._resume_reading()
            yield event
            if isinstance(event, Finished):
                return

    async def answer(self, answer: Answer) -> None:
        """Deliver one answer, in the order of these calls; waits where the guest is slow to read."""
        self._held_bytes -= self._held.pop(answer.seq, 0)
        self._resume_reading()
        if self._is_over or not self._conversation.answered(answer.seq, answer.head.get("error")):
            return
        head = {**answer.head, "t": "answer", "seq": answer.seq, "at_ms": answer.at_ms}
        try:
            for data in encode(head, answer.body):
                self._pipe.write(data)
        except FrameError as error:
            self.end(Failure(Code.RESPONSE_TOO_LARGE, f"an answer cannot enter the sandbox: {error}"))
            return
        await self._pipe.room(self._limits.in_flight_bytes)

    async def cancel(self, failure: Failure) -> None:
        """Kill the guest now; the run finishes with `failure`, unless it has finished before."""
        self.end(failure)

    def end(self, failure: Failure) -> None:
        """Finish the run with `failure` and kill the guest; without effect on a run that is over."""
        if not self._is_over:
            self._finish(Finished(Failed(failure), self._peak()))

    def close(self) -> None:
        """Destroy the guest, whatever state it is in."""
        self.end(Failure(Code.CANCELLED, "the run was left"))

    def _is_roomy(self) -> bool:
        return len(self._events) < MAX_QUEUED_EVENTS and self._held_bytes <= self._limits.in_flight_bytes

    def _resume_reading(self) -> None:
        if not self._is_over and self._is_roomy():
            self._pipe.resume()

    def _push(self, event: RunEvent) -> None:
        self._events.append(event)
        if isinstance(event, Ask) and event.body:
            # Held until it is answered: a script that asks for more than may be held waits in its own process.
            self._held[event.seq] = len(event.body)
            self._held_bytes += len(event.body)
        self._has_event.set()

    def _finish(self, finished: Finished, *, kill_after: float = 0.0) -> None:
        if self._is_over:
            return
        self._is_over = True
        if kill_after:
            self._loop.call_later(kill_after, self._guest.kill)
        else:
            self._guest.kill()
        for timer in (self._deadline, self._loading):
            if timer is not None:
                timer.cancel()
        self._watch.remove(self._watched)
        self._push(finished)

    def _peak(self) -> int | None:
        known = self._guest.peak_bytes()
        return known if known is not None else self._watched.peak or None

    def _heard(self, data: bytes) -> None:
        if self._is_over:
            return
        last: Finished | None = None
        try:
            for event in self._conversation.feed(data):
                if isinstance(event, Finished):
                    last = event
                elif not isinstance(event, Ready):
                    self._push(event)
        except Ended as error:
            self.end(error.failure)
            return
        if last is not None:
            self._finish(Finished(last.outcome, self._peak()), kill_after=KILL_AFTER_RESULT_S)
        elif not self._is_roomy():
            self._pipe.pause()

    def _died(self, ending: Ending, errors: str) -> None:
        if self._is_over:
            return
        if self._watched.is_exceeded:
            self.end(verdict.memory_exceeded(self._limits.memory_bytes))
        elif ending.is_lost:
            self.end(verdict.of_lost_boundary())
        else:
            self.end(verdict.of_silent_end(ending.code, out_of_memory=ending.out_of_memory, errors=errors))

    def _timed_out(self) -> None:
        self.end(Failure(Code.TIMED_OUT, f"the script ran longer than {self._limits.wall_clock_ms} ms"))

    def _memory_exceeded(self) -> None:
        failure = verdict.memory_exceeded(self._limits.memory_bytes)
        self._loop.call_soon_threadsafe(self.end, failure)

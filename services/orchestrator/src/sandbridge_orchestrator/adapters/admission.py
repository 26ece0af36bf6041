"""Who may run now: a fixed number of places and a bounded queue in front of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator

from sandbridge_kit.errors import Code, fail
from sandbridge_kit.identity import Caller

_SHORTEST_RETRY_MS = 1_000


class Slots:
    """`running` places; up to `queue` runs wait for one, in order, each at most `queue_timeout_ms`."""

    def __init__(self, running: int, queue: int | None = None, queue_timeout_ms: int = 30_000) -> None:
        """Without `queue`, ten runs may wait for each place."""
        self._free = running
        self._queue = 10 * running if queue is None else queue
        self._timeout_ms = queue_timeout_ms
        self._waiting: deque[asyncio.Future[None]] = deque()

    @contextlib.asynccontextmanager
    async def admit(self, caller: Caller) -> AsyncIterator[None]:
        """Hold one place; raises `at_capacity` when the queue is full or the wait too long."""
        await self._take()
        try:
            yield
        finally:
            self._give()

    def spend(self, caller: Caller) -> None:
        """Do nothing: calls are counted where callers are told apart."""

    async def _take(self) -> None:
        if self._free > 0:
            self._free -= 1
            return
        if len(self._waiting) >= self._queue:
            raise self._at_capacity("All sandboxes are in use and the queue is full.")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                await turn
        except TimeoutError:
            self._leave(turn)
            raise self._at_capacity(f"No sandbox became free within {self._timeout_ms / 1000:g} s.") from None
        except asyncio.CancelledError:
            self._leave(turn)
            raise

    def _leave(self, turn: asyncio.Future[None]) -> None:
        if turn in self._waiting:
            self._waiting.remove(turn)
        elif turn.done() and not turn.cancelled():
            # The place was given at the very moment that the wait ended.
            self._give()

    def _give(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _at_capacity(self, message: str) -> Exception:
        retry_after = max(_SHORTEST_RETRY_MS, min(self._timeout_ms, 1_000 * (1 + len(self._waiting))))
        return fail(Code.AT_CAPACITY, message, retry_after_ms=retry_after)

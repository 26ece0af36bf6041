"""Bytes in flight: how much may be held at once, and who waits for room."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from types import TracebackType
from typing import Self


class ByteBudget:
    """A number of bytes shared by many holders. Who asks for more than is free waits, in order."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._free = limit
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def free(self) -> int:
        """Bytes that nobody holds."""
        return self._free

    async def take(self, amount: int) -> int:
        """Take room and return how much was taken: `amount`, or all there can be where it is more.

        Who needs none never waits, so calls without large bodies go on while others queue for room.
        """
        if amount <= 0:
            return 0
        amount = min(amount, self._limit)
        if not self._waiting and amount <= self._free:
            self._free -= amount
            return amount
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (amount, turn)
        self._waiting.append(entry)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give(amount)
            else:
                # Gone already where another that was cancelled too has tidied up.
                with contextlib.suppress(ValueError):
                    self._waiting.remove(entry)
                self._wake()
            raise
        return amount

    def give(self, amount: int) -> None:
        """Give room back."""
        self._free += amount
        self._wake()

    def _wake(self) -> None:
        while self._waiting and (self._waiting[0][1].done() or self._waiting[0][0] <= self._free):
            amount, turn = self._waiting.popleft()
            if not turn.done():
                self._free -= amount
                turn.set_result(None)


class Room:
    """What one ask holds of several budgets, given back at the end of the block."""

    def __init__(self, *budgets: ByteBudget) -> None:
        self._budgets = budgets
        self._held: list[tuple[ByteBudget, int]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.empty()

    async def swap(self, amount: int) -> None:
        """Give back what is held and take `amount` instead.

        Nothing large is ever held while more is asked for, so holders cannot block one another for good.
        """
        self.empty()
        for budget in self._budgets:
            self._held.append((budget, await budget.take(amount)))

    def empty(self) -> None:
        """Give everything back."""
        while self._held:
            budget, amount = self._held.pop()
            budget.give(amount)

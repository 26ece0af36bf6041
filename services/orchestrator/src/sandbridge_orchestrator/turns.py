"""A queue in front of something that is scarce: first come, first served, bounded in number and time."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from sandbridge_kit.errors import Code, SandbridgeError, fail

_SHORTEST_RETRY_MS = 1_000


T = TypeVar("T")


@dataclass(order=True, slots=True)
class Ticket(Generic[T]):
    """A place in the queue. Who comes back after a failed try keeps the number, and with it the place."""

    number: int
    avoid: str | None = field(default=None, compare=False)
    given: asyncio.Future[T] | None = field(default=None, compare=False, repr=False)

    @property
    def is_waiting(self) -> bool:
        """True until something was given, or the wait has ended."""
        return self.given is not None and not self.given.done()


class Turns(Generic[T]):
    """Who waits, in order."""

    def __init__(self) -> None:
        self._waiting: list[Ticket[T]] = []
        self._issued = 0

    def __len__(self) -> int:
        return sum(ticket.is_waiting for ticket in self._waiting)

    def ticket(self, avoid: str | None = None) -> Ticket[T]:
        """Return a place behind all others; `avoid` names what it would rather not be given."""
        self._issued += 1
        return Ticket(self._issued, avoid)

    def first(self) -> Ticket[T] | None:
        """Return who is first, without taking it out."""
        while self._waiting and not self._waiting[0].is_waiting:
            heapq.heappop(self._waiting)
        return self._waiting[0] if self._waiting else None

    def join(self, ticket: Ticket[T]) -> None:
        """Begin to wait; on an event loop."""
        ticket.given = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, ticket)

    def leave(self, ticket: Ticket[T]) -> T | None:
        """Stop waiting; returns what was given in the same moment, if something was."""
        given = ticket.given
        if given is None or (given.done() and (given.cancelled() or given.exception() is not None)):
            return None
        if given.done():
            return given.result()
        given.cancel()
        return None

    def give(self, what: T) -> None:
        """Give to who is first."""
        ticket = self.first()
        if ticket is not None and ticket.given is not None:
            heapq.heappop(self._waiting)
            ticket.given.set_result(what)

    def refuse(self, error: Callable[[], SandbridgeError]) -> None:
        """Turn everybody away, each with an error of its own."""
        for ticket in self._waiting:
            if ticket.is_waiting and ticket.given is not None:
                ticket.given.set_exception(error())
        self._waiting.clear()


def at_capacity(message: str, *, waiting: int, places: int, timeout_ms: int) -> SandbridgeError:
    """Return the error for who finds no place; the more wait for each place, the later it says to come back."""
    retry_after = _SHORTEST_RETRY_MS * (1 + waiting // max(1, places))
    return fail(Code.AT_CAPACITY, message, retry_after_ms=max(_SHORTEST_RETRY_MS, min(timeout_ms, retry_after)))

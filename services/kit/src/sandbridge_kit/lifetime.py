"""How a service process ends: a first SIGTERM or SIGINT lets it finish what is under way, a second stops it at once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class Lifetime:
    """The signals of one process. Make it in the event loop."""

    def __init__(self) -> None:
        self._stopping = asyncio.Event()
        self._at_once = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._asked)

    def _asked(self) -> None:
        (self._at_once if self._stopping.is_set() else self._stopping).set()

    async def asked_to_stop(self) -> None:
        """Return at the first signal."""
        await self._stopping.wait()

    async def while_patient(self, waiting: Awaitable[T]) -> T | None:
        """Return what `waiting` gives; None, and `waiting` cancelled, where the second signal comes first."""
        work = asyncio.ensure_future(waiting)
        impatience = asyncio.create_task(self._at_once.wait())
        try:
            await asyncio.wait({work, impatience}, return_when=asyncio.FIRST_COMPLETED)
            return work.result() if work.done() else None
        finally:
            for task in (work, impatience):
                task.cancel()
            await asyncio.gather(work, impatience, return_exceptions=True)

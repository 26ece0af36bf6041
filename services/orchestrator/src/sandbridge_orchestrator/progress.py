"""Telling a client how far a run has come, without waiting for the client."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeAlias

log = logging.getLogger(__name__)

Progress: TypeAlias = Callable[[float, str], Awaitable[None]]
"""Called with the number of calls done, which only grows, and a short text."""

_WAITING = 32


@contextlib.asynccontextmanager
async def reporting(progress: Progress | None) -> AsyncIterator[Callable[[int, str], None]]:
    """Give a function that reports without waiting: a slow client must not slow the run, so reports may be dropped."""
    if progress is None:
        yield lambda done, text: None
        return
    waiting: asyncio.Queue[tuple[int, str]] = asyncio.Queue(_WAITING)
    most = 0

    def report(done: int, text: str) -> None:
        nonlocal most
        if done <= most:
            # A run that was started again counts from the beginning; progress must not go back.
            return
        most = done
        with contextlib.suppress(asyncio.QueueFull):
            waiting.put_nowait((done, text))

    pump = asyncio.create_task(_pump(waiting, progress))
    try:
        yield report
    finally:
        pump.cancel()
        await asyncio.wait([pump])


async def _pump(waiting: asyncio.Queue[tuple[int, str]], progress: Progress) -> None:
    while True:
        done, text = await waiting.get()
        try:
            await progress(float(done), text)
        except Exception as error:
            log.warning("progress_not_delivered error=%s", type(error).__name__)
            return

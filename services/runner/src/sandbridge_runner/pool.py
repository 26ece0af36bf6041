"""Warm guests: started ahead, each used once, replaced in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from sandbridge_kit.errors import Code, fail
from sandbridge_runner.core.conversation import Conversation, Ended
from sandbridge_runner.engines.base import Ending, Engine
from sandbridge_runner.pipe import GuestPipe

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """How the pool keeps its spares; times in seconds."""

    spares: int = 2
    max_age: float = 300.0
    """A spare older than this is replaced."""
    refill_delay: float = 0.02
    """Pause between a lease and the next start, so that the start does not take the processor from the run."""
    ready_timeout: float = 10.0
    first_backoff: float = 0.1
    last_backoff: float = 30.0


@dataclass(eq=False, slots=True)
class Spare:
    """A guest on its way to be ready, or waiting for a script."""

    pipe: GuestPipe
    conversation: Conversation
    born: float
    ready: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def is_ready(self) -> bool:
        """True once the guest has said so and lives."""
        return self.ready.done() and not self.ready.cancelled() and self.ready.exception() is None


class WarmPool:
    """Keeps `spares` guests of one engine. Belongs to one event loop."""

    def __init__(self, engine: Engine, settings: PoolSettings) -> None:
        self._engine = engine
        self._settings = settings
        self._spares: list[Spare] = []
        self._alive: set[GuestPipe] = set()
        self._loop = asyncio.get_running_loop()
        self._is_open = True
        self._refill: asyncio.TimerHandle | None = None
        self._backoff = settings.first_backoff
        self._age_check = self._loop.call_later(settings.max_age / 4, self._retire)

    @property
    def idle(self) -> int:
        """How many spares are ready now."""
        return sum(spare.is_ready for spare in self._spares)

    async def fill(self) -> None:
        """Start the spares and wait for them. Raises `sandbox_lost` where the engine does not start."""
        self._top_up()
        for spare in list(self._spares):
            await self._wait(spare)

    async def take(self) -> Spare:
        """Return a ready guest: a warm one, else the one that will be ready first.

        Raises `sandbox_lost` where none starts.
        """
        spare = next((s for s in self._spares if s.is_ready), None) or next(iter(self._spares), None)
        if spare is None:
            spare = self._spawn()
        else:
            self._spares.remove(spare)
        self.refill_after(self._settings.refill_delay)
        try:
            await self._wait(spare)
        except BaseException:
            spare.pipe.guest.kill()
            raise
        return spare

    def refill_after(self, delay: float) -> None:
        """Bring the pool back to its size in `delay` seconds, unless that is due sooner already."""
        if not self._is_open:
            return
        due = self._loop.time() + delay
        if self._refill is not None:
            if self._refill.when() <= due:
                return
            self._refill.cancel()
        self._refill = self._loop.call_later(delay, self._top_up)

    async def close(self) -> None:
        """Kill every guest, leased ones too, and wait until all are gone."""
        self._is_open = False
        self._age_check.cancel()
        if self._refill is not None:
            self._refill.cancel()
        alive = list(self._alive)
        for pipe in alive:
            pipe.guest.kill()
        for pipe in alive:
            await pipe.ended.wait()

    def _top_up(self) -> None:
        self._refill = None
        while self._is_open and len(self._spares) < self._settings.spares:
            try:
                self._spares.append(self._spawn())
            except OSError as error:
                log.warning("spare_not_started", reason=str(error))
                self._back_off()
                return

    def _spawn(self) -> Spare:
        pipe = GuestPipe(self._engine.spawn())
        self._alive.add(pipe)
        spare = Spare(pipe, Conversation(), self._loop.time())
        spare.ready.add_done_callback(_observed)
        pipe.on_data = lambda data: self._heard(spare, data)
        pipe.on_end = lambda ending, errors: self._died(spare, ending, errors)
        return spare

    def _heard(self, spare: Spare, data: bytes) -> None:
        try:
            for _ in spare.conversation.feed(data):
                spare.pipe.guest.ready()
                self._backoff = self._settings.first_backoff
                if not spare.ready.done():
                    spare.ready.set_result(None)
        except Ended:
            spare.pipe.guest.kill()

    def _died(self, spare: Spare, ending: Ending, errors: str) -> None:
        self.forget(spare.pipe)
        if not spare.ready.done():
            spare.ready.set_exception(fail(Code.SANDBOX_LOST, "the sandbox did not start"))
        if spare in self._spares:
            self._spares.remove(spare)
            if self._is_open:
                log.warning("spare_died", code=ending.code, errors=errors[-500:])
                self._back_off()

    def forget(self, pipe: GuestPipe) -> None:
        """The guest behind `pipe` has ended."""
        self._alive.discard(pipe)

    def leased(self, spare: Spare, on_data: Callable[[bytes], None], on_end: Callable[[Ending, str], None]) -> None:
        """Hand what a taken guest says to its run."""

        def ended(ending: Ending, errors: str) -> None:
            self.forget(spare.pipe)
            on_end(ending, errors)

        spare.pipe.on_data = on_data
        spare.pipe.on_end = ended

    def _back_off(self) -> None:
        self.refill_after(self._backoff)
        self._backoff = min(self._backoff * 2, self._settings.last_backoff)

    async def _wait(self, spare: Spare) -> None:
        try:
            async with asyncio.timeout(self._settings.ready_timeout):
                await asyncio.shield(spare.ready)
        except TimeoutError:
            spare.pipe.guest.kill()
            raise fail(Code.SANDBOX_LOST, "the sandbox did not start in time") from None

    def _retire(self) -> None:
        self._age_check = self._loop.call_later(self._settings.max_age / 4, self._retire)
        oldest = self._loop.time() - self._settings.max_age
        # One at a time, so that the pool is never empty for being renewed.
        stale = next((spare for spare in self._spares if spare.born < oldest), None)
        if stale is not None:
            self._spares.remove(stale)
            stale.pipe.guest.kill()
            self.refill_after(0)


def _observed(ready: asyncio.Future[None]) -> None:
    # A spare that dies unused has nobody to tell; reading the exception keeps the loop from reporting it.
    if not ready.cancelled():
        ready.exception()

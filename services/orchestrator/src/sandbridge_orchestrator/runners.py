"""Several runners behind the one port `Runner`: who takes the next run, and who waits for it.

Who bounds what:
- the runner bounds what it executes: its slots; it never queues, and answers `at_capacity` when all are in use;
- this module bounds who waits for a slot of any runner: ten runs for each slot there is, in the order they came, each
  at most the queue timeout;
- `adapters.admission.Slots`, around all of it, bounds what this process holds at once, runs and waiting ones together.
"""

from __future__ import annotations

import asyncio
import functools
import socket
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self, TypeAlias

import structlog

from sandbridge_kit.errors import Code, SandbridgeError
from sandbridge_kit.ports.runner import Run, Runner, RunnerStatus, Start
from sandbridge_orchestrator.core.choice import Candidate, choice
from sandbridge_orchestrator.turns import Ticket, Turns, at_capacity

log = structlog.get_logger(__name__)

_REST_FULL_S = 0.1
"""A runner that was full although its last status said otherwise is left alone for so long."""
_REST_LOST_S = 1.0
"""The same for one that could not be reached, or could not start a sandbox."""
_REMEMBERED_RUNS = 1_024
_RUNS_IN_A_ROW = 8
"""After so many runs that took a slot the moment it was free, one is left to whoever hears of it by the status."""
_LEFT_S = 0.03
"""For so long: a status comes some 20 ms after a change."""
_STOPPING = "This server is stopping and takes no more runs."


class RemoteRunner(Runner, Protocol):
    """The runner at one address."""

    is_connected: bool
    """True while it tells its status."""


Connect: TypeAlias = Callable[[str, Callable[[], None]], AbstractAsyncContextManager[RemoteRunner]]
"""Opens the way to an address; entering does not wait for an answer. Calls the function after each new status."""
Discover: TypeAlias = Callable[[], Awaitable[frozenset[str]]]
"""Returns the addresses of all runners; raises OSError where they cannot be had now."""


@dataclass(slots=True)
class _Member:
    address: str
    runner: RemoteRunner
    way: AsyncExitStack
    opening: int = 0
    """Runs that were sent there and have not begun."""
    runs: int = 0
    """Runs of ours that go on there."""
    others: int = 0
    """Runs that are not ours, as far as its last status tells."""
    rests_until: float = 0.0
    is_full: bool = False
    """True where it rests because it had no free slot."""
    in_a_row: int = 0
    """Runs that ended here while others of ours were waiting."""
    left: int = 0
    """Slots that are left to other orchestrators for a moment."""

    @property
    def ours(self) -> int:
        """What we know better than its last status does: that comes some time after a change."""
        return self.runs + self.opening

    @property
    def candidate(self) -> Candidate:
        """What the choice needs to know of it."""
        status = self.runner.status()
        running = self.others + self.ours + self.left
        return Candidate(
            self.address,
            free=status.free_slots + status.running - running,
            running=running,
            spares=status.idle_spares - self.opening,
        )


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """How long and how many may wait, and how often addresses are looked up."""

    timeout_ms: int = 30_000
    for_each_slot: int = 10
    discover_s: float = 5.0


class Runners:
    """Implements `ports.runner.Runner` over all runners that answer. Enter it before use."""

    def __init__(
        self,
        discover: Discover,
        connect: Connect,
        settings: QueueSettings | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._discover = discover
        self._connect = connect
        self._settings = settings or QueueSettings()
        self._monotonic = monotonic
        self._members: dict[str, _Member] = {}
        self._turns: Turns[_Member] = Turns()
        self._turn = 0
        self._tried: OrderedDict[str, str] = OrderedDict()
        """Where each of the last runs went, so that a second start goes elsewhere."""
        self._looking: asyncio.Task[None] | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._closed = False

    async def __aenter__(self) -> Self:
        await self._look()
        self._looking = asyncio.create_task(self._keep_looking())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])
        members, self._members = list(self._members.values()), {}
        for member in members:
            await member.way.aclose()
        if self._leaving:
            await asyncio.wait(self._leaving)

    def close(self) -> None:
        """Turn away everybody who waits, and whoever comes from now on; runs that have begun go on."""
        self._closed = True
        self._turns.refuse(lambda: self._at_capacity(_STOPPING))

    @property
    def reachable(self) -> int:
        """How many runners answer."""
        return sum(member.runner.is_connected for member in self._members.values())

    def status(self) -> RunnerStatus:
        """Return the sum over all runners that answer."""
        known = [member.runner.status() for member in self._members.values() if member.runner.is_connected]
        return RunnerStatus(
            sum(status.free_slots for status in known),
            sum(status.running for status in known),
            sum(status.idle_spares for status in known),
        )

    @asynccontextmanager
    async def open(self, start: Start) -> AsyncIterator[Run]:
        """Start a run on the least busy runner, waiting for one where none is free.

        Raises `at_capacity` when the queue is full or the wait too long, and what a runner said of the run itself.
        A second run with the same id goes to another runner where there is one.
        """
        async with AsyncExitStack() as stack:
            member, run = await self._begun(stack, start)
            try:
                async with stack.pop_all():
                    yield run
            finally:
                member.runs -= 1
                self._share(member)
                self._leave_if_done(member)
                self._serve()

    def _share(self, member: _Member) -> None:
        """Leave a slot to other orchestrators now and then.

        We know of a free slot of ours before anybody else does: who always took it at once would keep the others out
        for as long as its own queue lasts.
        """
        if self._turns.first() is None:
            member.in_a_row = 0
            return
        member.in_a_row += 1
        if member.in_a_row >= _RUNS_IN_A_ROW:
            member.in_a_row = 0
            member.left += 1
            asyncio.get_running_loop().call_later(_LEFT_S, self._take_back, member)

    def _take_back(self, member: _Member) -> None:
        member.left -= 1
        self._serve()

    async def _begun(self, stack: AsyncExitStack, start: Start) -> tuple[_Member, Run]:
        ticket = self._turns.ticket(self._tried.get(start.run_id))
        until = asyncio.get_running_loop().time() + self._settings.timeout_ms / 1000
        while True:
            member = await self._given(ticket, until)
            self._remember(start.run_id, member.address)
            try:
                run = await stack.enter_async_context(member.runner.open(start))
                member.runs += 1
                return member, run
            except SandbridgeError as error:
                self._rest(member, error)
            finally:
                self._opened(member)

    def _rest(self, member: _Member, error: SandbridgeError) -> None:
        code = error.failure.code
        if code not in (Code.AT_CAPACITY, Code.SANDBOX_LOST):
            raise error
        rest_s = _REST_FULL_S if code is Code.AT_CAPACITY else _REST_LOST_S
        if code is Code.SANDBOX_LOST:
            log.warning("runner_passed_over", address=member.address)
        member.rests_until = self._monotonic() + rest_s
        member.is_full = code is Code.AT_CAPACITY
        asyncio.get_running_loop().call_later(rest_s, self._serve)

    async def _given(self, ticket: Ticket[_Member], until: float) -> _Member:
        if self._closed:
            raise self._at_capacity(_STOPPING)
        self._turns.join(ticket)
        self._serve()
        if ticket.is_waiting and len(self._turns) > self._settings.for_each_slot * max(1, self._slots()):
            self._turns.leave(ticket)
            raise self._at_capacity(self._why("All sandboxes are in use and the queue is full."))
        assert ticket.given is not None
        try:
            async with asyncio.timeout_at(until):
                member = await ticket.given
        except TimeoutError:
            given = self._turns.leave(ticket)
            if given is None:
                waited_s = self._settings.timeout_ms / 1000
                raise self._at_capacity(self._why(f"No sandbox became free within {waited_s:g} s.")) from None
            return given
        except asyncio.CancelledError:
            given = self._turns.leave(ticket)
            if given is not None:
                self._opened(given)
            raise
        return member

    def _why(self, reason: str) -> str:
        return reason if self.reachable else "No runner can be reached."

    def _opened(self, member: _Member) -> None:
        member.opening -= 1
        self._leave_if_done(member)
        self._serve()

    def _heard(self, address: str) -> None:
        """Take note of a runner's new status."""
        member = self._members.get(address)
        if member is not None:
            member.others = max(0, member.runner.status().running - member.ours)
            if member.is_full:
                member.rests_until, member.is_full = 0.0, False
        self._serve()

    def _serve(self) -> None:
        """Give free slots to those who wait, in order."""
        while (ticket := self._turns.first()) is not None:
            address = choice(self._candidates(), avoid=ticket.avoid, turn=self._turn)
            if address is None:
                return
            self._turn += 1
            member = self._members[address]
            member.opening += 1
            self._turns.give(member)

    def _candidates(self) -> list[Candidate]:
        now = self._monotonic()
        return [
            member.candidate
            for member in self._members.values()
            if member.runner.is_connected and member.rests_until <= now
        ]

    def _slots(self) -> int:
        status = self.status()
        return status.free_slots + status.running

    def _at_capacity(self, message: str) -> SandbridgeError:
        return at_capacity(
            message, waiting=len(self._turns), places=self._slots(), timeout_ms=self._settings.timeout_ms
        )

    def _remember(self, run_id: str, address: str) -> None:
        self._tried[run_id] = address
        self._tried.move_to_end(run_id)
        if len(self._tried) > _REMEMBERED_RUNS:
            self._tried.popitem(last=False)

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(self._settings.discover_s)
            try:
                await self._look()
            except Exception as error:
                # The looking goes on, whatever one address was about.
                log.error("runners_not_looked_up", error=type(error).__name__)

    async def _look(self) -> None:
        try:
            found = await self._discover()
        except OSError as error:
            log.warning("runners_not_looked_up", error=str(error))
            return
        for address in sorted(found - self._members.keys()):
            way = AsyncExitStack()
            runner = await way.enter_async_context(self._connect(address, functools.partial(self._heard, address)))
            self._members[address] = _Member(address, runner, way)
            log.info("runner_joined", address=address)
        for address in sorted(self._members.keys() - found):
            log.info("runner_left", address=address)
            self._leave_if_done(self._members.pop(address))
        self._serve()

    def _leave_if_done(self, member: _Member) -> None:
        # Runs that are under way end where they are; the way is closed behind the last one.
        if member.ours == 0 and self._members.get(member.address) is not member:
            task = asyncio.create_task(member.way.aclose())
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)


def listed(*addresses: str) -> Discover:
    """Return a discovery of fixed addresses, each `host:port`."""

    async def discover() -> frozenset[str]:
        return frozenset(addresses)

    return discover


def named(host: str, port: int) -> Discover:
    """Return a discovery by DNS: every address that the name has at the moment."""

    async def discover() -> frozenset[str]:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except UnicodeError:
            raise OSError(f"{host[:100]!r} is no host name") from None
        addresses = {str(entry[4][0]) for entry in found}
        return frozenset(f"[{one}]:{port}" if ":" in one else f"{one}:{port}" for one in addresses)

    return discover

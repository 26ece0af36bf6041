"""The runner port over gRPC, for one runner's address."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Any, Self, cast

import grpc

from sandbridge.runner.v1 import runner_pb2 as pb
from sandbridge.runner.v1 import runner_pb2_grpc
from sandbridge_kit.errors import Code, Failure, SandbridgeError, fail
from sandbridge_kit.heads import HeadError, write_head
from sandbridge_kit.ports.runner import Answer, Failed, Finished, Run, RunEvent, RunnerStatus, Start, Started
from sandbridge_kit.rpc import (
    EOF,
    Link,
    PieceError,
    Service,
    TlsSource,
    failure_of,
    is_cancelled,
    pieces,
    translated,
)
from sandbridge_orchestrator.adapters.run_streams import RunCall, RunStreams, Stub
from sandbridge_orchestrator.adapters.runner_messages import EventReader, cancel_message, start_message

OPEN_S = 15.0
"""Longest wait until a runner has said that it has taken a script; a cold start of a sandbox is part of it."""
GRACE_S = 5.0
"""How much longer than its own time a run's stream may last."""
CANCEL_S = 0.5
"""How long a runner may take to end a run that is cancelled; then the stream itself is cancelled."""
_LEAVE_S = 0.5
"""How long a stream whose run has finished may take to end."""
MAX_CODE_BYTES = 1024 * 1024
"""Longer scripts are not sent: the runner's own limit is far below."""
_LOST = Failure(Code.SANDBOX_LOST, "the sandbox was lost: its runner went away")
_NO_STATUS = RunnerStatus(0, 0, 0)
_FIRST_BACKOFF_S = 0.1
_LAST_BACKOFF_S = 5.0


class RunnerClient:
    """Implements `ports.runner.Runner` for one runner. Enter it in the event loop that uses it."""

    def __init__(
        self,
        address: str,
        tls: TlsSource,
        *,
        on_status: Callable[[], None] = lambda: None,
        link: Link[Stub] | None = None,
    ) -> None:
        """`on_status` is called in the event loop after every change of `status()`."""
        self.address = address
        make_stub = cast(Callable[[grpc.aio.Channel], Stub], runner_pb2_grpc.RunnerStub)
        self._link = link or Link(address, Service.RUNNER, tls, make_stub)
        self._streams = RunStreams(self._link)
        self._status = _NO_STATUS
        self._on_status = on_status
        self._watching: asyncio.Task[None] | None = None
        self.is_connected = False
        """True while the runner tells its status."""

    async def __aenter__(self) -> Self:
        await self._link.__aenter__()
        self._watching = asyncio.create_task(self._watch())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
        self._streams.close()
        await self._link.__aexit__(kind, error, trace)

    def status(self) -> RunnerStatus:
        """Return what the runner last said; all zero while it says nothing."""
        return self._status

    @contextlib.asynccontextmanager
    async def open(self, start: Start) -> AsyncIterator[Run]:
        """Enter to start a run; raises what the runner's port raises, and `sandbox_lost` where it cannot be reached."""
        request = start_message(start, MAX_CODE_BYTES)
        async with contextlib.AsyncExitStack() as stack:
            with translated(_LOST):
                call = self._streams.take(stack)
            if self.is_connected:
                self._streams.open_ahead()
            try:
                if not await self._sent(call, request):
                    # It ended while it waited, and nothing of this run was said: another one tells why, or begins it.
                    call.cancel()
                    with translated(_LOST):
                        call = self._streams.open(stack)
                    await self._sent(call, request)
                run = RemoteRun(call, start, await self._opened(call))
            except BaseException:
                call.cancel()
                raise
            try:
                yield run
            finally:
                run.close()

    async def _sent(self, call: RunCall, request: pb.RunRequest) -> bool:
        """Hand the start over; False where the call is over, which reading it explains."""
        try:
            async with asyncio.timeout(OPEN_S):
                await call.write(request)
        except TimeoutError:
            raise _not_ready() from None
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            return False
        except asyncio.CancelledError:
            # A call that was cancelled, or whose channel was closed, looks as if this task were cancelled.
            if is_cancelled():
                raise
            return False
        return True

    async def _opened(self, call: RunCall) -> Started:
        try:
            with translated(_LOST):
                async with asyncio.timeout(OPEN_S):
                    first = await call.read()
        except TimeoutError:
            raise _not_ready() from None
        if not isinstance(first, pb.RunResponse) or not first.HasField("started"):
            raise fail(Code.SANDBOX_LOST, "the runner broke the protocol: it did not say that the run has started")
        return Started(first.started.guest_build)

    async def _watch(self) -> None:
        backoff = _FIRST_BACKOFF_S
        while True:
            if await self._watch_once():
                backoff = _FIRST_BACKOFF_S
            self._streams.close()
            self._note(_NO_STATUS, is_connected=False)
            await asyncio.sleep(backoff)
            backoff = min(2 * backoff, _LAST_BACKOFF_S)

    async def _watch_once(self) -> bool:
        """Follow the runner's status until the stream ends; True where it said anything."""
        has_spoken = False
        while True:
            is_told = False
            with self._link.use() as line:
                call = line.stub.Status(pb.StatusRequest())
                ending = asyncio.create_task(_cancel_after(line.superseded, call))
                try:
                    async for message in call:
                        if message is None:
                            # So the library says that bytes are no message.
                            return has_spoken
                        has_spoken = True
                        if not is_told:
                            self._streams.open_ahead()
                            is_told = True
                        status = RunnerStatus(message.free_slots, message.running, message.idle_spares)
                        self._note(status, is_connected=True)
                    return has_spoken
                except grpc.aio.AioRpcError:
                    return has_spoken
                except asyncio.CancelledError:
                    # A stream that moves to the next line ends like this, too.
                    if not line.superseded.is_set() or is_cancelled():
                        raise
                finally:
                    ending.cancel()

    def _note(self, status: RunnerStatus, *, is_connected: bool) -> None:
        if (status, is_connected) != (self._status, self.is_connected):
            self._status, self.is_connected = status, is_connected
            self._on_status()


async def _cancel_after(event: asyncio.Event, call: grpc.aio.UnaryStreamCall[Any, Any]) -> None:
    await event.wait()
    call.cancel()


def _not_ready() -> SandbridgeError:
    return fail(Code.SANDBOX_LOST, f"no sandbox was ready within {OPEN_S:g} s")


class RemoteRun:
    """Implements `ports.runner.Run` over one stream."""

    def __init__(self, call: RunCall, start: Start, started: Started) -> None:
        self._call = call
        self._started = started
        self._reader = EventReader(start.limits)
        self._writing = asyncio.Lock()
        self._is_over = False
        self._cancelled: Failure | None = None
        loop = asyncio.get_running_loop()
        self._ending = loop.call_later(GRACE_S + start.limits.wall_clock_ms / 1000, call.cancel)
        """When the stream is cancelled, whatever the runner does."""

    async def events(self) -> AsyncIterator[RunEvent]:
        """Yield events in order; ends after `Finished`."""
        yield self._started
        while True:
            event = await self._next()
            if event is not None:
                yield event
            if isinstance(event, Finished):
                return

    async def answer(self, answer: Answer) -> None:
        """Deliver one answer, in the order of these calls; waits where the runner is slow to read."""
        try:
            head = write_head(answer.head)
        except HeadError as error:
            await self.cancel(Failure(Code.RESPONSE_TOO_LARGE, f"an answer cannot enter the sandbox: {error}"))
            return
        # Two writes at once on one stream are an error of the library, and the pieces of a body stay together.
        async with self._writing:
            for part, last in pieces(answer.body):
                if self._is_over:
                    return
                message = pb.Answer(seq=answer.seq, at_ms=answer.at_ms, head=head, body=part, last=last)
                await self._write(pb.RunRequest(answer=message))
                head = b""

    async def cancel(self, failure: Failure) -> None:
        """Have the sandbox killed now; the run then finishes with this failure."""
        if self._is_over or self._cancelled is not None:
            return
        self._cancelled = failure
        self._cancel_in(CANCEL_S)
        async with self._writing:
            await self._write(cancel_message(failure))

    def close(self) -> None:
        """End the stream, which ends the run where it goes on."""
        if not self._is_over:
            self._is_over = True
            self._call.cancel()
            self._ending.cancel()

    def _cancel_in(self, seconds: float) -> None:
        self._ending.cancel()
        self._ending = asyncio.get_running_loop().call_later(seconds, self._call.cancel)

    async def _write(self, message: pb.RunRequest) -> None:
        try:
            await self._call.write(message)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            # The stream is over; its events say why.
            return
        except asyncio.CancelledError:
            # Cancelling the call looks like this, too.
            if is_cancelled():
                raise

    def _read(self, message: object) -> RunEvent | None:
        if message is EOF:
            return Finished(Failed(_LOST))
        if not isinstance(message, pb.RunResponse):
            # The library gives None for bytes that are no message.
            raise PieceError("not a message")
        return self._reader.read(message)

    async def _next(self) -> RunEvent | None:
        try:
            message = await self._call.read()
            event = self._read(message)
        except grpc.aio.AioRpcError as error:
            event = Finished(Failed(self._cancelled or failure_of(error, _LOST)))
        except asyncio.CancelledError:
            # So looks a call that was cancelled by us, or whose channel was closed.
            if is_cancelled():
                raise
            event = Finished(Failed(self._cancelled or _LOST))
        except PieceError as error:
            self._call.cancel()
            event = Finished(Failed(Failure(Code.SANDBOX_LOST, f"the runner broke the protocol: {error}")))
        if isinstance(event, Finished):
            self._is_over = True
            # The stream ends by itself now, and nobody waits for that.
            self._cancel_in(_LEAVE_S)
        return event

"""The way to one service: a channel that is made anew when the certificates change."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Generic, Self, TypeVar

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from sandbridge_kit.certificates import Peer, Service
from sandbridge_kit.rpc.options import CLIENT_OPTIONS
from sandbridge_kit.rpc.tls import Identity, TlsSource

S = TypeVar("S")

POLL_S = 5.0
"""How often a link looks whether the certificate files have changed."""


@dataclass(eq=False, slots=True)
class Line(Generic[S]):
    """One channel and its stub. Long calls end and start again on the next line once this one is superseded."""

    identity: Identity
    channel: grpc.aio.Channel
    stub: S
    superseded: asyncio.Event = field(default_factory=asyncio.Event)
    users: int = 0


class Link(Generic[S]):
    """The way to one address. Enter it in the event loop that uses it."""

    def __init__(
        self,
        address: str,
        service: Service,
        tls: TlsSource,
        make_stub: Callable[[grpc.aio.Channel], S],
        *,
        poll_s: float = POLL_S,
    ) -> None:
        """`service` is what the certificate at `address` (`host:port`) must be for, in this process's deployment."""
        self.address = address
        self._server = Peer(service, tls.current.peer.deployment)
        self._tls = tls
        self._make_stub = make_stub
        self._poll_s = poll_s
        self._line: Line[S] | None = None
        self._polling: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._line = self._new_line()
        self._polling = asyncio.create_task(self._poll())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.wait([self._polling])
        line, self._line = self._line, None
        if line is not None:
            line.superseded.set()
            await line.channel.close(None)
        if self._closing:
            await asyncio.wait(self._closing)

    @contextlib.contextmanager
    def use(self) -> Iterator[Line[S]]:
        """Hold a line for one call: its channel stays open until this is left. `translated` may stand around it."""
        line = self._line
        if line is None:
            raise grpc.aio.UsageError(f"the link to {self.address} is not open")
        line.users += 1
        try:
            yield line
        finally:
            line.users -= 1
            self._close_if_done(line)

    async def check_health(self, *, timeout_s: float = 2.0) -> bool:
        """Ask the standard health service; False where it is not serving or does not answer."""
        with self.use() as line:
            health = health_pb2_grpc.HealthStub(line.channel)
            try:
                answer = await health.Check(health_pb2.HealthCheckRequest(), timeout=timeout_s)
            except grpc.aio.AioRpcError:
                return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    def _new_line(self) -> Line[S]:
        now = self._tls.current
        credentials = grpc.ssl_channel_credentials(now.authorities, now.key, now.certificate)
        options = (*CLIENT_OPTIONS, ("grpc.ssl_target_name_override", self._server.name))
        channel = grpc.aio.secure_channel(self.address, credentials, options)
        return Line(now, channel, self._make_stub(channel))

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(self._poll_s)
            self._tls.refresh()
            line = self._line
            # Another link of the same source may have been the one that took the new files.
            if line is not None and self._tls.current is not line.identity:
                self._line = self._new_line()
                line.superseded.set()
                self._close_if_done(line)

    def _close_if_done(self, line: Line[S]) -> None:
        if line.superseded.is_set() and not line.users:
            task = asyncio.create_task(line.channel.close(None))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

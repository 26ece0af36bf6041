"""A gRPC server that only services of its own deployment can call, with health, deadlines and a graceful stop."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

import grpc
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer

from sandbridge_kit.certificates import Peer, Service
from sandbridge_kit.errors import Code, Failure, SandbridgeError
from sandbridge_kit.rpc.options import SERVER_OPTIONS
from sandbridge_kit.rpc.status import abort
from sandbridge_kit.rpc.tls import TlsSource

log = structlog.get_logger(__name__)

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Callers: TypeAlias = Mapping[str, Collection[Service]]
"""Who may call what: by the full name of a service (`sandbridge.docs.v1.DocsSearch`) or of one method
(`/sandbridge.docs.v1.DocsSearch/Search`, which then has precedence). What is not named nobody may call."""

EOF: object = grpc.aio.EOF  # type: ignore[attr-defined]  # the stubs know only its type
"""What reading a stream gives after its last message."""
HEALTH = "grpc.health.v1.Health"
MAX_UNARY_S = 30.0
"""Longest time that a call with one answer may take, whatever its deadline."""
_MAX_CALLS = 512
_STOPPING = Failure(Code.AT_CAPACITY, "the service is stopping", retry_after_ms=500)


def peer_of(context: Context) -> Peer | None:
    """Return whom the caller's certificate speaks for; None where it names nobody."""
    names = context.auth_context().get("peer_dns", ())
    return Peer.of(name.decode("utf-8", "replace") for name in names)


class RpcServer:
    """One gRPC server. Add servicers to `grpc`, then `start`; `drain` and `stop` end it."""

    def __init__(self, tls: TlsSource, callers: Callers, *, watches: Collection[str] = ()) -> None:
        """`watches` names the methods (`/package.Service/Method`) whose calls last until somebody ends them.

        A drain ends them at once and waits for all others. The health service answers every service of the deployment.
        """
        self._tls = tls
        self._gate = _Gate(tls, callers, {*watches, f"/{HEALTH}/Watch"})
        self._health = HealthServicer()
        self.grpc = grpc.aio.server(
            interceptors=(self._gate,), options=SERVER_OPTIONS, maximum_concurrent_rpcs=_MAX_CALLS
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self.grpc)

    @property
    def calls(self) -> int:
        """How many calls are being answered, watches aside."""
        return self._gate.calls

    def until_drained(self, most_s: float | None) -> AbstractAsyncContextManager[None]:
        """Bound a wait inside a call: TimeoutError after `most_s`, `at_capacity` as soon as the server drains."""
        return self._gate.until_drained(most_s)

    async def start(self, address: str) -> int:
        """Listen on `host:port` and return the port; not serving yet. Raises OSError where that cannot be had."""
        await self.set_serving(False)
        credentials = grpc.dynamic_ssl_server_credentials(
            self._configuration(),
            self._changed_configuration,  # type: ignore[arg-type]  # the stubs forget that None means no change
            require_client_authentication=True,
        )
        try:
            port = self.grpc.add_secure_port(address, credentials)
        except RuntimeError:
            port = 0
        if not port:
            raise OSError(f"cannot listen on {address}: is the port free and the address one of this machine?")
        await self.grpc.start()
        return port

    async def set_serving(self, is_serving: bool) -> None:
        """Say by the health service whether this process is ready for calls."""
        status = health_pb2.HealthCheckResponse
        await self._health.set("", status.SERVING if is_serving else status.NOT_SERVING)

    async def drain(self, grace_s: float) -> bool:
        """Refuse new calls and end watches; True once no call is left, False where some are left after `grace_s`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await self._health.enter_graceful_shutdown()
        self._gate.drain()
        try:
            async with asyncio.timeout(grace_s):
                await self._gate.idle.wait()
        except TimeoutError:
            return False
        return True

    async def stop(self) -> None:
        """End every call that is left, and stop listening."""
        self._gate.drain()
        await self.grpc.stop(0)

    def _configuration(self) -> grpc.ServerCertificateConfiguration:
        now = self._tls.current
        return grpc.ssl_server_certificate_configuration([(now.key, now.certificate)], now.authorities)

    def _changed_configuration(self) -> grpc.ServerCertificateConfiguration | None:
        # Called by the library at every handshake, on a thread of its own.
        return self._configuration() if self._tls.refresh() else None


_Behaviour: TypeAlias = Callable[[Any, Context], Any]


class _Gate(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]  # not generic at run time
    """What stands before every method: who calls, whether calls are taken, how long one may last, what errors say."""

    def __init__(self, tls: TlsSource, callers: Callers, watches: Collection[str]) -> None:
        self._tls = tls
        self._callers = callers
        self._watches = watches
        self._handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
        self.calls = 0
        self.idle = asyncio.Event()
        self.idle.set()
        self._is_draining = False
        self._waits: set[asyncio.Timeout] = set()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any]]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any]:
        method = handler_call_details.method
        known = self._handlers.get(method)
        if known is not None:
            return known
        handler = await continuation(handler_call_details)
        if handler is None:
            return handler
        guarded = self._handlers[method] = self._guarded(method, handler)
        return guarded

    def _guarded(self, method: str, handler: Any) -> grpc.RpcMethodHandler[Any, Any]:
        allowed = self._allowed(method)
        coding = (handler.request_deserializer, handler.response_serializer)
        if handler.response_streaming:
            behaviour = handler.stream_stream if handler.request_streaming else handler.unary_stream
            guarded = self._streaming(method, allowed, behaviour)
            make: Any = (
                grpc.stream_stream_rpc_method_handler
                if handler.request_streaming
                else grpc.unary_stream_rpc_method_handler
            )
        else:
            behaviour = handler.stream_unary if handler.request_streaming else handler.unary_unary
            guarded = self._single(method, allowed, behaviour)
            make = (
                grpc.stream_unary_rpc_method_handler
                if handler.request_streaming
                else grpc.unary_unary_rpc_method_handler
            )
        made: grpc.RpcMethodHandler[Any, Any] = make(guarded, *coding)
        return made

    def _allowed(self, method: str) -> frozenset[Service]:
        service = method.strip("/").split("/")[0]
        if service == HEALTH:
            return frozenset(Service)
        return frozenset(self._callers.get(method, self._callers.get(service, ())))

    def _single(self, method: str, allowed: Collection[Service], behaviour: _Behaviour) -> _Behaviour:
        async def answer(request: Any, context: Context) -> Any:
            async with self._admitted(method, allowed, context):
                left: float | None = context.time_remaining()
                async with asyncio.timeout(MAX_UNARY_S if left is None else min(left, MAX_UNARY_S)):
                    return await behaviour(request, context)

        return answer

    def _streaming(self, method: str, allowed: Collection[Service], behaviour: _Behaviour) -> _Behaviour:
        async def stream(request: Any, context: Context) -> None:
            async with self._admitted(method, allowed, context):
                if method in self._watches:
                    async with self.until_drained(None):
                        await _drive(behaviour, request, context)
                else:
                    await _drive(behaviour, request, context)

        return stream

    def drain(self) -> None:
        """Take no more calls, and end what lasts until then."""
        self._is_draining = True
        for wait in self._waits:
            if not wait.expired():
                wait.reschedule(0)

    @contextlib.asynccontextmanager
    async def until_drained(self, most_s: float | None) -> AsyncIterator[None]:
        wait = asyncio.timeout(0 if self._is_draining else most_s)
        try:
            async with wait:
                self._waits.add(wait)
                try:
                    yield
                finally:
                    self._waits.discard(wait)
        except TimeoutError:
            if self._is_draining:
                raise SandbridgeError(_STOPPING) from None
            raise

    @contextlib.asynccontextmanager
    async def _admitted(self, method: str, allowed: Collection[Service], context: Context) -> AsyncIterator[None]:
        await self._check_peer(method, allowed, context)
        is_counted = method not in self._watches
        if is_counted:
            self.calls += 1
            self.idle.clear()
        try:
            if self._is_draining and not method.startswith(f"/{HEALTH}/"):
                raise SandbridgeError(_STOPPING)
            yield
        except grpc.aio.AbortError:
            raise
        except SandbridgeError as error:
            await abort(context, error.failure)
        except TimeoutError:
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "deadline")
        except Exception as error:
            # Neither the caller nor the log gets the error's text: it may quote what was being handled.
            log.error("call_failed", method=method, error=type(error).__name__, at=_place(error))
            await context.abort(grpc.StatusCode.INTERNAL, "internal")
        finally:
            if is_counted:
                self.calls -= 1
                if not self.calls:
                    self.idle.set()

    async def _check_peer(self, method: str, allowed: Collection[Service], context: Context) -> None:
        peer, own = peer_of(context), self._tls.current.peer
        if peer is not None and peer.deployment == own.deployment and peer.service in allowed:
            return
        log.warning("peer_refused", method=method, peer=peer.name if peer else None, address=context.peer())
        await context.abort(grpc.StatusCode.PERMISSION_DENIED, "peer")


async def _drive(behaviour: _Behaviour, request: Any, context: Context) -> None:
    answering = behaviour(request, context)
    if not inspect.isasyncgen(answering):
        await answering
        return
    async with contextlib.aclosing(answering):
        async for message in answering:
            await context.write(message)


def _place(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_globals.get('__name__', '?')}:{trace.tb_lineno}" if trace else "?"

"""What stands around every method: deadlines, bounds, errors that leak nothing, and the end of a server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from deployments import UID, Deployment
from rpc_serving import listening

from sandbridge_kit.errors import Code, Failure, SandbridgeError, fail
from sandbridge_kit.rpc import EOF, Context, Line, Link, Peer, RpcServer, Service, TlsSource, translated
from sandbridge_kit.rpc.pieces import MESSAGE_BYTES

CANARY = "CANARY-7c1d0a"
LOST = Failure(Code.SANDBOX_LOST, "the service went away")


class Probe:
    """A service of raw bytes whose methods fail, wait and echo."""

    def __init__(self) -> None:
        self.cancelled: list[str] = []
        self.entered = asyncio.Event()

    async def echo(self, request: bytes, context: Context) -> bytes:
        return request

    async def wait(self, request: bytes, context: Context) -> bytes:
        self.entered.set()
        try:
            await asyncio.sleep(float(request))
        except asyncio.CancelledError:
            self.cancelled.append("wait")
            raise
        return b"done"

    async def raises(self, request: bytes, context: Context) -> bytes:
        if request == b"ours":
            raise fail(Code.RATE_LIMITED, "slower, please", hint="wait", retry_after_ms=70)
        raise ValueError(f"could not use {CANARY}")

    async def raises_late(self, request: bytes, context: Context) -> AsyncIterator[bytes]:
        yield b"first"
        raise RuntimeError(CANARY)

    async def watch(self, request: bytes, context: Context) -> AsyncIterator[bytes]:
        yield b"now"
        await asyncio.Event().wait()

    async def both(self, requests: object, context: Context) -> None:
        while (message := await context.read()) is not EOF:
            await context.write(message)

    def handlers(self) -> dict[str, Any]:
        return {
            "Echo": grpc.unary_unary_rpc_method_handler(self.echo),
            "Wait": grpc.unary_unary_rpc_method_handler(self.wait),
            "Raises": grpc.unary_unary_rpc_method_handler(self.raises),
            "RaisesLate": grpc.unary_stream_rpc_method_handler(self.raises_late),
            "Watch": grpc.unary_stream_rpc_method_handler(self.watch),
            "Both": grpc.stream_stream_rpc_method_handler(self.both),
            "Closed": grpc.unary_unary_rpc_method_handler(self.echo),
        }


class Served:
    """The probe, its server, and a channel to it."""

    def __init__(self, server: RpcServer, probe: Probe, address: str, line: Line[Any]) -> None:
        self.server = server
        self.probe = probe
        self.address = address
        self.channel = line.channel
        self.tls = line.identity

    async def call(self, method: str, request: bytes = b"", timeout: float | None = 5.0) -> bytes:
        return await self.channel.unary_unary(f"/test.Probe/{method}")(request, timeout=timeout)


@pytest.fixture
async def served(deployment: Deployment) -> AsyncIterator[Served]:
    probe = Probe()
    callers = {"test.Probe": {Service.ORCHESTRATOR}, "/test.Probe/Closed": {Service.CONTROL}}
    server = RpcServer(TlsSource(deployment.files(Service.RUNNER)), callers, watches={"/test.Probe/Watch"})
    server.grpc.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Probe", probe.handlers()),))
    tls = TlsSource(deployment.files(Service.ORCHESTRATOR))
    async with listening(server) as address, Link(address, Service.RUNNER, tls, lambda line: line) as link:
        with link.use() as line:
            yield Served(server, probe, address, line)


async def all_of(served: Served, method: str) -> list[bytes]:
    if method == "Raises":
        return [await served.call("Raises", b"other")]
    return [message async for message in served.channel.unary_stream(f"/test.Probe/{method}")(b"")]


def everything_in(error: grpc.aio.AioRpcError) -> str:
    return f"{error.details()} {error.debug_error_string()} {list(error.trailing_metadata())} {error!r}"


async def test_an_error_of_ours_arrives_whole(served: Served) -> None:
    with pytest.raises(SandbridgeError) as error, translated(LOST):
        await served.call("Raises", b"ours")

    assert error.value.failure == Failure(Code.RATE_LIMITED, "slower, please", "wait", 70)


@pytest.mark.parametrize("method", ["Raises", "RaisesLate"])
async def test_any_other_error_says_nothing_of_itself(
    served: Served, method: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await all_of(served, method)
    logged = "".join(capfd.readouterr()) + caplog.text

    assert (error.value.code(), error.value.details()) == (grpc.StatusCode.INTERNAL, "internal")
    assert (CANARY in everything_in(error.value), CANARY in logged) == (False, False)


async def test_a_status_text_is_never_an_errors_message(served: Served) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await served.call("Raises", b"ours")

    assert (error.value.code(), error.value.details()) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "rate_limited")


async def test_work_ends_when_the_deadline_of_its_caller_has_passed(served: Served) -> None:
    with pytest.raises(SandbridgeError) as error, translated(LOST):
        await served.call("Wait", b"30", timeout=0.1)
    for _ in range(100):
        if served.server.calls == 0:
            break
        await asyncio.sleep(0.01)

    assert (error.value.failure.code, served.probe.cancelled, served.server.calls) == (Code.TIMED_OUT, ["wait"], 0)


async def test_work_ends_when_its_caller_gives_up(served: Served) -> None:
    call = served.channel.unary_unary("/test.Probe/Wait")(b"30")
    await asyncio.wait_for(served.probe.entered.wait(), 5)
    call.cancel()
    for _ in range(100):
        if served.server.calls == 0:
            break
        await asyncio.sleep(0.01)

    assert (served.probe.cancelled, served.server.calls) == (["wait"], 0)


@pytest.mark.parametrize(("size", "status"), [(MESSAGE_BYTES, "OK"), (MESSAGE_BYTES + 1, "RESOURCE_EXHAUSTED")])
async def test_a_message_beyond_the_bound_is_refused(served: Served, size: int, status: str) -> None:
    try:
        answered = "OK" if len(await served.call("Echo", b"x" * size)) == size else "cut"
    except grpc.aio.AioRpcError as error:
        answered = error.code().name

    assert answered == status


async def test_the_server_refuses_a_large_message_whatever_its_sender_allows(served: Served) -> None:
    options = (("grpc.max_send_message_length", -1), ("grpc.ssl_target_name_override", Peer(Service.RUNNER, UID).name))
    credentials = grpc.ssl_channel_credentials(served.tls.authorities, served.tls.key, served.tls.certificate)
    async with grpc.aio.secure_channel(served.address, credentials, options) as line:
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await line.unary_unary("/test.Probe/Echo")(b"x" * (MESSAGE_BYTES + 1), timeout=5)

    assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_method_can_have_callers_of_its_own(served: Served) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await served.call("Closed")

    assert error.value.code() is grpc.StatusCode.PERMISSION_DENIED


async def test_a_drain_ends_watches_refuses_calls_and_waits_for_those_under_way(served: Served) -> None:
    watch = served.channel.unary_stream("/test.Probe/Watch")(b"")
    first = await watch.read()
    waiting = asyncio.ensure_future(served.call("Wait", b"0.3"))
    await asyncio.wait_for(served.probe.entered.wait(), 5)

    draining = asyncio.create_task(served.server.drain(5))
    with pytest.raises(SandbridgeError) as ended, translated(LOST):
        await watch.read()
    with pytest.raises(SandbridgeError) as refused, translated(LOST):
        await served.call("Echo")

    stopping = Failure(Code.AT_CAPACITY, "the service is stopping", retry_after_ms=500)
    assert (first, ended.value.failure, refused.value.failure) == (b"now", stopping, stopping)
    assert (await waiting, await draining) == (b"done", True)


async def test_a_drain_gives_up_on_calls_that_do_not_end(served: Served) -> None:
    waiting = asyncio.ensure_future(served.call("Wait", b"30"))
    await asyncio.wait_for(served.probe.entered.wait(), 5)
    is_drained = await served.server.drain(0.1)
    await served.server.stop()
    with pytest.raises(SandbridgeError) as error, translated(LOST):
        await waiting

    assert (is_drained, error.value.failure, served.probe.cancelled) == (False, LOST, ["wait"])


async def test_a_stream_both_ways_carries_what_is_written(served: Served) -> None:
    call = served.channel.stream_stream("/test.Probe/Both")()
    read = []
    for number in range(3):
        await call.write(b"%d" % number)
        read.append(await call.read())
    await call.done_writing()

    assert (read, await call.read() is EOF) == ([b"0", b"1", b"2"], True)


async def test_a_port_that_is_taken_is_named(deployment: Deployment) -> None:
    tls = TlsSource(deployment.files(Service.RUNNER))
    async with listening(RpcServer(tls, {})) as address:
        second = RpcServer(tls, {})
        with pytest.raises(OSError, match=f"cannot listen on {address}"):
            await second.start(address)
        with contextlib.suppress(Exception):
            await second.stop()

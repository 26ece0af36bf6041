"""Neither side trusts the other: what breaks the protocol of a run ends it, typed, and exactly once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import grpc
import pytest
from deployments import UID, Deployment
from guests import a_start, run_on
from rpc_calls import START, channel
from rpc_serving import listening, serve_runs

from sandbridge.runner.v1 import runner_pb2 as pb
from sandbridge.runner.v1 import runner_pb2_grpc
from sandbridge_kit.certificates import Peer
from sandbridge_kit.errors import Code, Failure, SandbridgeError
from sandbridge_kit.ports.runner import MIB, Answer, Ask, Console, Failed, Finished, Returned, RunEvent, Started
from sandbridge_kit.rpc import EOF, Context, RpcServer, Service, TlsSource
from sandbridge_kit.testing import ScriptedGuest, ScriptedRunner
from sandbridge_orchestrator.adapters.runner_client import RunnerClient

PIECE = b"x" * MIB


async def asks_forever(guest: ScriptedGuest) -> None:
    while True:
        await guest.ask("api", {"call": "a.b"})


def an_answer(seq: int = 1, head: bytes = b"{}", body: bytes = b"", *, last: bool = True) -> pb.RunRequest:
    return pb.RunRequest(answer=pb.Answer(seq=seq, head=head, body=body, last=last))


BROKEN: dict[str, tuple[list[pb.RunRequest], Code]] = {
    "a second start": ([START], Code.SANDBOX_LOST),
    "an empty message": ([pb.RunRequest()], Code.SANDBOX_LOST),
    "a head that is not JSON": ([an_answer(head=b"{")], Code.SANDBOX_LOST),
    "a head with a key twice": ([an_answer(head=b'{"a":1,"a":2}')], Code.SANDBOX_LOST),
    "a head that is too deep": ([an_answer(head=b'{"a":' + b"[" * 80 + b"]" * 80 + b"}")], Code.SANDBOX_LOST),
    "a head that is too large": ([an_answer(head=b'{"a":"' + b"x" * 262_144 + b'"}')], Code.SANDBOX_LOST),
    "another answer inside a body": (
        [an_answer(body=PIECE, last=False), an_answer(seq=2, head=b"", body=b"x")],
        Code.SANDBOX_LOST,
    ),
    "a head inside a body": ([an_answer(body=PIECE, last=False), an_answer(body=b"x")], Code.SANDBOX_LOST),
    "a piece that is too large": ([an_answer(body=PIECE + b"x")], Code.SANDBOX_LOST),
    "a body that is too large": (
        [an_answer(body=PIECE, last=False), *[an_answer(head=b"", body=PIECE, last=False)] * 10],
        Code.RESPONSE_TOO_LARGE,
    ),
    "a cancel with a code that does not exist": (
        [pb.RunRequest(cancel=pb.Cancel(reason=pb.Failure(code="x", message="m")))],
        Code.CANCELLED,
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
async def test_what_a_caller_breaks_ends_its_run_once(deployment: Deployment, kind: str) -> None:
    messages, code = BROKEN[kind]
    files = deployment.files(Service.ORCHESTRATOR)
    runner = ScriptedRunner(asks_forever)
    async with serve_runs(deployment, runner) as address, channel(address, Peer(Service.RUNNER, UID), files) as line:
        call = runner_pb2_grpc.RunnerStub(line).Run(timeout=10)
        await call.write(START)
        for message in messages:
            await call.write(message)
        seen = []
        while (response := await call.read()) is not EOF:
            seen.append(response)

    assert [one.WhichOneof("message") for one in seen] == ["started", "ask", "finished"]
    assert (seen[-1].finished.failed.failure.code, runner.running) == (code, 0)


async def test_a_run_whose_caller_says_nothing_more_is_ended(deployment: Deployment) -> None:
    files = deployment.files(Service.ORCHESTRATOR)
    runner = ScriptedRunner(asks_forever)
    async with serve_runs(deployment, runner) as address, channel(address, Peer(Service.RUNNER, UID), files) as line:
        call = runner_pb2_grpc.RunnerStub(line).Run(timeout=10)
        await call.write(START)
        await call.done_writing()
        seen = [one.WhichOneof("message") async for one in call]

    assert (seen[-1], runner.running) == ("finished", 0)


@pytest.mark.parametrize(
    "first",
    [an_answer(), pb.RunRequest(), pb.RunRequest(start=pb.Start(seed=b"short"))],
    ids=["answer", "none", "seed"],
)
async def test_a_run_begins_with_its_start(deployment: Deployment, first: pb.RunRequest) -> None:
    files = deployment.files(Service.ORCHESTRATOR)
    runner = ScriptedRunner(asks_forever)
    async with serve_runs(deployment, runner) as address, channel(address, Peer(Service.RUNNER, UID), files) as line:
        call = runner_pb2_grpc.RunnerStub(line).Run(timeout=10)
        await call.write(first)
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await call.read()

    assert (error.value.code(), runner.starts) == (grpc.StatusCode.INVALID_ARGUMENT, [])


class Hostile(runner_pb2_grpc.RunnerServicer):
    """A runner that sends what a test wrote down, and then waits or ends the stream."""

    def __init__(self, messages: list[pb.RunResponse], *, waits: bool) -> None:
        self._messages = messages
        self._waits = waits
        self.was_cancelled = asyncio.Event()

    async def Run(self, request_iterator: object, context: Context) -> None:  # type: ignore[override]  # noqa: N802
        try:
            for message in self._messages:
                await context.write(message)
            if self._waits:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.was_cancelled.set()
            raise

    async def Status(self, request: object, context: Context) -> AsyncIterator[pb.StatusResponse]:  # noqa: N802
        yield pb.StatusResponse(free_slots=1)


STARTED = pb.RunResponse(started=pb.Started(guest_build="b"))
RETURNED = pb.RunResponse(finished=pb.Finished(returned=pb.Returned(result=b"1")))


def an_ask(seq: int = 1, kind: int = 1, head: bytes = b"{}", body: bytes = b"", *, last: bool = True) -> pb.RunResponse:
    return pb.RunResponse(ask=pb.Ask(seq=seq, kind=kind, head=head, body=body, last=last))  # type: ignore[arg-type]


def a_line(text: str, level: str = "log") -> pb.RunResponse:
    return pb.RunResponse(console=pb.Console(level=level, text=text))


HOSTILE: dict[str, list[pb.RunResponse]] = {
    "a second start": [STARTED],
    "an empty message": [pb.RunResponse()],
    "an ask too early": [an_ask(seq=2)],
    "an ask twice": [an_ask(), an_ask()],
    "an ask of no kind": [an_ask(kind=0)],
    "an ask of an unknown kind": [an_ask(kind=99)],
    "a head that is not an object": [an_ask(head=b"[]")],
    "a body that is too large": [an_ask(body=PIECE, last=False), *[an_ask(head=b"", body=PIECE, last=False)] * 10],
    "an ask inside a body": [an_ask(body=PIECE, last=False), an_ask(seq=2)],
    "a console line of no level": [a_line("x", "shout")],
    "a result without end": [pb.RunResponse(result=pb.ResultPiece(data=PIECE))] * 11,
    "an end without an outcome": [pb.RunResponse(finished=pb.Finished())],
    "a return of nothing": [pb.RunResponse(finished=pb.Finished(returned=pb.Returned()))],
    "an empty piece of a result": [pb.RunResponse(result=pb.ResultPiece())],
}


@pytest.mark.parametrize("kind", HOSTILE)
async def test_what_a_runner_breaks_ends_the_run_as_lost(deployment: Deployment, kind: str) -> None:
    hostile = Hostile([STARTED, *HOSTILE[kind]], waits=True)
    server = RpcServer(TlsSource(deployment.files(Service.RUNNER)), {"sandbridge.runner.v1.Runner": {*Service}})
    runner_pb2_grpc.add_RunnerServicer_to_server(hostile, server.grpc)
    async with (
        listening(server) as address,
        RunnerClient(address, TlsSource(deployment.files(Service.ORCHESTRATOR))) as client,
    ):
        ran = await asyncio.wait_for(run_on(client, a_start(""), lambda ask: None), 10)
        await asyncio.wait_for(hostile.was_cancelled.wait(), 5)

    assert (ran.failure.code, ran.failure.message[:30]) == (Code.SANDBOX_LOST, "the runner broke the protocol:")


ENDS: dict[str, tuple[list[pb.RunResponse], list[RunEvent]]] = {
    "a return": ([RETURNED], [Finished(Returned(b"1"))]),
    "what follows the end is not heard": ([RETURNED, an_ask(), RETURNED], [Finished(Returned(b"1"))]),
    "a code that does not exist": (
        [pb.RunResponse(finished=pb.Finished(failed=pb.Failed(failure=pb.Failure(code="x", message="m"))))],
        [Finished(Failed(Failure(Code.SANDBOX_LOST, "m")))],
    ),
    "a flood on the console": (
        [*[a_line("x" * 1023)] * 200, RETURNED],
        [*[Console("log", "x" * 1023)] * 65, Finished(Returned(b"1"))],
    ),
    "a stream that just ends": (
        [an_ask()],
        [Ask(1, "api", {}), Finished(Failed(Failure(Code.SANDBOX_LOST, "the sandbox was lost: its runner went away")))],
    ),
}


@pytest.mark.parametrize("kind", ENDS)
async def test_a_runs_end_comes_exactly_once(deployment: Deployment, kind: str) -> None:
    messages, events = ENDS[kind]
    server = RpcServer(TlsSource(deployment.files(Service.RUNNER)), {"sandbridge.runner.v1.Runner": {*Service}})
    runner_pb2_grpc.add_RunnerServicer_to_server(Hostile([STARTED, *messages], waits=False), server.grpc)
    async with (
        listening(server) as address,
        RunnerClient(address, TlsSource(deployment.files(Service.ORCHESTRATOR))) as client,
    ):
        ran = await asyncio.wait_for(run_on(client, a_start(""), lambda ask: None), 10)

    assert ran.events == [Started("b"), *events]


@pytest.mark.parametrize("messages", [[], [RETURNED]], ids=["nothing", "an end without a start"])
async def test_a_runner_that_does_not_start_a_run_is_lost(
    deployment: Deployment, messages: list[pb.RunResponse]
) -> None:
    server = RpcServer(TlsSource(deployment.files(Service.RUNNER)), {"sandbridge.runner.v1.Runner": {*Service}})
    runner_pb2_grpc.add_RunnerServicer_to_server(Hostile(messages, waits=False), server.grpc)
    async with (
        listening(server) as address,
        RunnerClient(address, TlsSource(deployment.files(Service.ORCHESTRATOR))) as client,
    ):
        with pytest.raises(SandbridgeError) as error:
            async with client.open(a_start("")):
                pass

    assert error.value.failure.code is Code.SANDBOX_LOST


async def test_an_answer_after_the_end_is_ignored(deployment: Deployment) -> None:
    async def returns(guest: ScriptedGuest) -> int:
        return 1

    async with (
        serve_runs(deployment, ScriptedRunner(returns)) as address,
        RunnerClient(address, TlsSource(deployment.files(Service.ORCHESTRATOR))) as client,
        client.open(a_start("")) as run,
    ):
        events = [event async for event in run.events()]
        await run.answer(Answer(1, 0, {}))
        await run.cancel(Failure(Code.CANCELLED, "late"))

    assert events == [Started("scripted"), Finished(Returned(b"1"))]


async def test_a_client_that_is_closed_loses_its_runs_and_opens_no_other(deployment: Deployment) -> None:
    tls = TlsSource(deployment.files(Service.ORCHESTRATOR))
    async with serve_runs(deployment, ScriptedRunner(asks_forever)) as address:
        client = RunnerClient(address, tls)
        await client.__aenter__()
        async with client.open(a_start("")) as run:
            events = run.events()
            seen = [await anext(events), await anext(events)]
            await client.__aexit__(None, None, None)
            seen += [event async for event in events]
        with pytest.raises(SandbridgeError) as error:
            async with client.open(a_start("")):
                pass

    lost = Failure(Code.SANDBOX_LOST, "the sandbox was lost: its runner went away")
    assert (seen[-1], error.value.failure) == (Finished(Failed(lost)), lost)


JUNK = b"\xff\xff\xff"


@pytest.mark.parametrize("before", [[], [START.SerializeToString()]], ids=["first", "after the start"])
async def test_bytes_that_are_no_message_end_a_run(deployment: Deployment, before: list[bytes]) -> None:
    files = deployment.files(Service.ORCHESTRATOR)
    runner = ScriptedRunner(asks_forever)
    async with serve_runs(deployment, runner) as address, channel(address, Peer(Service.RUNNER, UID), files) as line:
        call = line.stream_stream("/sandbridge.runner.v1.Runner/Run")(timeout=10)
        for message in [*before, JUNK]:
            await call.write(message)
        seen: list[bytes] = []
        try:
            while (message := await call.read()) is not EOF:
                seen.append(message)
        except grpc.aio.AioRpcError as error:
            status = error.code().name
        else:
            status = pb.RunResponse.FromString(seen[-1]).finished.failed.failure.code

    assert (status, runner.running) == ("sandbox_lost" if before else "INTERNAL", 0)


@pytest.mark.parametrize("messages", [[JUNK], [STARTED.SerializeToString(), JUNK]], ids=["first", "after the start"])
async def test_a_runner_that_sends_no_messages_is_lost_and_its_status_is_asked_for_again(
    deployment: Deployment, messages: list[bytes]
) -> None:
    asked = 0

    async def run(requests: object, context: Context) -> None:
        for message in messages:
            await context.write(message)
        await asyncio.Event().wait()

    async def status(request: bytes, context: Context) -> AsyncIterator[bytes]:
        nonlocal asked
        asked += 1
        yield JUNK

    server = RpcServer(TlsSource(deployment.files(Service.RUNNER)), {"sandbridge.runner.v1.Runner": {*Service}})
    handlers = {
        "Run": grpc.stream_stream_rpc_method_handler(run),
        "Status": grpc.unary_stream_rpc_method_handler(status),
    }
    server.grpc.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("sandbridge.runner.v1.Runner", handlers),)
    )
    async with (
        listening(server) as address,
        RunnerClient(address, TlsSource(deployment.files(Service.ORCHESTRATOR))) as client,
    ):
        try:
            code = (await asyncio.wait_for(run_on(client, a_start("")), 10)).failure.code
        except SandbridgeError as error:
            code = error.failure.code
        async with asyncio.timeout(10):
            while asked < 2:
                await asyncio.sleep(0.02)

    assert (code, client.is_connected) == (Code.SANDBOX_LOST, False)

"""A run over gRPC is the run that it is in process: the same scripts give the same events."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest
from deployments import Deployment
from guests import NOW_MS, Ran, a_start, run_on
from rpc_serving import listening, serve_runs

from sandbridge_kit.errors import Code, Failure, SandbridgeError
from sandbridge_kit.ports.runner import MIB, Answer, Ask, Console, Finished, RunEvent, Runner
from sandbridge_kit.rpc import RpcServer, Service, TlsSource
from sandbridge_orchestrator.adapters.runner_client import RunnerClient
from sandbridge_runner.engines.deno import DenoEngine
from sandbridge_runner.rpc import runner_server
from sandbridge_runner.service import PoolRunner

BODY = bytes(range(256)) * (10 * MIB // 256)
TEN_MIB = f"const data = new Uint8Array({10 * MIB}); for (let i = 0; i < data.length; i++) data[i] = i % 256;"


@dataclass(frozen=True)
class Case:
    """A script, its limits, and what the outside answers to its API calls."""

    code: str
    head: dict[str, object] | None = None
    body: bytes = b""
    limits: tuple[tuple[str, int], ...] = ()

    def answer(self, ask: Ask) -> Answer:
        return Answer(ask.seq, NOW_MS + 10 * ask.seq, self.head or {}, self.body if self.head else b"")


JSON_200 = {"status": 200, "headers": {"x-a": "b"}, "payload": {"kind": "json"}}
BYTES_200 = {"status": 200, "headers": {}, "payload": {"kind": "bytes"}}
ERROR = {"code": "denied_by_policy", "message": "not this one", "hint": "ask", "retryable": False, "retryAfterMs": 5}
CASES = {
    "a value": Case("return {a: [1, 'é', null]}"),
    "nothing": Case("undefined"),
    "console lines": Case("console.log('a', {b: 1}); console.error('\\ud800x'); console.debug('日本')"),
    "a call": Case(
        "return (await api.o.get({path: {id: '\\ud800 é'}})).data", JSON_200, b'{"id": 12345678901234567890}'
    ),
    "an error as the answer": Case("await api.orders.get({path: {id: 1}})", {"error": ERROR}),
    "an error that is caught": Case(
        "try { await api.a.b() } catch (e) { return [e.code, e.message, e.hint, e.retryAfterMs] }", {"error": ERROR}
    ),
    "calls at once": Case("return await Promise.all([1, 2, 3].map(id => api.o.get({path: {id}})))", JSON_200, b"1"),
    "timers and the clock": Case("await new Promise(r => setTimeout(r, 50)); return [Date.now(), Math.random()]"),
    "10 MiB to the script": Case("return (await api.files.get()).data.length", BYTES_200, BODY),
    "10 MiB from the script": Case(f"{TEN_MIB} return (await api.a.put({{body: data}})).response", JSON_200, b"1"),
    "a result of several pieces": Case("return 'x'.repeat(3 * 1024 * 1024)"),
    "a result of exactly one piece": Case("return 'x'.repeat(1024 * 1024 - 2)"),
    "a file": Case("return file('a.txt', 'text', 'text/plain')", {"handle": "h"}),
    "a thrown error": Case("\n  throw new TypeError('no')"),
    "a syntax error": Case("return ("),
    "too much of a result": Case("return 'x'.repeat(2000)", limits=(("result_bytes", 1000),)),
    "too much on the console": Case("for (let i = 0; i < 99; i++) console.log(i, i)", limits=(("console_bytes", 300),)),
    "an endless loop": Case("console.log('on'); for(;;);", limits=(("wall_clock_ms", 200),)),
    "an exit": Case("Deno.exit(3)"),
}


@pytest.fixture
async def pool() -> AsyncIterator[PoolRunner]:
    async with PoolRunner(DenoEngine(), slots=2, spares=1) as runner:
        yield runner


@contextlib.asynccontextmanager
async def remote(deployment: Deployment, runner: Runner) -> AsyncIterator[RunnerClient]:
    """The same runner, behind a socket."""
    tls = TlsSource(deployment.files(Service.ORCHESTRATOR))
    async with serve_runs(deployment, runner) as address, RunnerClient(address, tls) as client:
        yield client


def comparable(ran: Ran) -> list[RunEvent]:
    """The events without what two runs never share."""
    return [replace(event, peak_memory_bytes=None) if isinstance(event, Finished) else event for event in ran.events]


async def test_the_same_scripts_give_the_same_events_in_process_and_over_grpc(
    deployment: Deployment, pool: PoolRunner
) -> None:
    events: dict[str, dict[str, list[RunEvent]]] = {"in process": {}, "over gRPC": {}}
    async with remote(deployment, pool) as client:
        for name, case in CASES.items():
            start = a_start(case.code, **dict(case.limits))
            for way, runner in (("in process", pool), ("over gRPC", client)):
                events[way][name] = comparable(await run_on(runner, start, case.answer))

    # Two dictionaries with bodies of 10 MiB are not for printing.
    assert [name for name in CASES if events["in process"][name] != events["over gRPC"][name]] == []
    assert {len(ran) for ran in events["over gRPC"].values()} != {1}


@pytest.mark.parametrize(
    ("code", "seed", "failure"),
    [
        ("x" * (300 * 1024), bytes(32), Code.CODE_TOO_LARGE),
        ("x" * (3 * MIB), bytes(32), Code.CODE_TOO_LARGE),
        ("return 1", b"short", Code.INVALID_ARGUMENTS),
    ],
    ids=["beyond the limit", "beyond a message", "short seed"],
)
async def test_a_start_that_cannot_be_is_refused_on_entering(
    deployment: Deployment, pool: PoolRunner, code: str, seed: bytes, failure: Code
) -> None:
    async with remote(deployment, pool) as client:
        with pytest.raises(SandbridgeError) as error:
            async with client.open(a_start(code, seed=seed)):
                pass

    assert error.value.failure.code is failure


async def test_a_full_runner_refuses_at_once_and_takes_the_next_run_when_one_has_ended(
    deployment: Deployment, pool: PoolRunner
) -> None:
    async with remote(deployment, pool) as client:
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(2):
                await stack.enter_async_context(client.open(a_start("for(;;);")))
            with pytest.raises(SandbridgeError) as error:
                await stack.enter_async_context(client.open(a_start("return 1")))
        # The slot is free before the end of a run is told, so this never has to be tried twice.
        results = []
        for number in range(3):
            async with contextlib.AsyncExitStack() as stack:
                await until_free(pool)
                ran = [run_on(client, a_start(f"return {number}")) for _ in range(2)]
                results += [one.result for one in await asyncio.gather(*ran)]

    failure = error.value.failure
    assert ((failure.code, failure.retry_after_ms), results) == ((Code.AT_CAPACITY, 500), [0, 0, 1, 1, 2, 2])


async def until_free(pool: PoolRunner) -> None:
    """Wait until both slots are free: leaving a run does not wait for its sandbox."""
    while pool.status().free_slots < 2:
        await asyncio.sleep(0.005)


async def test_a_cancelled_run_ends_with_its_failure_and_what_was_said_before(
    deployment: Deployment, pool: PoolRunner
) -> None:
    stop = Failure(Code.CANCELLED, "the user stopped it", "nothing to do")
    async with remote(deployment, pool) as client, client.open(a_start("console.log('on'); for(;;);")) as run:
        events = []
        async for event in run.events():
            events.append(event)
            if isinstance(event, Console):
                await run.cancel(stop)

    assert isinstance(events[-1], Finished)
    assert (events[1:-1], events[-1].outcome.failure) == ([Console("log", "on")], stop)  # type: ignore[union-attr]


async def test_a_run_can_be_cancelled_while_its_script_reads_no_answer(
    deployment: Deployment, pool: PoolRunner
) -> None:
    """The pipe and the stream are full by then, and a message to the runner would wait behind what is in them."""
    stop = Failure(Code.CANCELLED, "enough")
    script = "for (let i = 0; i < 8; i++) api.a.b(); await 0; const end = performance.now; for(;;);"
    async with remote(deployment, pool) as client, client.open(a_start(script, in_flight_bytes=MIB)) as run:
        answering: list[asyncio.Task[None]] = []
        started = 0.0
        async for event in run.events():
            if isinstance(event, Ask):
                answering.append(asyncio.create_task(run.answer(Answer(event.seq, NOW_MS, BYTES_200, BODY))))
                if event.seq == 8:
                    await asyncio.sleep(0.1)
                    started = time.monotonic()
                    await run.cancel(stop)
        took = time.monotonic() - started
        await asyncio.gather(*answering)

    assert isinstance(event, Finished)
    assert (event.outcome.failure, took < 5) == (stop, True)  # type: ignore[union-attr]


async def test_answers_are_delivered_in_order_and_no_two_writes_overlap(
    deployment: Deployment, pool: PoolRunner
) -> None:
    """Two writes at once on one stream are an error of the library; the script sees the order of the answers."""
    script = """
      const order = [];
      const get = async (id) => order.push([id, (await api.o.get({path: {id}})).data.length]);
      await Promise.all([1, 2, 3, 4, 5, 6].map(get));
      return order;
    """
    async with remote(deployment, pool) as client, client.open(a_start(script)) as run:
        asks: list[Ask] = []
        async for event in run.events():
            if isinstance(event, Ask):
                asks.append(event)
            if len(asks) == 6 and isinstance(event, Ask):
                sizes = [2 * MIB, 10, MIB, 0, 3 * MIB, 1]
                answers = [
                    Answer(ask.seq, NOW_MS, BYTES_200, b"x" * size) for ask, size in zip(asks, sizes, strict=True)
                ]
                await asyncio.gather(*(run.answer(answer) for answer in reversed(answers)))

    assert isinstance(event, Finished)
    assert event.outcome.result == b"[[6,1],[5,3145728],[4,0],[3,1048576],[2,10],[1,2097152]]"  # type: ignore[union-attr]


async def test_the_status_of_a_runner_follows_its_runs(deployment: Deployment, pool: PoolRunner) -> None:
    seen: list[tuple[bool, int, int]] = []
    changed = asyncio.Event()

    def note() -> None:
        status = client.status()
        seen.append((client.is_connected, status.free_slots, status.running))
        changed.set()

    async def until(state: tuple[bool, int, int]) -> None:
        async with asyncio.timeout(5):
            while not seen or seen[-1] != state:
                changed.clear()
                await changed.wait()

    tls = TlsSource(deployment.files(Service.ORCHESTRATOR))
    async with serve_runs(deployment, pool) as address:
        client = RunnerClient(address, tls, on_status=note)
        async with client:
            await until((True, 2, 0))
            async with client.open(a_start("for(;;);")):
                await until((True, 1, 1))
            await until((True, 2, 0))


async def calls_of(server: RpcServer, count: int) -> None:
    """Wait until the server answers so many calls."""
    async with asyncio.timeout(5):
        while server.calls != count:
            await asyncio.sleep(0.005)


async def test_a_stream_is_open_before_there_is_a_run_and_each_serves_one(
    deployment: Deployment, pool: PoolRunner
) -> None:
    server, servicer = runner_server(TlsSource(deployment.files(Service.RUNNER)), pool)
    tls = TlsSource(deployment.files(Service.ORCHESTRATOR))
    async with listening(server) as address, RunnerClient(address, tls) as client:
        await calls_of(server, 1)
        async with client.open(a_start("for(;;);")):
            runs = servicer.runs
            await calls_of(server, 2)
        await calls_of(server, 1)
        results = [(await run_on(client, a_start(f"return {number}"))).result for number in range(3)]
        await calls_of(server, 1)

    assert (runs, servicer.runs, results) == (1, 0, [0, 1, 2])


async def test_a_drain_does_not_wait_for_a_stream_without_a_run(deployment: Deployment, pool: PoolRunner) -> None:
    server, _ = runner_server(TlsSource(deployment.files(Service.RUNNER)), pool)
    tls = TlsSource(deployment.files(Service.ORCHESTRATOR))
    async with listening(server) as address, RunnerClient(address, tls) as client:
        await calls_of(server, 1)
        drained = await server.drain(30)
        with pytest.raises(SandbridgeError) as error:
            async with client.open(a_start("return 1")):
                pass

    assert (drained, server.calls, error.value.failure.code) == (True, 0, Code.AT_CAPACITY)


async def test_runs_go_on_when_a_runner_is_there_again(deployment: Deployment, pool: PoolRunner) -> None:
    tls = TlsSource(deployment.files(Service.ORCHESTRATOR))
    results = []
    async with contextlib.AsyncExitStack() as stack:
        address, client = "127.0.0.1:0", None
        for number in range(2):
            server, _ = runner_server(TlsSource(deployment.files(Service.RUNNER)), pool)
            address = f"127.0.0.1:{await server.start(address)}"
            client = client or await stack.enter_async_context(RunnerClient(address, tls))
            await calls_of(server, 1)
            results.append((await run_on(client, a_start(f"return {number}"))).result)
            await server.stop()

    assert results == [0, 1]

"""Runner and docs search as processes: how they start, what happens when one side dies, how they end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import grpc
import pytest
from deployments import UID, Deployment
from guests import a_start, empty, run_on
from rpc_calls import channel
from rpc_serving import CONFIG
from service_processes import all_gone, service

from sandbridge.runner.v1 import runner_pb2 as pb
from sandbridge.runner.v1 import runner_pb2_grpc
from sandbridge_kit.certificates import Peer
from sandbridge_kit.errors import Code, SandbridgeError
from sandbridge_kit.ports.docs import SearchRequest
from sandbridge_kit.ports.runner import Answer, Ask, Failed, Finished, Returned
from sandbridge_kit.rpc import Link, Service, TlsSource
from sandbridge_orchestrator.adapters.docs_client import DocsClient
from sandbridge_orchestrator.adapters.runner_client import RunnerClient

CLIENT = Path(__file__).with_name("client_process.py")
ENDLESS = "console.log('on'); for(;;);"
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes as on Linux")


@pytest.fixture
def runner_dir(deployment: Deployment) -> Path:
    return deployment.files(Service.RUNNER).certificate.parent


@pytest.fixture
def tls(deployment: Deployment) -> TlsSource:
    return TlsSource(deployment.files(Service.ORCHESTRATOR))


@linux_only
async def test_a_callers_death_or_deadline_kills_its_sandbox(
    deployment: Deployment, runner_dir: Path, tls: TlsSource
) -> None:
    async with service("sandbridge_runner", TLS_DIR=runner_dir, SPARES=0) as runner:
        address = await runner.address()
        idle = set(runner.children())
        client = await asyncio.create_subprocess_exec(
            sys.executable,
            str(CLIENT),
            address,
            str(deployment.files(Service.ORCHESTRATOR, folder="client").key.parent),
            stdout=asyncio.subprocess.PIPE,
        )
        assert client.stdout is not None
        await asyncio.wait_for(client.stdout.readline(), 20)
        guests = [pid for pid in runner.children() if pid not in idle]
        client.kill()
        await client.wait()
        after_death = await all_gone(guests)

        # Bare gRPC, with a deadline far below the run's own time.
        async with channel(address, Peer(Service.RUNNER, UID), deployment.files(Service.ORCHESTRATOR)) as line:
            call = runner_pb2_grpc.RunnerStub(line).Run(timeout=0.6)
            await call.write(pb.RunRequest(start=pb.Start(run_id="r", code="for(;;);", seed=bytes(32))))
            await call.read()
            late = [pid for pid in runner.children() if pid not in idle]
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await call.read()
            after_deadline = await all_gone(late)

    assert (len(guests) > 0, after_death) == (True, [])
    assert (len(late) > 0, after_deadline, error.value.code()) == (True, [], grpc.StatusCode.DEADLINE_EXCEEDED)


@linux_only
async def test_a_runners_death_loses_its_runs_at_once_and_leaves_no_sandbox(runner_dir: Path, tls: TlsSource) -> None:
    async with (
        service("sandbridge_runner", TLS_DIR=runner_dir, SPARES=1) as runner,
        RunnerClient(await runner.address(), tls) as client,
        client.open(a_start(ENDLESS)) as run,
    ):
        events = run.events()
        seen = [await anext(events), await anext(events)]
        below = runner.children()
        killed = time.monotonic()
        os.kill(runner.process.pid, signal.SIGKILL)
        end = [event async for event in events]
        took = time.monotonic() - killed
        with pytest.raises(SandbridgeError) as error:
            async with client.open(a_start("return 1")):
                pass

    assert len(seen) == 2
    assert [type(event.outcome) for event in end if isinstance(event, Finished)] == [Failed]
    assert isinstance(end[-1], Finished)
    assert isinstance(end[-1].outcome, Failed)
    assert (end[-1].outcome.failure.code, error.value.failure.code) == (Code.SANDBOX_LOST, Code.SANDBOX_LOST)
    assert (took < 5, len(below) > 0, await all_gone(below)) == (True, True, [])


@linux_only
async def test_a_peer_that_is_there_and_says_nothing_is_given_up(
    deployment: Deployment, runner_dir: Path, tls: TlsSource
) -> None:
    """A frozen process keeps its connections open; only unanswered pings, within 15 s, show that it is gone."""
    folder = deployment.files(Service.ORCHESTRATOR, folder="client").key.parent
    async with (
        service("sandbridge_runner", TLS_DIR=runner_dir, SPARES=0) as living,
        service("sandbridge_runner", TLS_DIR=runner_dir) as frozen,
        RunnerClient(await frozen.address(), tls) as client,
    ):
        address = await living.address()
        idle = set(living.children())
        other = await asyncio.create_subprocess_exec(
            sys.executable, str(CLIENT), address, str(folder), stdout=asyncio.subprocess.PIPE
        )
        assert other.stdout is not None
        await asyncio.wait_for(other.stdout.readline(), 20)
        guests = [pid for pid in living.children() if pid not in idle]
        ran = asyncio.ensure_future(run_on(client, a_start(ENDLESS, wall_clock_ms=60_000)))
        while client.status().running == 0:
            await asyncio.sleep(0.02)
        for process in (other, frozen.process):
            process.send_signal(signal.SIGSTOP)
        # The guest first: it ends by its own clock after 30 s.
        left = await all_gone(guests, within=22)
        failure = (await asyncio.wait_for(ran, 10)).failure
        other.kill()
        await other.wait()

    assert (len(guests) > 0, left, failure.code) == (True, [], Code.SANDBOX_LOST)


async def test_a_stopping_runner_takes_no_run_and_finishes_those_it_has(runner_dir: Path, tls: TlsSource) -> None:
    async with service("sandbridge_runner", TLS_DIR=runner_dir) as runner:
        address = await runner.address()
        async with (
            RunnerClient(address, tls) as client,
            Link(address, Service.RUNNER, tls, lambda line: line) as link,
            client.open(a_start("return (await api.a.b()).response.status")) as run,
        ):
            was_healthy = await link.check_health()
            runner.process.terminate()
            await runner.logged("stopping")
            is_healthy = await link.check_health()
            with pytest.raises(SandbridgeError) as refused:
                async with client.open(a_start("return 1")):
                    pass
            status = client.status()
            async for event in run.events():
                if isinstance(event, Ask):
                    await run.answer(Answer(event.seq, 0, {"status": 204, "headers": {}}))
        code = await asyncio.wait_for(runner.process.wait(), 10)
        assert runner.process.stdout is not None
        said = await runner.process.stdout.read()

    assert (was_healthy, is_healthy, refused.value.failure.code, status.free_slots) == (
        True,
        False,
        Code.AT_CAPACITY,
        0,
    )
    assert (event, code, said) == (Finished(Returned(b"204"), event.peak_memory_bytes), 0, b"")  # type: ignore[union-attr]


@linux_only
async def test_a_second_signal_ends_the_runs_as_retryable_and_the_process_with_them(
    runner_dir: Path, tls: TlsSource
) -> None:
    async with service("sandbridge_runner", TLS_DIR=runner_dir) as runner:
        async with RunnerClient(await runner.address(), tls) as client:
            ran = asyncio.ensure_future(run_on(client, a_start(ENDLESS), empty))
            while client.status().running == 0:
                await asyncio.sleep(0.02)
            below = runner.children()
            runner.process.terminate()
            await runner.logged("stopping")
            runner.process.terminate()
            failure = (await asyncio.wait_for(ran, 10)).failure
        code = await asyncio.wait_for(runner.process.wait(), 10)

    assert (failure.code, failure.retryable, code, await all_gone(below)) == (Code.SANDBOX_LOST, True, 0, [])


async def test_docs_search_follows_its_files_and_keeps_what_it_has_where_they_are_wrong(
    deployment: Deployment, tls: TlsSource, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    taken: list[list[str]] = []
    changed = asyncio.Event()

    def take(documents: object) -> None:
        taken.append(list(documents))  # type: ignore[call-overload]
        changed.set()

    folder = deployment.files(Service.DOCSEARCH).certificate.parent
    async with service("sandbridge_docsearch", TLS_DIR=folder, CONFIG=config, POLL_S=0.05) as docs:
        async with DocsClient(await docs.address(), tls, on_catalogue=take) as client:
            await asyncio.wait_for(client.wait_loaded(), 10)
            first = await client.search(SearchRequest("delete an order"))
            config.write_text("apis: [{name: orders, openapi: {url: https://example.org/openapi.json}}]")
            refused = await docs.logged("catalogue_not_reloaded")
            still = await client.search(SearchRequest("delete an order"))
            changed.clear()
            config.write_text(CONFIG.split("  - name: billing")[0])
            await asyncio.wait_for(changed.wait(), 10)
            second = await client.search(SearchRequest(""))
        docs.process.terminate()
        code = await asyncio.wait_for(docs.process.wait(), 10)

    assert (taken, code) == ([["orders", "billing"], ["orders"]], 0)
    assert (first.structured["cards"][0]["id"], still.structured, second.total) == (
        "orders:orders.delete",
        first.structured,
        2,
    )
    assert "mount the document as a file" in refused["reason"]


@pytest.mark.parametrize(
    ("module", "settings", "reason"),
    [
        ("sandbridge_runner", {}, "SANDBRIDGE_TLS_DIR is not set"),
        ("sandbridge_runner", {"TLS_DIR": "/nowhere"}, "cannot read /nowhere/tls.crt"),
        ("sandbridge_runner", {"TLS_DIR": "/nowhere", "SLOTS": "0"}, "SANDBRIDGE_SLOTS: Input should be greater"),
        ("sandbridge_runner", {"ENGINE": "wine"}, "SANDBRIDGE_ENGINE: Input should be"),
        ("sandbridge_docsearch", {"TLS_DIR": "/nowhere"}, "SANDBRIDGE_CONFIG: Field required"),
    ],
)
async def test_settings_that_cannot_be_end_the_start_with_one_line(
    module: str, settings: dict[str, str], reason: str
) -> None:
    async with service(module, **settings) as process:
        code = await asyncio.wait_for(process.process.wait(), 20)
        line = await process.logged("not_started")

    assert (code, reason in line["reason"], len(process.logs)) == (2, True, 1)

"""The three services as processes with mutual TLS: what goes on when one is killed, stopped, full, or not there."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from canaries import found_in
from demo_processes import Process, Services, address_of, knock, services
from held_api import DOCUMENT, HeldApi, held_api
from mcp.client.client import Client
from sandbridge_command import COMMAND, clean_environment
from served_sandbridge import gone, guests_of

from orders_service.process import OrdersApi, running
from sandbridge_kit.certificates import Service
from sandbridge_kit.errors import SandbridgeError
from sandbridge_kit.rpc import TlsFiles, TlsSource
from sandbridge_orchestrator.adapters.control_client import ControlClient
from sandbridge_orchestrator.adapters.runner_client import RunnerClient
from sandbridge_orchestrator.core.switches import SwitchState

KEY = "canary-5e1f-services-key"
WAITS = "await new Promise(done => setTimeout(done, 2000)); return 'done'"
LISTS = "return (await api.orders.list()).response.status"
WAITS_LONG = "await new Promise(done => setTimeout(done, 25000))"

LOST = {
    "before": (WAITS, "done", [], ("returned", 2)),
    "during": (
        "return (await apis.held.held.act()).data",
        "may have taken effect: held:held.act",
        [("held:held.act", "outcome_unknown")],
        ("sandbox_lost", None),
    ),
    "after": (
        f"await apis.held.quick.act(); {WAITS}",
        "answered before: held:quick.act",
        [("held:quick.act", "answered")],
        ("sandbox_lost", None),
    ),
}
"""Moment → script, what is said, its calls in the audit trail, and how the run ended there."""


@dataclass
class Deployed:
    """One deployment with its docs search; orchestrators and runners are started by the tests."""

    services: Services
    docs: Process
    held: HeldApi
    document: Path
    folder: Path

    def orchestrator(self, *runners: Process, **settings: str) -> Process:
        """Start an orchestrator with an audit file of its own."""
        number = len(self.services.processes)
        given = {"audit_file": str(self.folder / f"audit-{number}.jsonl"), "switch_poll_s": "0.1", **settings}
        return self.services.orchestrator(self.docs, list(runners), {"SANDBRIDGE_API_KEY_ORDERS": KEY}, **given)

    def audit(self, orchestrator: Process) -> list[dict[str, Any]]:
        """Return its audit records."""
        number = self.services.processes.index(orchestrator)
        text = (self.folder / f"audit-{number}.jsonl").read_text(encoding="utf-8")
        records = [json.loads(line) for line in text.splitlines()]
        return [record for record in records if not record["event"].startswith("stream_")]

    def tls(self, service: Service = Service.CONTROL, deployment: str | None = None) -> TlsSource:
        """Return a certificate of this deployment's authority."""
        return TlsSource(TlsFiles.in_folder(self.services.certificates.issue(service, deployment)))

    async def busy(self, *runners: Process) -> Process:
        """Wait until one of the runners has a run, and return it."""
        async with contextlib.AsyncExitStack() as stack:
            tls = self.tls(Service.ORCHESTRATOR)
            ways = [(r, await stack.enter_async_context(RunnerClient(address_of(r), tls))) for r in runners]
            async with asyncio.timeout(10):
                while True:
                    for runner, way in ways:
                        if way.status().running:
                            return runner
                    await asyncio.sleep(0.01)


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """Docs search of a deployment with two APIs."""
    folder = tmp_path_factory.mktemp("services")
    with running(KEY) as orders, held_api() as held:
        document = folder / "openapi.yaml"
        shutil.copyfile(orders.document, document)
        config = folder / "deployment.yaml"
        config.write_text(json.dumps(deployment(orders, held, document)), encoding="utf-8")
        with services(folder, config) as made:
            yield Deployed(made, made.docsearch(), held, document, folder)


def deployment(orders: OrdersApi, held: HeldApi, document: Path) -> dict[str, Any]:
    apis = [
        {"name": "orders", "openapi": {"path": str(document)}, "baseUrl": orders.url},
        {"name": "held", "openapi": {"inline": json.dumps(DOCUMENT)}, "baseUrl": held.url},
    ]
    allowed = [{**api, "allowPrivate": [str(api["baseUrl"]).removeprefix("http://")]} for api in apis]
    return {"apis": allowed, "sandbox": {"queueMs": 10_000}}


@pytest.fixture(scope="module")
def runner(deployed: Deployed) -> Process:
    """A runner that no test harms."""
    return deployed.services.runner()


@pytest.fixture(scope="module")
def orchestrator(deployed: Deployed, runner: Process) -> Process:
    """An orchestrator that no test harms."""
    return deployed.orchestrator(runner)


@contextlib.asynccontextmanager
async def connected(orchestrator: Process) -> AsyncIterator[Callable[..., Any]]:
    """Give a function that runs a script and returns its result, or the text of its error."""
    async with Client(orchestrator.facts["url"], mode="auto") as client:

        async def execute(code: str, **arguments: Any) -> Any:
            answer = await client.call_tool("execute", {"code": code, **arguments})
            if answer.is_error:
                return "\n".join(block.text for block in answer.content if block.type == "text")
            return answer.structured_content["result"]

        execute.client = client  # type: ignore[attr-defined]
        yield execute


async def search(client: Client, query: str) -> str:
    answer = await client.call_tool("search_docs", {"query": query, "limit": 1})
    return "\n".join(block.text for block in answer.content if block.type == "text")


def until(condition: Callable[[], bool], *, within: float) -> bool:
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def ready(orchestrator: Process) -> bool:
    url = orchestrator.facts["url"].replace("/mcp", "/ready")
    return httpx2.get(url).status_code == 200


async def test_a_client_finds_and_calls_over_three_processes(orchestrator: Process) -> None:
    async with connected(orchestrator) as execute:
        found = await search(execute.client, "create an order")
        status = await execute("return (await apis.orders.orders.list({query: {}})).response.status")

    assert ("orders.create" in found, status, ready(orchestrator)) == (True, 200, True)


@pytest.fixture(scope="module")
def expendable(deployed: Deployed) -> tuple[Process, list[Process]]:
    """An orchestrator over runners of which each test kills one."""
    runners = deployed.services.runners(4, slots="1", spares="1")
    return deployed.orchestrator(*runners), runners


@pytest.mark.parametrize("moment", ["before", "during", "after"])
async def test_a_runner_killed_in_the_middle_of_a_run(
    deployed: Deployed, expendable: tuple[Process, list[Process]], moment: str
) -> None:
    """F01: before, during and after the request to the API."""
    orchestrator, runners = expendable
    deployed.held.release.clear()
    script, said, expected_calls, expected_end = LOST[moment]
    seen = len(deployed.audit(orchestrator))
    async with connected(orchestrator) as execute:
        run = asyncio.create_task(execute(script))
        if moment == "during":
            assert await asyncio.to_thread(deployed.held.arrived.acquire, timeout=10)
        victim = await deployed.busy(*runners)
        if moment == "after":
            assert await asyncio.to_thread(until, lambda: len(deployed.audit(orchestrator)) > seen, within=10)
        guests = guests_of(victim.pid)
        victim.stop(signal.SIGKILL)
        runners.remove(victim)
        answer = await asyncio.wait_for(run, 10)
        again = await execute("return 2")
    deployed.held.release.set()
    records = deployed.audit(orchestrator)[seen:]
    calls = [(record["operation"], record["outcome"]) for record in records if record["event"] == "api_call"]
    ends = [(record["outcome"], record.get("starts")) for record in records if record["event"] == "tool_call"]

    assert said in answer
    assert (calls, ends, again) == (expected_calls, [expected_end, ("returned", None)], 2)
    assert gone(guests, within=5)


async def test_a_run_in_flight_survives_the_rolling_update_of_its_runner_and_of_the_orchestrator(
    deployed: Deployed,
) -> None:
    """F04: what is under way ends with its answer, what is new is told to come back."""
    runner = deployed.services.runner()
    orchestrator = deployed.orchestrator(runner)
    async with connected(orchestrator) as execute:
        run = asyncio.create_task(execute(WAITS))
        await deployed.busy(runner)
        runner.popen.send_signal(signal.SIGTERM)
        orchestrator.popen.send_signal(signal.SIGTERM)
        await asyncio.to_thread(orchestrator.until, "stopping")
        refused = await execute("return 1")
        is_ready = ready(orchestrator)
        answer = await run
    codes = (orchestrator.popen.wait(10), runner.popen.wait(10))

    assert (answer, "at_capacity" in refused, is_ready, codes) == ("done", True, False, (0, 0))


async def test_a_run_that_outlasts_the_grace_is_ended_with_a_reason(deployed: Deployed, runner: Process) -> None:
    orchestrator = deployed.orchestrator(runner, grace_s="0.2")
    async with connected(orchestrator) as execute:
        run = asyncio.create_task(execute(WAITS_LONG))
        await deployed.busy(runner)
        orchestrator.popen.send_signal(signal.SIGTERM)
        answer = await run

    assert ("cancelled" in answer, "this server is stopping" in answer, orchestrator.popen.wait(10)) == (True, True, 0)


async def test_a_changed_document_is_served_and_a_run_under_way_keeps_the_one_it_began_with(
    deployed: Deployed, orchestrator: Process
) -> None:
    before = deployed.document.read_text(encoding="utf-8")
    async with connected(orchestrator) as execute:
        deployed.held.release.clear()
        old = asyncio.create_task(execute(f"await apis.held.held.look(); {LISTS}"))
        assert await asyncio.to_thread(deployed.held.arrived.acquire, timeout=10)
        seen = sum(line.get("event") == "catalogue_served" for line in orchestrator.events())
        deployed.document.write_text(before.replace("orders.list", "orders.enumerate"), encoding="utf-8")
        await asyncio.to_thread(orchestrator.until, "catalogue_served", after=seen)
        new = await execute("return (await api.orders.enumerate()).response.status")
        gone_now = await execute(LISTS)
        found = await search(execute.client, "orders.enumerate")
        deployed.held.release.set()
        kept = await old
    deployed.document.write_text(before, encoding="utf-8")
    await asyncio.to_thread(orchestrator.until, "catalogue_served", after=seen + 1)

    assert (new, "unknown_operation" in gone_now, "orders.enumerate" in found, kept) == (200, True, True, 200)


def switch(deployed: Deployed, orchestrator: Process, target: str, position: str) -> tuple[int, str]:
    folder = deployed.services.certificates.issue(Service.CONTROL)
    where = ("--control", address_of(orchestrator), "--tls-dir", str(folder))
    command = [str(COMMAND), "switch", target, position, *where]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, env=clean_environment())
    return done.returncode, done.stdout.partition(": ")[2] or done.stderr


async def test_execute_and_a_source_are_switched_off_and_on_from_the_command_line(
    deployed: Deployed, orchestrator: Process
) -> None:
    deployed.held.release.clear()
    said = []

    async def switched(target: str, position: str) -> None:
        said.append(await asyncio.to_thread(switch, deployed, orchestrator, target, position))

    async with connected(orchestrator) as execute:
        going = asyncio.create_task(execute(f"await apis.held.held.look(); {LISTS}"))
        assert await asyncio.to_thread(deployed.held.arrived.acquire, timeout=10)
        await switched("execute", "off")
        refused, found = await execute("return 1"), await search(execute.client, "list orders")
        await switched("execute", "on")
        again = await execute("return 1")
        await switched("api:orders", "off")
        deployed.held.release.set()
        stopped, hidden = await going, await search(execute.client, "list orders")
        await switched("api:orders", "on")
        back = await execute(LISTS)

    assert said == [
        (0, "execute off, revision 1\n"),
        (0, "execute on, revision 2\n"),
        (0, "execute on, api:orders off, revision 3\n"),
        (0, "execute on, revision 4\n"),
    ]
    assert ("disabled" in refused, "orders.list" in found, again) == (True, True, 1)
    assert ("The API orders is switched off" in stopped, "orders.list" in hidden, back) == (True, False, 200)


async def test_switching_off_ends_runs_under_way_where_that_is_set_and_a_file_switches_too(
    deployed: Deployed, runner: Process
) -> None:
    file = deployed.folder / "switches.yaml"
    file.write_text("{execute: true, revision: 1}", encoding="utf-8")
    orchestrator = deployed.orchestrator(runner, switch_file=str(file), when_switched_off="cancel")
    async with connected(orchestrator) as execute:
        run = asyncio.create_task(execute(WAITS_LONG))
        await deployed.busy(runner)
        file.write_text("{execute: false, revision: 2}", encoding="utf-8")
        answer = await asyncio.wait_for(run, 10)
        async with ControlClient(address_of(orchestrator), deployed.tls()) as control:
            ignored = await control.set_switches(SwitchState(execute=True, revision=1))
    orchestrator.stop()

    assert ("execute was switched off" in answer, ignored) == (True, SwitchState(False, {}, 2))


async def test_a_new_revision_of_the_policy_file_decides_the_next_call_of_a_run_under_way(
    deployed: Deployed, runner: Process
) -> None:
    file = deployed.folder / "policy.yaml"
    file.write_text("{revision: 1, defaults: {write: allow}}", encoding="utf-8")
    orchestrator = deployed.orchestrator(runner, policy_file=str(file), policy_poll_s="0.1")
    script = """
    let calls = 0;
    try { for (;;) { await apis.held.quick.act({}); calls += 1; await new Promise((go) => setTimeout(go, 50)) } }
    catch (error) { return [error.code, calls > 0] }
    """
    async with connected(orchestrator) as execute:
        run = asyncio.create_task(execute(script))
        assert await asyncio.to_thread(until, lambda: len(deployed.audit(orchestrator)) > 0, within=10)
        file.write_text("{revision: 2, readOnly: true, hidden: ['held.*']}", encoding="utf-8")
        ended = await asyncio.wait_for(run, 10)
        found = await search(execute.client, "held.look")
    orchestrator.stop()
    rules = [record["rule"] for record in deployed.audit(orchestrator) if record["event"] == "api_call"]

    assert (ended, "held.look" in found) == (["denied_by_policy", True], False)
    assert (rules[0], rules[-1]) == ("default-write", "read-only")


async def test_a_probe_works_and_is_marked(deployed: Deployed, orchestrator: Process) -> None:
    async with ControlClient(address_of(orchestrator), deployed.tls()) as control:
        seen = await control.probe()
    marked = [record["tool"] for record in deployed.audit(orchestrator) if record.get("transport") == "probe"]

    assert ((seen.ok, seen.code), marked) == ((True, ""), ["search_docs", "execute"])


async def test_search_says_to_come_back_while_docs_search_is_down_and_scripts_go_on(
    deployed: Deployed, runner: Process
) -> None:
    made = deployed.services
    docs = made.docsearch()
    orchestrator = made.orchestrator(docs, [runner], {"SANDBRIDGE_API_KEY_ORDERS": KEY})
    docs.stop(signal.SIGKILL)
    async with connected(orchestrator) as execute:
        found, status = await search(execute.client, "orders"), await execute(LISTS)
    orchestrator.stop()

    assert ("upstream_unreachable" in found, "Search again" in found, status) == (True, True, 200)


async def test_two_full_runners_make_a_run_wait_and_then_say_to_come_back(deployed: Deployed) -> None:
    settings = json.loads(deployed.services.config.read_text(encoding="utf-8"))
    impatient = deployed.folder / "impatient.yaml"
    impatient.write_text(json.dumps({**settings, "sandbox": {"queueMs": 300}}), encoding="utf-8")
    runners = deployed.services.runners(2, slots="1", spares="1")
    orchestrator = deployed.orchestrator(*runners, config=str(impatient))
    deployed.held.release.clear()
    async with connected(orchestrator) as execute:
        held = [asyncio.create_task(execute("return (await apis.held.held.look()).response.status")) for _ in range(2)]
        for _ in held:
            assert await asyncio.to_thread(deployed.held.arrived.acquire, timeout=10)
        refused = await execute("return 2")
        deployed.held.release.set()
        after = [await run for run in held]
    for process in (orchestrator, *runners):
        process.stop()

    assert ("at_capacity" in refused, "No sandbox became free" in refused) == (True, True)
    assert after == [200, 200]


@pytest.mark.parametrize(
    ("holder", "status"),
    [
        ("right", "OK"),
        ("foreign authority", "UNAVAILABLE"),
        ("another deployment", "PERMISSION_DENIED"),
    ],
)
async def test_strangers_are_refused_by_every_service(
    deployed: Deployed, runner: Process, orchestrator: Process, holder: str, status: str
) -> None:
    made = deployed.services.certificates
    folder = {
        "right": made.issue,
        "foreign authority": lambda _: made.stranger(),
        "another deployment": lambda service: made.issue(service, "another"),
    }[holder](Service.ORCHESTRATOR)

    answers = [await knock(process, folder, made.deployment) for process in (runner, deployed.docs, orchestrator)]

    assert answers == [status] * 3


@pytest.mark.parametrize("service", [Service.ORCHESTRATOR, Service.RUNNER, Service.DOCSEARCH])
async def test_only_a_control_certificate_steers(deployed: Deployed, orchestrator: Process, service: Service) -> None:
    async with ControlClient(address_of(orchestrator), deployed.tls(service)) as control:
        with pytest.raises(SandbridgeError, match="No orchestrator of this deployment answers"):
            await control.set_switches(SwitchState(execute=False, revision=1_000))


def test_control_is_not_reachable_where_clients_connect(orchestrator: Process) -> None:
    base = orchestrator.facts["url"].removesuffix("/mcp")
    headers = {"content-type": "application/grpc", "te": "trailers"}

    answers = [
        httpx2.post(f"{base}{path}/sandbridge.orchestrator.v1.Control/SetSwitch", headers=headers, content=bytes(5))
        for path in ("", "/mcp")
    ]

    assert [answer.status_code for answer in answers] == [404, 404]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"mode": "hosted"}, "Hosted mode needs a hard boundary"),
        ({"acknowledge_single_tenant": "0"}, "HTTP without sign-in is refused"),
        ({"host": "0.0.0.0"}, "--single-tenant listens on loopback only"),
        ({"runners": "somewhere"}, "SANDBRIDGE_RUNNERS: 'somewhere' is not HOST:PORT"),
        ({"tls_dir": "nowhere"}, "cannot read nowhere/tls.crt"),
    ],
)
def test_what_must_not_start_does_not_and_says_why(deployed: Deployed, settings: dict[str, str], reason: str) -> None:
    made = deployed.services
    given = {"config": str(made.config), "port": "0", "acknowledge_single_tenant": "1", **settings}
    process = made.begun(Service.ORCHESTRATOR, given)
    code = process.popen.wait(30)

    assert (code, reason in process.log.read_text(encoding="utf-8")) == (2, True)


def test_the_demo_does_what_it_shows(project_root: Path) -> None:
    demo = project_root / "examples" / "orders" / "demo_services.py"

    shown = subprocess.run([sys.executable, str(demo)], capture_output=True, text=True, timeout=50, check=False)

    assert (shown.returncode, "the runner answers PERMISSION_DENIED" in shown.stdout) == (0, True), shown.stderr


async def test_a_replica_is_ready_once_it_has_a_catalogue_and_a_runner_and_only_while_it_has(
    deployed: Deployed,
) -> None:
    made = deployed.services
    docs_port, runner_port = unused_port(), unused_port()
    given = {
        "config": str(made.config),
        "port": "0",
        "acknowledge_single_tenant": "1",
        "docs": f"127.0.0.1:{docs_port}",
        "runners": f"127.0.0.1:{runner_port}",
    }
    orchestrator = made.begun(Service.ORCHESTRATOR, given, {"SANDBRIDGE_API_KEY_ORDERS": KEY})
    runner = made.begun(Service.RUNNER, {"address": f"127.0.0.1:{runner_port}"})
    seen = [statuses(orchestrator.listening())]
    docs = made.docsearch(address=f"127.0.0.1:{docs_port}")
    assert await asyncio.to_thread(until, lambda: ready(orchestrator), within=20)
    seen.append(statuses(orchestrator))
    docs.stop()
    seen.append(statuses(orchestrator))
    runner.stop()
    assert await asyncio.to_thread(until, lambda: not ready(orchestrator), within=5)
    seen.append(statuses(orchestrator))
    orchestrator.stop()

    # /health, /ready, /mcp: a GET of /mcp is answered by the protocol, if only to say that it does not suit.
    assert [one[:2] for one in seen] == [(200, 503), (200, 200), (200, 200), (200, 503)]
    assert [one[2] == 503 for one in seen] == [True, False, False, False]


def unused_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def statuses(orchestrator: Process) -> tuple[int, int, int]:
    base = orchestrator.facts["url"].removesuffix("/mcp")
    health, readiness = (httpx2.get(f"{base}/{path}").status_code for path in ("health", "ready"))
    return health, readiness, httpx2.post(f"{base}/mcp", json={}).status_code


async def test_the_key_reaches_the_api_and_no_answer_and_no_other_process(
    deployed: Deployed, runner: Process, orchestrator: Process
) -> None:
    echo = "const {data} = await apis.orders.diagnostics.echo({body: {}}); return data"
    async with connected(orchestrator) as execute:
        answer = json.dumps(await execute(echo))
    # Only root may look into another process, and only on Linux is there a file to look at.
    looked_into = (orchestrator, runner, deployed.docs) if os.geteuid() == 0 and sys.platform == "linux" else ()
    holders = [process.name for process in looked_into if holds(process, KEY.encode())]

    assert ("[redacted]" in answer, found_in(answer.encode(), KEY)) == (True, [])
    assert holders == [process.name for process in looked_into[:1]]


def holds(process: Process, secret: bytes) -> bool:
    """True where the secret stands in what a process can write to."""
    regions = Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8").splitlines()
    with Path(f"/proc/{process.pid}/mem").open("rb", buffering=0) as memory:
        for region in regions:
            span, rights, *_ = region.split()
            first, last = (int(end, 16) for end in span.split("-"))
            with contextlib.suppress(OSError):
                if rights.startswith("rw") and secret in os.pread(memory.fileno(), last - first, first):
                    return True
    return False


def test_no_process_has_logged_the_key_of_an_api(deployed: Deployed) -> None:
    """Runs last: over everything that the tests above have made the processes write."""
    logs = [process.log for process in deployed.services.processes]
    written = {path.name: path.read_bytes() for path in (*logs, *deployed.folder.glob("audit-*.jsonl"))}

    assert (len(written) > 2, {name: found for name, text in written.items() if (found := found_in(text, KEY))}) == (
        True,
        {},
    )
    assert [name for name, text in written.items() if b"Traceback" in text] == []

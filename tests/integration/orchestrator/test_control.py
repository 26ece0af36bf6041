"""Control over mutual TLS: who may steer an orchestrator, and what each call does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from deployments import Deployment

from sandbridge.orchestrator.v1 import orchestrator_pb2 as pb
from sandbridge.orchestrator.v1 import orchestrator_pb2_grpc
from sandbridge_kit.errors import Code, SandbridgeError, fail
from sandbridge_kit.identity import Caller
from sandbridge_kit.ports.docs import SearchAnswer
from sandbridge_kit.rpc import Peer, RpcServer, Service, TlsSource
from sandbridge_kit.testing import ScriptedGuest, ScriptedRunner
from sandbridge_orchestrator.adapters.admission import Slots
from sandbridge_orchestrator.adapters.control_client import ControlClient, ProbeAnswer
from sandbridge_orchestrator.adapters.credentials import StaticKeys
from sandbridge_orchestrator.adapters.results import MemoryResults
from sandbridge_orchestrator.core.blocks import Block
from sandbridge_orchestrator.core.switches import SwitchState
from sandbridge_orchestrator.gate import ControlledGate
from sandbridge_orchestrator.rpc import control_server
from sandbridge_orchestrator.service import PROBE, Orchestrator
from sandbridge_orchestrator.testing import MemoryAudit, MemoryJournal, ScriptedDocs, ScriptedPolicy, ScriptedSender

ALICE = Caller("https://issuer", "alice", "editor", claims={"sid": "s1", "jti": "t1"})


async def two(guest: ScriptedGuest) -> int:
    return 2


@dataclass
class Steered:
    """An orchestrator with its control port."""

    deployment: Deployment
    orchestrator: Orchestrator
    runner: ScriptedRunner
    docs: ScriptedDocs
    audit: MemoryAudit
    gate: ControlledGate
    address: str

    def client(self, service: Service = Service.CONTROL) -> ControlClient:
        return ControlClient(self.address, TlsSource(self.deployment.files(service, folder=f"client-{service}")))

    def channel(self, service: Service) -> grpc.aio.Channel:
        """A channel without anything of ours."""
        files = self.deployment.files(service, folder=f"raw-{service}")
        read = [path.read_bytes() for path in (files.authorities, files.key, files.certificate)]
        name = Peer(Service.ORCHESTRATOR, self.deployment.uid).name
        options = (("grpc.ssl_target_name_override", name),)
        return grpc.aio.secure_channel(self.address, grpc.ssl_channel_credentials(*read), options)


@pytest.fixture
async def steered(tmp_path: Path) -> AsyncIterator[Steered]:
    """An orchestrator whose neighbours are scripted; it has no place for any caller's run."""
    deployment = Deployment(tmp_path)
    runner, audit = ScriptedRunner(two), MemoryAudit()
    docs = ScriptedDocs(SearchAnswer("catalogue", {"outcome": "catalogue"}, "", 0))
    gate = ControlledGate(SwitchState(), now_s=lambda: 1_000.0)
    results = MemoryResults()
    orchestrator = Orchestrator(
        runner=runner,
        docs=docs,
        apis={},
        policy=ScriptedPolicy(),
        credentials=StaticKeys({}),
        admission=Slots(0, queue=0),
        results=results,
        journal=MemoryJournal(),
        audit=audit,
        sender=ScriptedSender(lambda _: pytest.fail("a call was made")),
        gate=gate,
    )
    server: RpcServer = control_server(TlsSource(deployment.files(Service.ORCHESTRATOR)), orchestrator, gate)
    port = await server.start("127.0.0.1:0")
    yield Steered(deployment, orchestrator, runner, docs, audit, gate, f"127.0.0.1:{port}")
    await server.stop()
    results.close()


CALLS: dict[str, Callable[[Any], Any]] = {
    "Probe": lambda stub: stub.Probe(pb.ProbeRequest(), timeout=5),
    "SetSwitch": lambda stub: stub.SetSwitch(pb.SetSwitchRequest(), timeout=5),
    "Block": lambda stub: stub.Block(pb.BlockRequest(client="x"), timeout=5),
    "Forward": lambda stub: stub.Forward(iter(()), timeout=5).read(),
}
REFUSED = "PERMISSION_DENIED"


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        (Service.CONTROL, {"Probe": "OK", "SetSwitch": "OK", "Block": "OK", "Forward": REFUSED}),
        (Service.ORCHESTRATOR, {**dict.fromkeys(("Probe", "SetSwitch", "Block"), REFUSED), "Forward": "UNIMPLEMENTED"}),
        (Service.RUNNER, dict.fromkeys(CALLS, REFUSED)),
        (Service.DOCSEARCH, dict.fromkeys(CALLS, REFUSED)),
    ],
)
async def test_who_may_make_which_call(steered: Steered, service: Service, expected: dict[str, str]) -> None:
    seen = {}
    async with steered.channel(service) as channel:
        stub = orchestrator_pb2_grpc.ControlStub(channel)
        for name, call in CALLS.items():
            try:
                await call(stub)
                seen[name] = "OK"
            except grpc.aio.AioRpcError as error:
                seen[name] = error.code().name

    assert seen == expected


async def test_forward_says_what_to_do_instead(steered: Steered) -> None:
    async with steered.channel(Service.ORCHESTRATOR) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await CALLS["Forward"](orchestrator_pb2_grpc.ControlStub(channel))

    assert "connect to the replica that began the session" in str(caught.value.details())


async def test_a_probe_searches_and_runs_outside_the_limits_and_is_marked(steered: Steered) -> None:
    async with steered.client() as control:
        seen = await control.probe()

    name = Peer(Service.CONTROL, steered.deployment.uid).name
    marks = [(record.tool, record.transport, record.caller.subject) for record in steered.audit.tools]
    assert (seen.ok, seen.failed_step, seen.code, steered.runner.starts[0].code) == (True, "", "", PROBE)
    assert marks == [("search_docs", "probe", name), ("execute", "probe", name)]


async def test_a_probe_tells_the_step_that_failed_and_why(steered: Steered) -> None:
    async def broken(guest: ScriptedGuest) -> int:
        raise fail(Code.MEMORY_EXCEEDED, "too much")

    async def wrong(guest: ScriptedGuest) -> int:
        return 3

    async def no_docs(request: object) -> SearchAnswer:
        raise fail(Code.UPSTREAM_UNREACHABLE, "docs search is down")

    answers: list[ProbeAnswer] = []
    async with steered.client() as control:
        for steered.runner.script in (broken, wrong):
            answers.append(await control.probe())
        steered.gate.offer(SwitchState(execute=False, revision=1), by="test")
        answers.append(await control.probe())
        steered.docs.search = no_docs  # type: ignore[method-assign]
        answers.append(await control.probe())

    assert [(answer.ok, answer.failed_step, answer.code) for answer in answers] == [
        (False, "execute", "memory_exceeded"),
        (False, "execute", "script_error"),
        (False, "execute", "disabled"),
        (False, "search", "upstream_unreachable"),
    ]


async def test_the_answer_to_a_switch_is_the_state_in_force(steered: Steered) -> None:
    async with steered.client() as control:
        asked = await control.switches()
        taken = await control.set_switches(SwitchState(False, {"orders": False}, 5))
        ignored = await control.set_switches(SwitchState(True, {}, 4))
        known = await control.switches()

    off = SwitchState(False, {"orders": False}, 5)
    assert [asked, taken, ignored, known] == [SwitchState(), off, off, off]


@pytest.mark.parametrize(
    ("block", "code"),
    [
        (Block(("principal", ("https://issuer", "alice"))), Code.DENIED_BY_POLICY),
        (Block(("client", ("editor",))), Code.DENIED_BY_POLICY),
        (Block(("sid", ("s1",)), 1_001), Code.REAUTHORISE),
        (Block(("jti", ("t1",)), 999), None),
    ],
)
async def test_a_block_refuses_from_the_next_request_on(steered: Steered, block: Block, code: Code | None) -> None:
    async with steered.client() as control:
        await control.block(block)

    found = None
    try:
        steered.gate.require_caller(ALICE)
    except SandbridgeError as error:
        found = error.failure.code
    assert found is code


@pytest.mark.parametrize(
    "request_",
    [
        pb.BlockRequest(),
        pb.BlockRequest(client=""),
        pb.BlockRequest(principal=pb.Principal(issuer="i")),
        pb.BlockRequest(jti="x" * 1_001),
        pb.BlockRequest(sid="s", until=-1),
        pb.SetSwitchRequest(state=pb.SwitchState(sources={str(number): True for number in range(1_001)})),
    ],
)
async def test_what_names_nobody_or_too_much_is_refused(steered: Steered, request_: Any) -> None:
    async with steered.channel(Service.CONTROL) as channel:
        stub = orchestrator_pb2_grpc.ControlStub(channel)
        call = stub.Block if isinstance(request_, pb.BlockRequest) else stub.SetSwitch
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(request_, timeout=5)

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_an_address_where_nobody_answers_is_named_with_what_to_check(steered: Steered) -> None:
    steered.address = "127.0.0.1:1"
    async with steered.client() as control:
        with pytest.raises(SandbridgeError) as caught:
            await asyncio.wait_for(control.switches(), 10)

    assert "answers at 127.0.0.1:1" in caught.value.failure.message

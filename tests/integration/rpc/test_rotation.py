"""Certificates change while calls are under way: nothing breaks, and what is no longer trusted stays out."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from deployments import UID, Deployment
from guests import a_start
from rpc_calls import RUNNER_CALLS, channel, outcome
from rpc_serving import listening

from sandbridge.runner.v1 import runner_pb2_grpc
from sandbridge_kit.certificates import Peer
from sandbridge_kit.ports.runner import Answer, Ask, Finished, Returned, Run, RunEvent
from sandbridge_kit.rpc import Link, Service, TlsFiles, TlsSource
from sandbridge_kit.testing import ScriptedGuest, ScriptedRunner
from sandbridge_orchestrator.adapters.runner_client import RunnerClient
from sandbridge_runner.rpc import runner_server

POLL_S = 0.02


async def asks_twice(guest: ScriptedGuest) -> list[int]:
    """Ask, then ask again: the test changes the certificates in between."""
    return [(await guest.ask("timer", {"ms": number})).seq for number in (1, 2)]


class Pair:
    """A served runner and its client, whose files a test rewrites."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.server_files = deployment.files(Service.RUNNER)
        self.client_files = deployment.files(Service.ORCHESTRATOR)
        self.runner = ScriptedRunner(asks_twice)
        self.server_tls = TlsSource(self.server_files)
        self.address = ""
        self.client: RunnerClient

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[RunnerClient]:
        server, _ = runner_server(self.server_tls, self.runner)
        async with listening(server) as self.address:
            tls = TlsSource(self.client_files)
            link: Link[Any] = Link(self.address, Service.RUNNER, tls, runner_pb2_grpc.RunnerStub, poll_s=POLL_S)
            async with RunnerClient(self.address, tls, link=link) as client:
                yield client

    def renew(self, service: Service, *, trusted: bytes) -> None:
        """Issue from the deployment's authority of now, and trust `trusted`."""
        self.deployment.files(service, trusted=trusted)

    async def dial(self, files: TlsFiles, *, trusted: bytes) -> str:
        """Connect anew with these files and make a call."""
        async with channel(self.address, Peer(Service.RUNNER, UID), files, trusted=trusted) as line:
            return await outcome(line, RUNNER_CALLS["Run"])


async def until_ask(events: Any) -> Ask:
    async for event in events:
        if isinstance(event, Ask):
            return event
    raise AssertionError("no ask came")


async def finish(run: Run, events: Any, ask: Ask) -> RunEvent:
    """Answer this ask and all that follow; returns the end."""
    await run.answer(Answer(ask.seq, 0, {}))
    event: RunEvent = ask
    async for event in events:
        if isinstance(event, Ask):
            await run.answer(Answer(event.seq, 0, {}))
    return event


RETURNED = Finished(Returned(b"[1, 2]"))


async def test_both_sides_take_a_new_authority_in_the_middle_of_a_call(deployment: Deployment) -> None:
    pair = Pair(deployment)
    old = deployment.authority
    async with pair.connected() as client, client.open(a_start("")) as run:
        events = run.events()
        ask = await until_ask(events)

        new = deployment.authority = deployment.new_authority()
        both = old.certificate + new.certificate
        for service in (Service.RUNNER, Service.ORCHESTRATOR):
            pair.renew(service, trusted=both)
        await asyncio.sleep(3 * POLL_S)
        async with client.open(a_start("")) as second:
            later = second.events()
            second_end = await finish(second, later, await until_ask(later))
        overlap = [
            # A caller that has renewed, one that has not, and one that trusts only the new authority.
            await pair.dial(deployment.files(Service.ORCHESTRATOR, folder="renewed"), trusted=both),
            await pair.dial(deployment.files(Service.ORCHESTRATOR, folder="late", authority=old), trusted=both),
            await pair.dial(deployment.files(Service.ORCHESTRATOR, folder="early"), trusted=new.certificate),
        ]

        for service in (Service.RUNNER, Service.ORCHESTRATOR):
            pair.renew(service, trusted=new.certificate)
        await asyncio.sleep(3 * POLL_S)
        after = [
            await pair.dial(deployment.files(Service.ORCHESTRATOR, folder="renewed"), trusted=new.certificate),
            await pair.dial(deployment.files(Service.ORCHESTRATOR, folder="late", authority=old), trusted=both),
        ]
        async with client.open(a_start("")) as third:
            later = third.events()
            third_end = await finish(third, later, await until_ask(later))
        first_end = await finish(run, events, ask)

    assert ([first_end, second_end, third_end], overlap, after, client.is_connected) == (
        [RETURNED] * 3,
        ["OK"] * 3,
        ["OK", "UNAVAILABLE"],
        True,
    )


async def test_a_link_leaves_the_old_channel_to_the_calls_that_are_on_it_and_then_closes_it(
    deployment: Deployment,
) -> None:
    pair = Pair(deployment)
    async with pair.connected():
        tls = TlsSource(pair.client_files)
        link: Link[Any] = Link(pair.address, Service.RUNNER, tls, lambda line: line, poll_s=POLL_S)
        async with link:
            with link.use() as held:
                pair.renew(Service.ORCHESTRATOR, trusted=deployment.authority.certificate)
                await asyncio.wait_for(held.superseded.wait(), 5)
                with link.use() as new:
                    is_new = new.channel is not held.channel
                during = await outcome(held.channel, RUNNER_CALLS["Run"])
            await asyncio.sleep(POLL_S)
            with pytest.raises(Exception, match="closed"):
                await outcome(held.channel, RUNNER_CALLS["Run"])
            with link.use() as current:
                afterwards = await outcome(current.channel, RUNNER_CALLS["Run"])

    assert (is_new, during, afterwards) == (True, "OK", "OK")


async def test_files_that_cannot_be_used_leave_the_connections_as_they_are(deployment: Deployment) -> None:
    pair = Pair(deployment)
    async with pair.connected() as client:
        for files in (pair.server_files, pair.client_files):
            files.key.write_bytes(b"half a k")
        await asyncio.sleep(3 * POLL_S)
        async with client.open(a_start("")) as run:
            events = run.events()
            end = await finish(run, events, await until_ask(events))
        dialled = await pair.dial(
            deployment.files(Service.ORCHESTRATOR, folder="other"), trusted=deployment.authority.certificate
        )

    assert (end, dialled) == (RETURNED, "OK")

"""Only services of the same deployment can call, each only what it needs, and only the right server is spoken to."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import grpc
import pytest
from deployments import UID, Deployment
from guests import a_start
from rpc_calls import DOCS_CALLS, HEALTH_CALLS, RUNNER_CALLS, channel, outcome
from rpc_serving import listening, serve_docs, serve_runs

from sandbridge_docsearch.documents import Loaded
from sandbridge_docsearch.library import Library
from sandbridge_kit.certificates import Peer
from sandbridge_kit.errors import Code, SandbridgeError
from sandbridge_kit.rpc import Link, Service, TlsFiles, TlsSource
from sandbridge_kit.testing import ScriptedGuest, ScriptedRunner
from sandbridge_orchestrator.adapters.runner_client import RunnerClient
from sandbridge_runner.rpc import runner_server

OTHER_UID = "00000000-0000-4000-8000-000000000000"
ALL = {"runner": {**RUNNER_CALLS, **HEALTH_CALLS}, "docsearch": {**DOCS_CALLS, **HEALTH_CALLS}}
Outcomes = dict[str, dict[str, str]]


async def returns_one(guest: ScriptedGuest) -> int:
    return 1


@contextlib.asynccontextmanager
async def both(deployment: Deployment, loaded: Loaded) -> AsyncIterator[dict[str, str]]:
    library = Library()
    library.replace(loaded)
    runs = serve_runs(deployment, ScriptedRunner(returns_one))
    async with runs as runner, serve_docs(deployment, library) as docs:
        yield {"runner": runner, "docsearch": docs}


async def outcomes(addresses: dict[str, str], connect: Callable[[str, Peer], grpc.aio.Channel]) -> Outcomes:
    """Make every call of both services over the channel that `connect` gives."""
    found: Outcomes = {}
    for service, address in addresses.items():
        async with connect(address, Peer(Service(service), UID)) as line:
            found[service] = {name: await outcome(line, call) for name, call in ALL[service].items()}
    return found


def every(status: str, *, health: str | None = None) -> Outcomes:
    """The same status for every call; another one for the health service."""
    return {s: {n: (health or status) if n in HEALTH_CALLS else status for n in calls} for s, calls in ALL.items()}


async def test_the_orchestrator_of_the_deployment_may_call_everything(deployment: Deployment, loaded: Loaded) -> None:
    files = deployment.files(Service.ORCHESTRATOR)
    async with both(deployment, loaded) as addresses:
        found = await outcomes(addresses, lambda address, server: channel(address, server, files))

    assert found == every("OK")


@pytest.mark.parametrize("service", [Service.RUNNER, Service.DOCSEARCH, Service.CONTROL])
async def test_another_service_of_the_deployment_may_ask_for_health_alone(
    deployment: Deployment, loaded: Loaded, service: Service
) -> None:
    files = deployment.files(service)
    async with both(deployment, loaded) as addresses:
        found = await outcomes(addresses, lambda address, server: channel(address, server, files))

    assert found == every("PERMISSION_DENIED", health="OK")


REFUSED: dict[str, Callable[[Deployment], TlsFiles]] = {
    "another deployment's name": lambda own: own.files(Service.ORCHESTRATOR, uid=OTHER_UID),
    "no name of ours": lambda own: own.named("orchestrator.example.org"),
    "a wildcard": lambda own: own.named(f"*.{UID}.sandbridge.internal"),
    "two of our names": lambda own: own.named(*(Peer(s, UID).name for s in (Service.ORCHESTRATOR, Service.RUNNER))),
    "a name below ours": lambda own: own.named(f"x.{Peer(Service.ORCHESTRATOR, UID).name}"),
    "an unknown service": lambda own: own.named(f"admin.{UID}.sandbridge.internal"),
}


@pytest.mark.parametrize("kind", REFUSED)
async def test_a_certificate_of_the_same_authority_that_names_no_service_of_the_deployment_is_refused(
    deployment: Deployment, loaded: Loaded, kind: str
) -> None:
    files = REFUSED[kind](deployment)
    async with both(deployment, loaded) as addresses:
        found = await outcomes(addresses, lambda address, server: channel(address, server, files))

    assert found == every("PERMISSION_DENIED")


def of_a_foreign_authority(own: Deployment) -> TlsFiles:
    """The right names, signed by another deployment's authority; it trusts ours, so that only the server can refuse."""
    return own.files(Service.ORCHESTRATOR, authority=own.new_authority(), trusted=own.authority.certificate)


def expired(own: Deployment) -> TlsFiles:
    return own.files(Service.ORCHESTRATOR, lifetime=timedelta(seconds=-1))


@pytest.mark.parametrize("make", [of_a_foreign_authority, expired])
async def test_a_certificate_that_does_not_hold_ends_the_handshake(
    deployment: Deployment, loaded: Loaded, make: Callable[[Deployment], TlsFiles]
) -> None:
    files = make(deployment)
    async with both(deployment, loaded) as addresses:
        found = await outcomes(addresses, lambda address, server: channel(address, server, files))

    assert found == every("UNAVAILABLE")


async def test_a_caller_without_a_certificate_is_refused(deployment: Deployment, loaded: Loaded) -> None:
    trusted = deployment.authority.certificate
    async with both(deployment, loaded) as addresses:
        found = await outcomes(addresses, lambda address, server: channel(address, server, None, trusted=trusted))

    assert found == every("UNAVAILABLE")


async def test_plaintext_is_refused(deployment: Deployment, loaded: Loaded) -> None:
    async with both(deployment, loaded) as addresses:
        found = await outcomes(addresses, lambda address, server: grpc.aio.insecure_channel(address))

    assert found == every("UNAVAILABLE")


WRONG_SERVERS: dict[str, Callable[[Deployment], TlsFiles]] = {
    "another service": lambda own: own.files(Service.DOCSEARCH),
    "another deployment": lambda own: own.files(Service.RUNNER, uid=OTHER_UID),
    "a foreign authority": lambda own: own.files(
        Service.RUNNER, authority=own.new_authority(), trusted=own.authority.certificate
    ),
    "expired": lambda own: own.files(Service.RUNNER, lifetime=timedelta(seconds=-1)),
}


@pytest.mark.parametrize("kind", WRONG_SERVERS)
async def test_a_server_that_is_not_the_one_meant_gets_no_script(deployment: Deployment, kind: str) -> None:
    runner = ScriptedRunner(returns_one)
    server, _ = runner_server(TlsSource(WRONG_SERVERS[kind](deployment)), runner)
    tls = TlsSource(deployment.files(Service.ORCHESTRATOR))
    async with listening(server) as address, RunnerClient(address, tls) as client:
        with pytest.raises(SandbridgeError) as error:
            async with client.open(a_start("return 1")):
                pass

    assert (error.value.failure.code, runner.starts, client.is_connected) == (Code.SANDBOX_LOST, [], False)


async def test_a_link_says_whether_the_service_is_ready(deployment: Deployment) -> None:
    server, _ = runner_server(TlsSource(deployment.files(Service.RUNNER)), ScriptedRunner(returns_one))
    tls = TlsSource(deployment.files(Service.ORCHESTRATOR))
    async with listening(server) as address, Link(address, Service.RUNNER, tls, lambda line: line) as link:
        said = [await link.check_health()]
        await server.set_serving(False)
        said.append(await link.check_health())
        await server.stop()
        said.append(await link.check_health())

    assert said == [True, False, False]

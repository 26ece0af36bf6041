"""The orchestrator process: its neighbours, the MCP edge and the control port, built in order and closed in reverse."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib.metadata import version

import structlog

from sandbridge_kit.audit.trail import Trail
from sandbridge_kit.config import Deployment, SettingsError
from sandbridge_kit.errors import Code, Failure
from sandbridge_kit.lifetime import Lifetime
from sandbridge_kit.memory import settle
from sandbridge_kit.rpc import RpcServer, TlsSource
from sandbridge_openapi.model import Document
from sandbridge_orchestrator.access import Access, access_of
from sandbridge_orchestrator.adapters.admission import Slots
from sandbridge_orchestrator.adapters.audit import JsonAudit, audit_stream
from sandbridge_orchestrator.adapters.docs_client import DocsClient
from sandbridge_orchestrator.adapters.runner_client import RunnerClient
from sandbridge_orchestrator.api_keys import Secrets
from sandbridge_orchestrator.composition import Neighbours, composed
from sandbridge_orchestrator.core.limits import Limits
from sandbridge_orchestrator.deployment import LoadedApi, limits_of, loaded_api, needs_place, served_api
from sandbridge_orchestrator.edge.introduction import Introduction, instructions, introduction_of
from sandbridge_orchestrator.edge.listener import HttpServer, listen, own_addresses
from sandbridge_orchestrator.edge.opening import Opening
from sandbridge_orchestrator.edge.server import Identity
from sandbridge_orchestrator.entrance import Entrance, entrance_of
from sandbridge_orchestrator.gate import ControlledGate
from sandbridge_orchestrator.policy_file import follow_policy_file, read_policy_file
from sandbridge_orchestrator.rpc import control_server
from sandbridge_orchestrator.runners import QueueSettings, Runners
from sandbridge_orchestrator.service import Orchestrator
from sandbridge_orchestrator.settings import OrchestratorSettings, banners, first_state
from sandbridge_orchestrator.switch_file import follow_switch_file

log = structlog.get_logger(__name__)

_TELL_S = 3.0
"""Longest time for telling clients that their runs were ended."""
_HTTP_GRACE_S = 2
_STOPPING = Failure(
    Code.CANCELLED, "The run was ended because this server is stopping.", hint="Run it again in a moment."
)
_SWITCHED_OFF = Failure(Code.DISABLED, "The run was ended because execute was switched off.")


@dataclass(frozen=True, slots=True)
class Served:
    """What is served, and to whom."""

    deployment: Deployment
    keys: Mapping[str, str]
    access: Access
    entrance: Entrance


@dataclass(kw_only=True, slots=True)
class Replica:
    """One orchestrator process, as its edge and its control port see it."""

    deployment: Deployment
    limits: Limits
    keys: Mapping[str, str]
    entrance: Entrance
    orchestrator: Orchestrator
    runners: Runners
    gate: ControlledGate
    introduction: Introduction
    on_introduction: Callable[[Introduction], None] = lambda introduction: None
    """Called with each new one."""

    @property
    def is_open(self) -> bool:
        """True once there is a catalogue to serve."""
        return bool(self.introduction.apis)

    @property
    def is_ready(self) -> bool:
        """True while runs can be taken: a catalogue came from docs search, a runner answers, the switches are known."""
        return self.is_open and self.runners.reachable > 0 and self.gate.is_known and not self.gate.is_stopping

    def take_over(self, documents: Mapping[str, Document]) -> None:
        """Serve these documents from now on; runs under way keep those they began with."""
        loaded = tuple(self._loaded(documents))
        if not loaded:
            return
        self.orchestrator.serve_apis({api.name: served_api(api) for api in loaded})
        self.introduce()
        # Beside the call that brought the documents: it holds their text until it returns.
        asyncio.get_running_loop().call_soon(settle)
        log.info("catalogue_served", digests={api.name: api.document.digest for api in loaded})

    def introduce(self) -> None:
        """Tell clients at their next first contact what is served and not hidden now."""
        documents = {name: api.document for name, api in self.orchestrator.apis.items()}
        self.introduction = introduction_of(documents, self.limits, hidden=self.orchestrator.policy.hidden)
        self.on_introduction(self.introduction)

    def _loaded(self, documents: Mapping[str, Document]) -> Iterator[LoadedApi]:
        for settings in self.deployment.apis:
            document = documents.get(settings.name)
            if document is None:
                log.warning("api_not_served", api=settings.name, reason="docs search does not have its document")
                continue
            try:
                yield loaded_api(settings, document, has_key=needs_place(settings, self.keys))
            except SettingsError as error:
                log.error("api_not_served", api=settings.name, reason=str(error))


async def serve(settings: OrchestratorSettings, deployment: Deployment, secrets: Secrets) -> None:
    """Serve until a signal; runs under way finish within the grace, then they are ended, each with its reason.

    Raises TlsError, SettingsError or OSError for settings that cannot be.
    """
    lifetime = Lifetime()
    for banner in banners(settings, deployment, platform=sys.platform):
        log.warning("banner", text=banner)
    tls = TlsSource(settings.tls)
    deployment = _with_policy(deployment, settings)
    listener = listen(settings.host, settings.port)
    async with AsyncExitStack() as stack:
        stack.callback(listener.close)
        audit = stack.enter_context(audit_stream(settings.audit_file, deployment.audit, stdout_is_free=True))
        signs_in = deployment.auth is not None
        access = await stack.enter_async_context(
            access_of(deployment, secrets, signs_in=signs_in, hosted=settings.mode == "hosted")
        )
        entrance = entrance_of(deployment, access, JsonAudit(audit))
        replica = await _started(stack, settings, Served(deployment, secrets.api_keys, access, entrance), tls, audit)
        control = control_server(tls, replica.orchestrator, replica.gate)
        control_port = await control.start(settings.address)
        stack.push_async_callback(control.stop)
        await control.set_serving(True)
        port = listener.getsockname()[1]
        hosts = own_addresses(settings.host, port)
        http = HttpServer(_app(replica, hosts), grace_s=_HTTP_GRACE_S)
        serving = asyncio.create_task(http.serve(sockets=[listener]))
        log.info("listening", url=f"http://{hosts[0]}/mcp", control_port=control_port, name=tls.current.peer.name)
        settle()
        asked = asyncio.create_task(lifetime.asked_to_stop())
        stack.push_async_callback(_ended, asked)
        await asyncio.wait({serving, asked}, return_when=asyncio.FIRST_COMPLETED)
        if not serving.done():
            await _finish(replica, control, lifetime, settings.grace_s)
            http.should_exit = True
        await serving
    log.info("stopped")


def _with_policy(deployment: Deployment, settings: OrchestratorSettings) -> Deployment:
    if settings.policy_file is None:
        return deployment
    if deployment.policy is not None:
        raise SettingsError("The policy stands in the config file and in the policy file; keep one of them.")
    return deployment.model_copy(update={"policy": read_policy_file(settings.policy_file)})


async def _started(
    stack: AsyncExitStack,
    settings: OrchestratorSettings,
    served: Served,
    tls: TlsSource,
    audit: Trail,
) -> Replica:
    deployment = served.deployment
    limits = limits_of(deployment)
    gate = ControlledGate(first_state(settings, deployment))
    runners = Runners(
        settings.discover,
        lambda address, on_status: RunnerClient(address, tls, on_status=on_status),
        QueueSettings(timeout_ms=deployment.sandbox.queue_ms, discover_s=settings.discover_s),
    )
    docs = DocsClient(settings.docs, tls, on_catalogue=lambda documents: replica.take_over(documents))
    # Whoever waits here does so for a sandbox, in the queue of `runners`: this bounds both together.
    neighbours = Neighbours(runners, docs, Slots(settings.most_runs, queue=0), gate)
    orchestrator = await stack.enter_async_context(
        composed(neighbours, apis={}, access=served.access, limits=limits, audit=audit)
    )
    replica = Replica(
        deployment=deployment,
        limits=limits,
        keys=served.keys,
        entrance=served.entrance,
        orchestrator=orchestrator,
        runners=runners,
        gate=gate,
        introduction=introduction_of({}, limits),
    )
    await stack.enter_async_context(docs)
    if settings.when_switched_off == "cancel":
        gate.listen(lambda state: None if state.execute else _end_runs(orchestrator, _SWITCHED_OFF))
    rules = served.access.rules
    if settings.policy_file is not None and rules is not None:
        watching = follow_policy_file(
            settings.policy_file, rules, every_s=settings.policy_poll_s, on_change=replica.introduce
        )
        stack.push_async_callback(_ended, asyncio.create_task(watching))
    if settings.switch_file is not None:
        following = asyncio.create_task(follow_switch_file(settings.switch_file, gate, every_s=settings.switch_poll_s))
        stack.push_async_callback(_ended, following)
    return replica


def _app(replica: Replica, hosts: list[str]) -> Opening:
    server = replica.entrance.server(
        replica.orchestrator,
        lambda: replica.introduction,
        identity=Identity(
            "sandbridge",
            replica.deployment.display_name or "Sandbridge",
            version("sandbridge-orchestrator"),
            replica.deployment.description,
        ),
        transport="http",
    )

    def renew(introduction: Introduction) -> None:
        # Read by the SDK at each first contact.
        server.instructions = instructions(introduction)
        server.title = replica.deployment.display_name or introduction.title

    replica.on_introduction = renew
    renew(replica.introduction)
    app = replica.entrance.app(server, lambda: replica.introduction, ready=lambda: replica.is_ready, hosts=hosts)
    return Opening(app, lambda: replica.is_open)


async def _finish(replica: Replica, control: RpcServer, lifetime: Lifetime, grace_s: float) -> None:
    replica.gate.stop()
    replica.runners.close()
    await control.set_serving(False)
    log.info("stopping", runs=replica.orchestrator.runs, grace_s=grace_s)
    if await lifetime.while_patient(_idle(replica.orchestrator, grace_s)):
        return
    _end_runs(replica.orchestrator, _STOPPING)
    await _idle(replica.orchestrator, _TELL_S)


async def _idle(orchestrator: Orchestrator, within_s: float) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await orchestrator.idle.wait()
            return True
    return False


def _end_runs(orchestrator: Orchestrator, failure: Failure) -> None:
    ended = orchestrator.cancel_runs(failure)
    if ended:
        log.warning("runs_ended", runs=ended, reason=failure.message)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])

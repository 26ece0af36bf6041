"""Every service in one process: built in order, closed in reverse."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from sandbridge_docsearch.service import CatalogueSearch
from sandbridge_kit.audit.trail import Trail
from sandbridge_kit.config import SandboxSettings
from sandbridge_kit.errors import Code, SandbridgeError, fail
from sandbridge_kit.ports.runner import RunLimits
from sandbridge_local.catalogues import catalogue_of
from sandbridge_local.engines import chosen_engine, reach_of
from sandbridge_local.settings import Settings
from sandbridge_local.typecheck.checker import TypeChecker, found_compiler
from sandbridge_orchestrator.access import Access
from sandbridge_orchestrator.adapters.admission import Slots
from sandbridge_orchestrator.composition import Neighbours
from sandbridge_orchestrator.composition import composed as behind_the_edge
from sandbridge_orchestrator.core.switches import SwitchState
from sandbridge_orchestrator.deployment import LoadedApi, limits_of, served_api
from sandbridge_orchestrator.edge.introduction import Introduction, introduction_of
from sandbridge_orchestrator.gate import ControlledGate
from sandbridge_orchestrator.service import Orchestrator
from sandbridge_runner.engines.base import Engine
from sandbridge_runner.service import PoolRunner


@dataclass(frozen=True, slots=True)
class Product:
    """What a transport serves."""

    orchestrator: Orchestrator
    introduction: Introduction
    """What clients are told at first contact."""

    @property
    def ready(self) -> bool:
        """True while scripts can be run."""
        status = self.orchestrator.runner.status()
        return status.idle_spares > 0 or status.free_slots > 0


@contextlib.asynccontextmanager
async def composed(
    settings: Settings, access: Access, apis: tuple[LoadedApi, ...], audit: Trail
) -> AsyncIterator[Product]:
    """Start everything behind the transports; leaving stops it, sandboxes first. Raises `sandbox_lost`."""
    limits = limits_of(settings)
    sandbox = settings.sandbox
    reach = reach_of(settings.egress.authority, (api.origin for api in apis if api.origin is not None))
    engine = functools.partial(chosen_engine, sandbox, reach=reach)
    documents = {api.name: api.document for api in apis}
    compiler = found_compiler(sandbox.typescript)
    checker = None if compiler is None else TypeChecker(compiler, documents)
    neighbours = Neighbours(
        runner=started(engine, sandbox, limits.run),
        docs=CatalogueSearch(catalogue_of(settings, apis)),
        admission=Slots(sandbox.concurrency, queue_timeout_ms=sandbox.queue_ms),
        gate=ControlledGate(SwitchState(execute=not settings.execute_disabled)),
        checker=checker,
    )
    served = {api.name: served_api(api) for api in apis}
    async with contextlib.AsyncExitStack() as stack:
        if checker is not None:
            stack.callback(checker.close)
        edge = behind_the_edge(neighbours, apis=served, access=access, limits=limits, audit=audit)
        orchestrator = await stack.enter_async_context(edge)
        hidden = access.policy.hidden
        told = introduction_of(documents, limits, checks_types=checker is not None, hidden=hidden)
        yield Product(orchestrator, told)


@contextlib.asynccontextmanager
async def started(
    engine: Callable[[], Engine], sandbox: SandboxSettings, ceilings: RunLimits
) -> AsyncIterator[PoolRunner]:
    """Start sandboxes of an engine; leaving stops them. Raises `sandbox_lost` with the engine's own reason."""
    try:
        runner = PoolRunner(engine(), slots=sandbox.concurrency, spares=sandbox.pool_size, ceilings=ceilings)
        await runner.start()
    except (OSError, ValueError, SandbridgeError) as error:
        raise fail(
            Code.SANDBOX_LOST,
            f"Sandboxes do not start here: {start_trouble(error)}.",
            hint="`sandbridge doctor` says what works on this machine and what is missing.",
        ) from None
    try:
        yield runner
    finally:
        await runner.stop()


def start_trouble(error: Exception) -> str:
    """Return why an engine did not start, in its own words."""
    return error.failure.message if isinstance(error, SandbridgeError) else str(error)

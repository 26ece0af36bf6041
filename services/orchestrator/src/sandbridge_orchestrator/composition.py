"""The orchestrator with its adapters: built in order, closed in reverse."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from sandbridge_kit.audit.trail import Trail
from sandbridge_kit.ports.docs import DocsSearch
from sandbridge_kit.ports.runner import Runner
from sandbridge_orchestrator.access import Access
from sandbridge_orchestrator.adapters.audit import JsonAudit
from sandbridge_orchestrator.adapters.fair_share import FairShare
from sandbridge_orchestrator.adapters.journal import NoJournal
from sandbridge_orchestrator.adapters.results import MemoryResults
from sandbridge_orchestrator.adapters.sender import Sender
from sandbridge_orchestrator.core.catalogue import Api
from sandbridge_orchestrator.core.limits import Limits
from sandbridge_orchestrator.ports import Admission, Gate, TypeChecker
from sandbridge_orchestrator.service import Orchestrator


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What differs between one process with everything and a process of its own."""

    runner: AbstractAsyncContextManager[Runner]
    """Entered last and left first: sandboxes end before anything that they use."""
    docs: DocsSearch
    admission: Admission
    gate: Gate
    checker: TypeChecker | None = None


@contextlib.asynccontextmanager
async def composed(
    neighbours: Neighbours, *, apis: Mapping[str, Api], access: Access, limits: Limits, audit: Trail
) -> AsyncIterator[Orchestrator]:
    """Give an orchestrator that serves `apis`; leaving ends its sandboxes and connections, and removes what it kept.

    Raises what entering the runner raises.
    """
    async with contextlib.AsyncExitStack() as stack:
        results = MemoryResults()
        stack.callback(results.close)
        sender = Sender(limits)
        stack.push_async_callback(sender.close)
        records = JsonAudit(audit)
        await stack.enter_async_context(records.checkpoints())
        runner = await stack.enter_async_context(neighbours.runner)
        yield Orchestrator(
            runner=runner,
            docs=neighbours.docs,
            apis=apis,
            policy=access.policy,
            credentials=access.credentials,
            admission=_admission(neighbours.admission, access, limits),
            results=results,
            journal=NoJournal(),
            audit=records,
            sender=sender,
            limits=limits,
            gate=neighbours.gate,
            checker=neighbours.checker,
        )


def _admission(places: Admission, access: Access, limits: Limits) -> Admission:
    # Where nobody signs in there is one caller, who has all of it.
    return places if access.sign_in is None else FairShare(places, limits.caller)

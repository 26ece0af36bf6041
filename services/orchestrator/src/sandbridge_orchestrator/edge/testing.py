"""A scripted code mode and an introduction, for tests of everything in front of the service."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from sandbridge_kit.errors import Code, Failure
from sandbridge_kit.identity import Caller
from sandbridge_kit.ports.docs import SearchAnswer, SearchRequest
from sandbridge_orchestrator.core.outcome import ExecuteRequest, RunOutcome
from sandbridge_orchestrator.edge.introduction import ApiSummary, Introduction, StatedLimits
from sandbridge_orchestrator.edge.server import Progress
from sandbridge_orchestrator.ports import Kept

INTRODUCTION = Introduction(
    (ApiSummary("api", "Orders", 12, ("orders", "customers")),), StatedLimits(30_000, 256, 100, 8, 40_000)
)


@dataclass
class ScriptedCodeMode:
    """Answers with what it was given; an exception is raised, an endless one waits to be cancelled."""

    outcome: RunOutcome | Exception | None = None
    asked: list[object] = field(default_factory=list)
    refusals: list[tuple[str, Code, str]] = field(default_factory=list)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)

    async def search(self, caller: Caller, request: SearchRequest, *, transport: str) -> SearchAnswer:
        self.asked.append((caller, request, transport))
        body = {"outcome": "hits", "cards": [{"id": "orders.list"}], "more": [], "total": 1, "types": {}}
        return SearchAnswer("hits", body, "# orders.list", 1)

    async def execute(
        self, caller: Caller, request: ExecuteRequest, *, transport: str, progress: Progress | None = None
    ) -> RunOutcome:
        self.asked.append((caller, request, transport))
        if isinstance(self.outcome, Exception):
            raise self.outcome
        if self.outcome is None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        assert self.outcome is not None
        if progress:
            await progress(1, "1 API call")
        return self.outcome

    async def refused(self, caller: Caller, tool: str, failure: Failure, *, transport: str) -> None:
        self.refusals.append((tool, failure.code, transport))

    async def kept(self, caller: Caller, handle: str) -> Kept | None:
        self.asked.append((caller, handle))
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return Kept(handle, "application/json", b"[1]") if handle == "h1" else None

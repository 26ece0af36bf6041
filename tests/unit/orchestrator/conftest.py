"""An orchestrator whose every neighbour is scripted."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from sandbridge_kit.identity import LOCAL_CALLER, Caller
from sandbridge_kit.ports.docs import SearchAnswer
from sandbridge_kit.testing import Script, ScriptedRunner
from sandbridge_openapi.document import load
from sandbridge_openapi.model import Document
from sandbridge_orchestrator.adapters.admission import Slots
from sandbridge_orchestrator.adapters.credentials import StaticKeys
from sandbridge_orchestrator.adapters.results import MemoryResults
from sandbridge_orchestrator.core.answers import Received
from sandbridge_orchestrator.core.catalogue import Api
from sandbridge_orchestrator.core.limits import Limits
from sandbridge_orchestrator.core.outcome import ExecuteRequest, RunOutcome
from sandbridge_orchestrator.service import Orchestrator
from sandbridge_orchestrator.testing import (
    MemoryAudit,
    MemoryJournal,
    Respond,
    ScriptedDocs,
    ScriptedPolicy,
    ScriptedSender,
)

KEY = "c4n4ry-s3cr3t-k3y"

DOCUMENT: Mapping[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Orders", "version": "1"},
    "servers": [{"url": "https://api.example.com/v1"}],
    "security": [{"key": []}],
    "paths": {
        "/orders": {
            "get": {
                "operationId": "orders.list",
                "parameters": [
                    {"name": "page", "in": "query", "schema": {"type": "integer"}},
                    {"name": "per_page", "in": "query", "schema": {"type": "integer", "maximum": 100}},
                ],
                "responses": {"200": {"description": "ok"}},
            },
            "post": {
                "operationId": "orders.create",
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"type": "object", "required": ["sku"]}}},
                },
                "responses": {"201": {"description": "made"}},
            },
        },
        "/orders/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
            "get": {"operationId": "orders.get", "responses": {"200": {"description": "ok"}}},
            "delete": {"operationId": "orders.delete", "responses": {"204": {"description": "gone"}}},
        },
        "/health": {"get": {"operationId": "health", "tags": ["ops"], "security": [], "responses": {}}},
        "/elsewhere": {
            "servers": [{"url": "https://files.example.com"}],
            "get": {"operationId": "files.elsewhere", "responses": {}},
        },
    },
    "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
}


def ok(body: Any = None, status: int = 200, headers: Mapping[str, str] | None = None) -> Received:
    """A JSON response."""
    given = {"content-type": "application/json", **(headers or {})}
    return Received(status, tuple(given.items()), json.dumps({"ok": True} if body is None else body).encode())


@dataclass
class Bench:
    """The orchestrator and its neighbours."""

    orchestrator: Orchestrator
    runner: ScriptedRunner
    audit: MemoryAudit
    sender: ScriptedSender
    policy: ScriptedPolicy
    journal: MemoryJournal
    results: MemoryResults

    async def execute(self, code: str = "return 1", caller: Caller = LOCAL_CALLER, **members: Any) -> RunOutcome:
        """Run the script."""
        return await self.orchestrator.execute(caller, ExecuteRequest(code, **members), transport="stdio")

    def decisions(self) -> list[tuple[str, str, str]]:
        """Operation, decision and outcome of every call in the audit trail."""
        return [(call.operation, call.decision, call.outcome) for call in self.audit.calls]


@pytest.fixture(scope="session")
def document() -> Document:
    """The orders API."""
    return load(json.dumps(DOCUMENT).encode())


@pytest.fixture
def bench(document: Document) -> Iterator[Callable[..., Bench]]:
    """Make an orchestrator: `bench(script, respond=…, limits=…, verdicts=…, …)`."""
    made: list[Bench] = []

    def make(script: Script, *, respond: Respond = lambda _: ok(), **changes: Any) -> Bench:
        ids = itertools.count(1)
        audit, sender = MemoryAudit(), ScriptedSender(respond, changes.pop("addresses", {}))
        policy = ScriptedPolicy(changes.pop("verdicts", {}))
        journal = MemoryJournal(changes.pop("replayed", {}))
        runner = ScriptedRunner(script)
        results = MemoryResults(now_ms=lambda: 0.0, new_handle=lambda: f"handle-{next(ids)}")
        api = Api("api", document, "https://api.example.com/v1", **changes.pop("api", {}))
        members: dict[str, Any] = {
            "runner": runner,
            "docs": ScriptedDocs(SearchAnswer("hits", {"outcome": "hits"}, "text", 1)),
            "apis": {"api": api},
            "policy": policy,
            "credentials": StaticKeys({"api": KEY}),
            "admission": Slots(4),
            "results": results,
            "journal": journal,
            "audit": audit,
            "sender": sender,
            "limits": Limits(),
            "now_ms": lambda: 1_700_000_000_000.0,
            "new_run_id": lambda: "run-1",
            "random_bytes": bytes,
        }
        orchestrator = Orchestrator(**{**members, **changes})
        made.append(Bench(orchestrator, runner, audit, sender, policy, journal, results))
        return made[-1]

    yield make
    for one in made:
        one.results.close()

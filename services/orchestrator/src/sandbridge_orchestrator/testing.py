"""The orchestrator's ports with behaviour that a test writes down: real implementations, nothing patched."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from sandbridge_kit.errors import Code, fail
from sandbridge_kit.identity import Caller
from sandbridge_kit.ports.docs import SearchAnswer, SearchRequest
from sandbridge_kit.ports.runner import Answer, Ask
from sandbridge_orchestrator.core.answers import Received
from sandbridge_orchestrator.ports import (
    Allow,
    AuditRecord,
    Call,
    CallAudit,
    IntentAudit,
    Outgoing,
    ToolAudit,
    Verdict,
)

Respond = Callable[[Outgoing], Awaitable[Received] | Received]
"""Answers one request of a `ScriptedSender`; may raise what `ports.HttpSender.send` may."""


@dataclass
class ScriptedPolicy:
    """Gives the verdict written for an operation's key, else Allow."""

    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    seen: list[Call] = field(default_factory=list)
    hidden: tuple[str, ...] = ()

    async def decide(self, caller: Caller, call: Call) -> Verdict:
        """Return the verdict for this call."""
        self.seen.append(call)
        return self.verdicts.get(call.key, Allow())


@dataclass
class MemoryAudit:
    """Keeps every record; refuses while `broken`."""

    records: list[AuditRecord] = field(default_factory=list)
    broken: bool = False

    async def ready(self) -> None:
        """Raise `audit_unavailable` while broken."""
        if self.broken:
            raise fail(Code.AUDIT_UNAVAILABLE, "The audit trail cannot be written.")

    async def write(self, record: AuditRecord) -> None:
        """Keep one record; raises `audit_unavailable` while broken."""
        await self.ready()
        self.records.append(record)

    @property
    def calls(self) -> list[CallAudit]:
        """The records of API calls."""
        return [record for record in self.records if isinstance(record, CallAudit)]

    @property
    def intents(self) -> list[IntentAudit]:
        """The records of calls that were about to be sent."""
        return [record for record in self.records if isinstance(record, IntentAudit)]

    @property
    def tools(self) -> list[ToolAudit]:
        """The records of tool calls."""
        return [record for record in self.records if isinstance(record, ToolAudit)]


@dataclass
class MemoryJournal:
    """Records every answer, and replays those it was given."""

    replayed: Mapping[int, Answer] = field(default_factory=dict)
    recorded: list[tuple[Ask, Answer]] = field(default_factory=list)

    async def record(self, run_id: str, ask: Ask, answer: Answer) -> None:
        """Keep one answered ask."""
        self.recorded.append((ask, answer))

    async def replay(self, run_id: str, ask: Ask) -> Answer | None:
        """Return the answer given for this number, if any."""
        return self.replayed.get(ask.seq)


@dataclass
class ScriptedSender:
    """An `HttpSender` whose hosts and answers a test writes down; the request counts as sent before the answer."""

    respond: Respond
    addresses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sent: list[Outgoing] = field(default_factory=list)

    async def resolve(self, host: str, port: int) -> tuple[str, ...]:
        """Return the addresses written for the host, else a public one."""
        return self.addresses.get(host, ("93.184.215.14",))

    async def send(
        self, outgoing: Outgoing, *, on_sent: Callable[[], None], reserve: Callable[[int], Awaitable[None]]
    ) -> Received:
        """Note the request and return the answer to it."""
        self.sent.append(outgoing)
        on_sent()
        answer = self.respond(outgoing)
        received = answer if isinstance(answer, Received) else await answer
        await reserve(len(received.body))
        return received


@dataclass
class ScriptedDocs:
    """A `DocsSearch` that gives one answer."""

    answer: SearchAnswer
    seen: list[SearchRequest] = field(default_factory=list)

    async def search(self, request: SearchRequest) -> SearchAnswer:
        """Return the answer."""
        self.seen.append(request)
        return self.answer

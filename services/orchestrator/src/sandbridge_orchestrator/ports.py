"""What the bridge needs from outside: six ports, each awaited at every call with the caller of now, and HTTP.

The services that it uses as well (`Runner`, `DocsSearch`) are in `sandbridge_kit.ports`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from sandbridge_kit.destination import Origin
from sandbridge_kit.errors import Failure
from sandbridge_kit.identity import Caller
from sandbridge_kit.ports.runner import Answer, Ask
from sandbridge_openapi.arguments import Request
from sandbridge_openapi.model import Operation
from sandbridge_orchestrator.core.answers import Received


@dataclass(frozen=True, slots=True)
class Call:
    """One API call about to be decided. `key` is the canonical `<api>:<dotted call>`."""

    run_id: str
    seq: int
    key: str
    operation: Operation
    request: Request
    arguments: Mapping[str, object] = field(default_factory=dict)
    undecided: frozenset[str] = frozenset()
    """Groups of arguments (`path`, `query`, `headers`, `cookies`) of which only the request knows the values."""


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may go. `revision` is that of the policy that decided."""

    rule: str = "default"
    revision: int | None = None


@dataclass(frozen=True, slots=True)
class Deny:
    """The call may not go. `rule` names the rule for the audit trail; `reason` is for the model."""

    rule: str
    reason: str
    revision: int | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """A person must decide first."""

    reason: str
    rule: str | None = None
    revision: int | None = None


Verdict: TypeAlias = Allow | Deny | Hold


class Policy(Protocol):
    """Decides each call."""

    async def decide(self, caller: Caller, call: Call) -> Verdict:
        """Return the verdict for this call of this caller, now."""
        ...

    @property
    def hidden(self) -> tuple[str, ...]:
        """Globs over canonical keys of operations that can be neither found nor called, now."""
        ...


@dataclass(frozen=True, slots=True, repr=False)
class Credential:
    """Secrets to place, by security scheme name or `placement.ANY_SCHEME`. Never printed."""

    values: Mapping[str, str]

    def __repr__(self) -> str:
        return "<credential>"


class Credentials(Protocol):
    """Holds what authenticates at the APIs."""

    async def credential_for(self, caller: Caller, api: str, origin: str) -> Credential | None:
        """Return the caller's credential for that origin, or None; raises `reauthorise` or `credential_error`."""
        ...

    def refused(self, caller: Caller, api: str) -> None:
        """Hear that the API answered 401 to the caller's credential."""
        ...

    def standing(self) -> tuple[str, ...]:
        """Return the secrets that are held all the time; they are kept out of logs, audit and results as well."""
        ...


class Gate(Protocol):
    """What is open now: switches and blocks. Asked at every tool call and again at every API call."""

    def require_caller(self, caller: Caller) -> None:
        """Raise `reauthorise` or `denied_by_policy` for a caller that an administrator has blocked."""
        ...

    def require_execute(self) -> None:
        """Raise `disabled` or `at_capacity` while no run may begin."""
        ...

    def require_source(self, api: str) -> None:
        """Raise `disabled` while the API is switched off."""
        ...

    @property
    def sources_off(self) -> tuple[str, ...]:
        """The APIs that are switched off."""
        ...


class Admission(Protocol):
    """Decides who may run now."""

    def admit(self, caller: Caller) -> AbstractAsyncContextManager[None]:
        """Hold one place for the run; raises `at_capacity`, `rate_limited` or `caller_busy`."""
        ...

    def spend(self, caller: Caller) -> None:
        """Count one request to an API; raises `rate_limited`."""
        ...


@dataclass(frozen=True, slots=True)
class Kept:
    """A result or file that is kept under a handle."""

    handle: str
    mime: str
    data: bytes
    name: str | None = None


class Results(Protocol):
    """Keeps what is too large for the model. A handle opens only for its owner."""

    async def keep(self, caller: Caller, data: bytes, *, mime: str, name: str | None = None) -> str:
        """Keep and return an unguessable handle; the owner's oldest entries go first when its share is full.

        Raises `output_exceeded` where it cannot be kept.
        """
        ...

    async def get(self, caller: Caller, handle: str) -> Kept | None:
        """Return what the handle holds, or None when it is unknown, expired or another owner's."""
        ...


class Journal(Protocol):
    """Remembers answers so that a held run can start again."""

    async def record(self, run_id: str, ask: Ask, answer: Answer) -> None:
        """Record one answered ask."""
        ...

    async def replay(self, run_id: str, ask: Ask) -> Answer | None:
        """Return the recorded answer for this ask of a run that starts again; raises `replay_diverged`."""
        ...


@dataclass(frozen=True, slots=True)
class ToolAudit:
    """One tool call, when it ended. `code` is cut to 8 KiB; `code_sha256` covers all of it."""

    tool: Literal["search_docs", "execute"]
    caller: Caller
    transport: str
    outcome: str
    duration_ms: float
    run_id: str | None = None
    code: str | None = None
    code_sha256: str | None = None
    query: str | None = None
    bytes_out: int = 0
    calls: int = 0
    starts: int | None = None
    """2 where the sandbox was lost before anything was sent and the run was started again."""


@dataclass(frozen=True, slots=True)
class CallAudit:
    """One API call, when it was settled: exactly one record. `path` has credentials masked.

    `decision` is allowed, denied, held, dry_run, replayed, refused (it never came to policy) or cancelled; `outcome`
    is `answered` or an error code.
    """

    run_id: str
    seq: int
    caller: Caller
    operation: str
    method: str
    host: str
    path: str
    decision: str
    outcome: str
    status: int | None
    duration_ms: float
    bytes_in: int
    attempts: int = 1
    rule: str | None = None
    credential_fingerprint: str | None = None
    start: int | None = None
    """2 for a call of a run that had been started again; its numbers begin at 1 again."""
    policy_revision: int | None = None


@dataclass(frozen=True, slots=True)
class IntentAudit:
    """A call that can change something, just before it is sent. Its `CallAudit`, with the same numbers, follows."""

    run_id: str
    seq: int
    caller: Caller
    operation: str
    method: str
    host: str
    path: str
    rule: str | None = None
    credential_fingerprint: str | None = None
    start: int | None = None
    policy_revision: int | None = None


@dataclass(frozen=True, slots=True)
class RefusalAudit:
    """A request that came to no tool: `tool` is what it named, `outcome` an error code. `caller` is None if unknown."""

    transport: str
    outcome: str
    caller: Caller | None = None
    tool: str | None = None
    reason: str | None = None
    source: str | None = None
    """The address that it came from, where the caller is not known by its token."""


AuditRecord: TypeAlias = ToolAudit | CallAudit | IntentAudit | RefusalAudit


class Audit(Protocol):
    """Writes the audit trail."""

    async def ready(self) -> None:
        """Raise `audit_unavailable` where a record could not be written now; asked before anything is sent."""
        ...

    async def write(self, record: AuditRecord) -> None:
        """Write one record; raises `audit_unavailable` where it cannot, and then nothing may be sent.

        An intent is on its way to the disk, or on it where that is set, when this returns.
        """
        ...


@dataclass(frozen=True, slots=True, repr=False)
class Outgoing:
    """One request on its way, with its credential; prints without it.

    `addresses` have been judged; the connection goes to one of them, in this order.
    """

    request: Request
    origin: Origin
    addresses: tuple[str, ...]
    timeout_s: float
    """For the whole exchange, body included."""

    def __repr__(self) -> str:
        return f"<{self.request.method} to {self.origin}>"


class Unreachable(Exception):
    """There is no complete response. `sent` is True where the request may have taken effect."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.sent = sent


class ResponseTooLarge(Exception):
    """The response is larger than allowed; the rest of it was not read."""


class HttpSender(Protocol):
    """The only way to the APIs."""

    async def resolve(self, host: str, port: int) -> tuple[str, ...]:
        """Return the addresses of a host; raises Unreachable where there are none."""
        ...

    async def send(
        self, outgoing: Outgoing, *, on_sent: Callable[[], None], reserve: Callable[[int], Awaitable[None]]
    ) -> Received:
        """Send once: no retry, no redirect, no cookie, no proxy. Raises Unreachable or ResponseTooLarge.

        `on_sent` is called before the first byte of the request leaves; `reserve` is awaited, at most once, with the
        bytes that a large response body may take, before it is read.
        """
        ...


class TypeChecker(Protocol):
    """Looks for mistakes in a script's types before it runs."""

    async def check(self, code: str) -> Failure | None:
        """Return what is wrong with the script; None where it may run."""
        ...

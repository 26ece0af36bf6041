"""The bridge: one ask of a script that goes to an API, from the ask to its answer.

The order of a call, each step in exactly one place:
call limit and eight at once → name → arguments → request → destination → journal → gate → policy → credential → audit
can be written → intent recorded → gate again → send, retry, follow → redact → answer.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import assert_never

from sandbridge_kit.destination import is_loopback, judged_addresses
from sandbridge_kit.errors import Code, SandbridgeError, fail
from sandbridge_kit.identity import Caller
from sandbridge_kit.ports.runner import Answer, Ask
from sandbridge_orchestrator.apart import apart
from sandbridge_orchestrator.budget import Room
from sandbridge_orchestrator.core.answers import Received, Reply, reply
from sandbridge_orchestrator.core.catalogue import Catalogue
from sandbridge_orchestrator.core.limits import Limits
from sandbridge_orchestrator.core.outcome import Question
from sandbridge_orchestrator.core.placement import Placed, place
from sandbridge_orchestrator.core.redaction import Redactor
from sandbridge_orchestrator.core.retry import retry_delay_ms
from sandbridge_orchestrator.ledger import ALLOWED, DENIED, DRY_RUN, HELD, REPLAYED, CallEntry, Ledger
from sandbridge_orchestrator.legs import Leg, leg_of_call, leg_of_fetch, named, redirected, resolved
from sandbridge_orchestrator.pages import NOT_SENT, page_reply, require_paging
from sandbridge_orchestrator.ports import (
    Admission,
    Allow,
    Audit,
    Call,
    Credentials,
    Deny,
    Gate,
    Hold,
    HttpSender,
    Journal,
    Outgoing,
    Policy,
    ResponseTooLarge,
    Unreachable,
)

_UNAUTHORIZED = 401


@dataclass(frozen=True, slots=True)
class Ports:
    """What a call needs from outside."""

    policy: Policy
    credentials: Credentials
    journal: Journal
    audit: Audit
    sender: HttpSender
    gate: Gate
    admission: Admission


@dataclass(frozen=True, slots=True, repr=False)
class RunContext:
    """What is the same for every call of one run. Never printed: it holds secrets."""

    run_id: str
    caller: Caller
    catalogue: Catalogue
    limits: Limits
    ports: Ports
    ledger: Ledger
    deadline: float
    """When the run's time is over, on the clock of `monotonic`, in seconds."""
    monotonic: Callable[[], float]
    now_ms: Callable[[], float]
    fingerprint_key: bytes
    standing: Redactor
    """Knows the secrets that are kept out of everything, whether used or not."""
    dry_run: bool = False

    @property
    def remaining_s(self) -> float:
        """Seconds left, at least a millisecond, so that a call that just begins gets its typed error."""
        return max(0.001, self.deadline - self.monotonic())


class CallHeld(Exception):
    """Policy wants a person to decide; the run ends here."""

    def __init__(self, question: Question) -> None:
        super().__init__(question.reason)
        self.question = question


class Replayed(Exception):
    """The journal has the answer."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


class Bridge:
    """All API calls of one run."""

    def __init__(self, context: RunContext) -> None:
        self.context = context
        self.ending = False
        """Once True nothing more is sent."""
        self._spent = 0
        self._at_once = asyncio.Semaphore(context.limits.calls_at_once)
        self._redactors: dict[tuple[str, ...], Redactor] = {}

    async def answer(self, call: ApiCall, room: Room) -> Reply:
        """Return the answer to an `api`, `fetch` or `page` ask.

        Raises SandbridgeError for what never reached the API, CallHeld and Replayed. Whatever happens, every request
        has its one audit record afterwards.
        """
        try:
            self.spend()
            async with self._at_once:
                call.begin()
                return await call.perform(room)
        except SandbridgeError as error:
            call.entry.outcome = error.failure.code.value
            raise
        except CallHeld:
            call.entry.outcome = Code.APPROVAL_REQUIRED.value
            raise
        except Replayed:
            raise
        except Exception:
            call.entry.outcome = Code.SANDBOX_LOST.value
            raise
        except asyncio.CancelledError:
            self.context.ledger.stop(call.entry)
            raise
        finally:
            await self.context.ledger.settle(call.entry)

    def spend(self) -> None:
        """Count one request; raises `call_limit` when the run has none left, `rate_limited` when the caller has."""
        if self._spent >= self.context.limits.calls:
            raise fail(
                Code.CALL_LIMIT,
                f"This run has made its {self.context.limits.calls} API calls (retries and redirects count).",
            )
        self.context.ports.admission.spend(self.context.caller)
        self._spent += 1

    def redactor(self, secrets: tuple[str, ...]) -> Redactor:
        """Return the redactor for an answer to a request with these secrets."""
        known = self._redactors.get(secrets)
        if known is None:
            known = self._redactors[secrets] = self.context.standing.adding(secrets)
        return known


@dataclass(slots=True)
class ApiCall:
    """One ask on its way. `entry` is the request that is under way now: a redirect opens a new one."""

    bridge: Bridge
    ask: Ask
    entry: CallEntry = field(init=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Every secret that this call has sent so far."""

    def __post_init__(self) -> None:
        self.entry = self.bridge.context.ledger.open(self.ask.seq, named(self.ask))
        if self.ask.kind == "fetch":
            # Kept where the fetch is refused: where a script tried to go is what its reader wants to know.
            self.entry.path = self._redactor().text(str(self.ask.head.get("url", "")))

    def begin(self) -> None:
        """Start the clock of the call: waiting for its turn does not count."""
        self.entry.started = self.bridge.context.monotonic()

    async def perform(self, room: Room) -> Reply:
        """Plan, send, follow redirects, and shape the answer for the kind of ask."""
        leg = await apart(len(self.ask.body), self._plan)
        received, answer = await self._request(leg, room)
        for _ in range(self.bridge.context.limits.redirects):
            following = None if received is None else redirected(leg, received)
            if following is None:
                return self._finished(leg, answer)
            leg = await self._next(following)
            received, answer = await self._request(leg, room)
        if received is not None and redirected(leg, received) is not None:
            most = self.bridge.context.limits.redirects
            raise fail(Code.EGRESS_DENIED, f"{leg.key} redirects more than {most} times.")
        return self._finished(leg, answer)

    def _plan(self) -> Leg:
        catalogue, hidden = self.bridge.context.catalogue, self.bridge.context.ports.policy.hidden
        if self.ask.kind == "fetch":
            leg = leg_of_fetch(catalogue, self.ask, hidden)
        else:
            served, operation = resolved(catalogue, self.ask, hidden)
            self.entry.operation = served.key(operation)
            self.entry.method, self.entry.path = operation.method, operation.path
            leg = leg_of_call(served, operation, self.ask)
            if self.ask.kind == "page":
                require_paging(leg)
        self._note(leg)
        size, most = len(leg.request.body or b""), self.bridge.context.limits.request_bytes
        if size > most:
            raise fail(Code.INVALID_ARGUMENTS, f"{leg.key}: body: {size:,} bytes as sent; the limit is {most:,} bytes.")
        return leg

    def _note(self, leg: Leg) -> None:
        self.entry.operation = leg.key
        self.entry.method, self.entry.host = leg.request.method, leg.origin.authority
        self.entry.path = self._redactor().text(leg.shown_path)

    def _redactor(self) -> Redactor:
        return self.bridge.redactor(self.secrets)

    async def _next(self, leg: Leg) -> Leg:
        if not leg.with_credential and self._redactor().text(leg.request.url) != leg.request.url:
            raise fail(Code.EGRESS_DENIED, f"{leg.key} redirects elsewhere with the credential in the URL.")
        # A followed redirect is a call of its own: counted, decided and recorded.
        await self.bridge.context.ledger.settle(self.entry)
        self.entry = self.bridge.context.ledger.open(self.ask.seq, leg.key)
        self.bridge.spend()
        self._note(leg)
        return leg

    async def _request(self, leg: Leg, room: Room) -> tuple[Received | None, Reply]:
        context = self.bridge.context
        addresses = await self._addresses(leg)
        replayed = await context.ports.journal.replay(context.run_id, self.ask)
        await self._decide(leg, replayed is not None)
        if replayed is not None:
            self.entry.decision = REPLAYED
            self.entry.status = replayed.head.get("status")
            raise Replayed(replayed)
        if context.dry_run and not leg.is_safe:
            if self.entry.decision != HELD:
                self.entry.decision = DRY_RUN
            self.entry.status = NOT_SENT
            return None, Reply({"status": NOT_SENT, "headers": {}})
        placed = await self._with_credential(leg, addresses)
        await context.ports.audit.ready()
        self._still_wanted()
        await room.swap(len(placed.request.body or b""))
        if not leg.is_safe:
            await context.ledger.intend(self.entry)
            self._still_wanted()
        received = await self._send(leg, placed, addresses, room)
        self.entry.status, self.entry.size = received.status, len(received.body)
        if received.status == _UNAUTHORIZED and placed.secrets:
            context.ports.credentials.refused(context.caller, leg.served.name)
        return received, reply(received, self._redactor())

    async def _addresses(self, leg: Leg) -> tuple[str, ...]:
        try:
            found = await self.bridge.context.ports.sender.resolve(leg.origin.host, leg.origin.port)
        except Unreachable as error:
            raise self._unreachable(leg, error) from None
        return judged_addresses(leg.origin, found, leg.served.api.allow_private)

    async def _decide(self, leg: Leg, answered_before: bool) -> None:
        context = self.bridge.context
        self._require_open(leg)
        call = Call(
            context.run_id, self.ask.seq, leg.key, leg.operation, leg.request, leg.decided_arguments, leg.undecided
        )
        verdict = await context.ports.policy.decide(context.caller, call)
        self.entry.rule, self.entry.policy_revision = verdict.rule, verdict.revision
        match verdict:
            case Deny(reason=reason):
                self.entry.decision = DENIED
                raise fail(Code.DENIED_BY_POLICY, f"{leg.key} is denied: {reason}")
            case Hold() if context.dry_run and not leg.is_safe:
                # Not sent in any case: the script goes on, so that everything it would ask for is listed.
                self.entry.decision = HELD
            case Hold(reason=reason) if not answered_before:
                self.entry.decision = HELD
                # At once, so that no call that waits for its turn is sent after the hold.
                self.bridge.ending = True
                raise CallHeld(Question(leg.key, leg.request.method, self.entry.path, reason))
            case Allow():
                self.entry.decision = ALLOWED
            case Hold():
                # It was let through before the run was interrupted; its recorded answer is given, nothing is sent.
                self.entry.decision = ALLOWED
            case unknown:
                assert_never(unknown)

    async def _with_credential(self, leg: Leg, addresses: tuple[str, ...]) -> Placed:
        context = self.bridge.context
        if not leg.with_credential or not leg.operation.security:
            return Placed(leg.request)
        credential = await context.ports.credentials.credential_for(context.caller, leg.served.name, str(leg.origin))
        if credential is None:
            return Placed(leg.request)
        placed = place(leg.request, credential.values, leg.operation, leg.served.api.document.security_schemes)
        if placed.secrets and not self._is_confidential(leg, addresses):
            raise fail(
                Code.CREDENTIAL_ERROR,
                f"The API {leg.served.name} is served over plain http; its credential travels over https only.",
            )
        if placed.secrets:
            self.secrets = tuple(dict.fromkeys((*self.secrets, *placed.secrets)))
            digest = hmac.new(context.fingerprint_key, "\0".join(placed.secrets).encode(), hashlib.sha256)
            self.entry.fingerprint = digest.hexdigest()[:16]
        return placed

    @staticmethod
    def _is_confidential(leg: Leg, addresses: tuple[str, ...]) -> bool:
        return (
            leg.origin.scheme == "https"
            or leg.origin.authority in leg.served.api.allow_private
            or is_loopback(addresses)
        )

    def _require_open(self, leg: Leg) -> None:
        # Authority is what holds now, not what held when the run began.
        gate, context = self.bridge.context.ports.gate, self.bridge.context
        try:
            gate.require_caller(context.caller)
            gate.require_source(leg.served.name)
        except SandbridgeError:
            if not self.entry.was_sent:
                self.entry.decision, self.entry.rule = DENIED, "gate"
            raise

    def _still_wanted(self) -> None:
        if self.bridge.ending:
            self.entry.decision = Code.CANCELLED.value
            raise fail(Code.CANCELLED, "The run ended before this call was sent.")

    async def _send(self, leg: Leg, placed: Placed, addresses: tuple[str, ...], room: Room) -> Received:
        context = self.bridge.context
        limits = context.limits
        while True:
            self._require_open(leg)
            self.entry.attempts += 1
            outgoing = Outgoing(placed.request, leg.origin, addresses, context.remaining_s)
            try:
                received = await self._send_once(leg, outgoing, room)
            except Unreachable as error:
                # An idle connection that the API closed in the same moment: nothing is lost by one more try.
                if leg.is_safe and error.sent and self.entry.attempts == 1 and self._may_repeat():
                    continue
                raise self._unreachable(leg, error) from None
            delay = retry_delay_ms(
                method=leg.request.method,
                status=received.status,
                retry_after=received.header("retry-after"),
                attempt=self.entry.attempts,
                now_ms=context.now_ms(),
                remaining_ms=context.remaining_s * 1000,
            )
            if delay is None or self.entry.attempts >= limits.attempts or not self._may_repeat():
                return received
            await asyncio.sleep(delay / 1000)

    def _may_repeat(self) -> bool:
        if self.bridge.ending:
            return False
        try:
            self.bridge.spend()
        except SandbridgeError:
            return False
        return True

    async def _send_once(self, leg: Leg, outgoing: Outgoing, room: Room) -> Received:
        try:
            received = await self.bridge.context.ports.sender.send(outgoing, on_sent=self._mark_sent, reserve=room.swap)
        except ResponseTooLarge as error:
            self.entry.sent = False
            done = "" if leg.is_safe else " The call itself was made."
            raise fail(
                Code.RESPONSE_TOO_LARGE, f"The answer of {leg.key} is larger than allowed: {error}.{done}"
            ) from None
        self.entry.sent = False
        return received

    def _mark_sent(self) -> None:
        self.entry.sent = self.entry.was_sent = True

    def _unreachable(self, leg: Leg, error: Unreachable) -> SandbridgeError:
        if error.sent and not leg.is_safe:
            return fail(
                Code.OUTCOME_UNKNOWN,
                f"{leg.key} ({leg.request.method}) was sent, but {error.reason}; it may have taken effect.",
            )
        return fail(Code.UPSTREAM_UNREACHABLE, f"The API {leg.served.name} gave no answer: {error.reason}.")

    def _finished(self, leg: Leg, answer: Reply) -> Reply:
        match self.ask.kind:
            case "page":
                return page_reply(leg, answer, now_ms=self.bridge.context.now_ms())
            case "fetch":
                return Reply({**answer.head, "url": self._redactor().text(leg.request.url)}, answer.body)
            case _:
                return answer

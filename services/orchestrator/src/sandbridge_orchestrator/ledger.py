"""The calls of one run: what became of each, for the model and for the audit trail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sandbridge_kit.errors import Code
from sandbridge_kit.identity import Caller
from sandbridge_openapi.model import SAFE_METHODS
from sandbridge_orchestrator.core.outcome import CallRecord
from sandbridge_orchestrator.core.redaction import Redactor
from sandbridge_orchestrator.ports import Audit, CallAudit, IntentAudit

_PATH_CHARS = 2_000
_NAME_CHARS = 300
REFUSED = "refused"
ALLOWED = "allowed"
DENIED = "denied"
HELD = "held"
DRY_RUN = "dry_run"
REPLAYED = "replayed"
ANSWERED = "answered"


@dataclass(slots=True)
class CallEntry:
    """One API call while it is under way. `decision` and `outcome` are words of `CallAudit`."""

    seq: int
    operation: str
    started: float
    method: str = ""
    host: str = ""
    path: str = ""
    decision: str = REFUSED
    outcome: str = ANSWERED
    status: int | None = None
    size: int = 0
    attempts: int = 0
    rule: str | None = None
    policy_revision: int | None = None
    fingerprint: str | None = None
    sent: bool = False
    """True from just before the first byte of a request left until its answer was complete."""
    was_sent: bool = False
    """True from then on for good."""
    settled: bool = False
    duration_ms: float = 0.0

    @property
    def may_have_acted(self) -> bool:
        """True where an unsafe request left and no answer came."""
        return self.sent and self.method not in SAFE_METHODS


class Ledger:
    """Every call of one run, in the order asked; settles each exactly once."""

    def __init__(
        self,
        run_id: str,
        caller: Caller,
        audit: Audit,
        *,
        monotonic: Callable[[], float],
        standing: Redactor,
        start: int | None = None,
    ) -> None:
        """`start` is 2 for a run that is started again."""
        self._run_id = run_id
        self._caller = caller
        self._audit = audit
        self._monotonic = monotonic
        self._standing = standing
        self._start = start
        self.entries: list[CallEntry] = []

    def open(self, seq: int, operation: str) -> CallEntry:
        """Begin one call."""
        # A lone surrogate, which a script can write, could not be encoded on the way to the model.
        name = self._standing.text(operation)[:_NAME_CHARS].encode(errors="replace").decode()
        entry = CallEntry(seq, name, self._monotonic())
        self.entries.append(entry)
        return entry

    async def settle(self, entry: CallEntry) -> None:
        """End one call and write its audit record; a second time does nothing. Raises `audit_unavailable`."""
        if entry.settled:
            return
        entry.settled = True
        entry.duration_ms = (self._monotonic() - entry.started) * 1000
        entry.path = entry.path[:_PATH_CHARS].encode(errors="replace").decode()
        await self._audit.write(
            CallAudit(
                run_id=self._run_id,
                seq=entry.seq,
                caller=self._caller,
                operation=entry.operation,
                method=entry.method,
                host=entry.host,
                path=entry.path,
                decision=entry.decision,
                outcome=entry.outcome,
                status=entry.status,
                duration_ms=entry.duration_ms,
                bytes_in=entry.size,
                attempts=entry.attempts,
                rule=entry.rule,
                credential_fingerprint=entry.fingerprint,
                start=self._start,
                policy_revision=entry.policy_revision,
            )
        )

    async def intend(self, entry: CallEntry) -> None:
        """Record that this call is about to be sent; raises `audit_unavailable`, and then it must not be."""
        await self._audit.write(
            IntentAudit(
                run_id=self._run_id,
                seq=entry.seq,
                caller=self._caller,
                operation=entry.operation,
                method=entry.method,
                host=entry.host,
                path=entry.path[:_PATH_CHARS].encode(errors="replace").decode(),
                rule=entry.rule,
                credential_fingerprint=entry.fingerprint,
                start=self._start,
                policy_revision=entry.policy_revision,
            )
        )

    def stop(self, entry: CallEntry) -> None:
        """Note that a call ended without an answer because its run did."""
        if entry.may_have_acted:
            entry.outcome = Code.OUTCOME_UNKNOWN.value
        else:
            entry.outcome = Code.CANCELLED.value
            entry.decision = Code.CANCELLED.value if not entry.sent else entry.decision

    async def close(self) -> None:
        """End every call that nothing has ended: one whose run stopped before its turn came."""
        for entry in self.entries:
            if not entry.settled:
                self.stop(entry)
                await self.settle(entry)

    def records(self) -> tuple[CallRecord, ...]:
        """Return the calls as the model sees them."""
        return tuple(_record(entry) for entry in self.entries)

    def sent(self) -> tuple[CallEntry, ...]:
        """Return the calls of which at least the first byte was sent, whatever became of them."""
        return tuple(entry for entry in self.entries if entry.was_sent)

    def answered(self) -> tuple[CallEntry, ...]:
        """Return the calls that were sent and of which the whole answer came."""
        return tuple(entry for entry in self.sent() if entry.outcome == ANSWERED)

    def unknown(self) -> tuple[CallEntry, ...]:
        """Return the calls that may have taken effect though no answer came."""
        return tuple(entry for entry in self.entries if entry.outcome == Code.OUTCOME_UNKNOWN.value)


def _record(entry: CallEntry) -> CallRecord:
    # An end without an answer tells more than the decision that came before it.
    ended = entry.outcome in (Code.CANCELLED.value, Code.OUTCOME_UNKNOWN.value)
    return CallRecord(
        operation=entry.operation,
        method=entry.method,
        path=entry.path,
        status=entry.status,
        duration_ms=round(entry.duration_ms, 1),
        bytes=entry.size,
        decision=entry.outcome if ended else entry.decision,
    )

"""The two use cases, free of any transport: `search` and `execute`."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace

import orjson

from sandbridge_kit.errors import Code, Failure, SandbridgeError, fail
from sandbridge_kit.identity import Caller
from sandbridge_kit.ports.docs import DocsSearch, SearchAnswer, SearchRequest
from sandbridge_kit.ports.runner import Failed, Finished, Returned, Runner, Start
from sandbridge_orchestrator.apart import apart
from sandbridge_orchestrator.bridge import Ports, RunContext
from sandbridge_orchestrator.budget import ByteBudget
from sandbridge_orchestrator.core.catalogue import Api, Catalogue, catalogue_of
from sandbridge_orchestrator.core.limits import Limits
from sandbridge_orchestrator.core.outcome import (
    ExecuteRequest,
    Report,
    RunCancelled,
    RunFailed,
    RunHeld,
    RunOutcome,
    RunReturned,
    Truncated,
    outcome_code,
)
from sandbridge_orchestrator.core.redaction import NOTHING, Redactor
from sandbridge_orchestrator.core.results import compact, shape
from sandbridge_orchestrator.core.switches import SwitchState
from sandbridge_orchestrator.gate import ControlledGate
from sandbridge_orchestrator.ledger import CallEntry, Ledger
from sandbridge_orchestrator.ports import (
    Admission,
    Audit,
    Credentials,
    Gate,
    HttpSender,
    Journal,
    Kept,
    Policy,
    RefusalAudit,
    Results,
    ToolAudit,
    TypeChecker,
)
from sandbridge_orchestrator.progress import Progress, reporting
from sandbridge_orchestrator.running import RunSession

_AUDITED_CODE_BYTES = 8 * 1024
_MESSAGE_CHARS = 4_000
_CALLS_NAMED = 10
_TOOL_CHARS = 64
_SHORTEST_RESTART_MS = 100
"""With less time left than this a run is not started again."""
PROBE = "return 1 + 1"
"""What a probe runs."""


@dataclass(kw_only=True, slots=True, repr=False)
class Orchestrator:
    """Searches and runs scripts for callers. The functions at the end are its clocks and its randomness."""

    runner: Runner
    docs: DocsSearch
    apis: Mapping[str, Api]
    policy: Policy
    credentials: Credentials
    admission: Admission
    results: Results
    journal: Journal
    audit: Audit
    sender: HttpSender
    limits: Limits = field(default_factory=Limits)
    gate: Gate = field(default_factory=lambda: ControlledGate(SwitchState()))
    """The kill switch and the blocks; searches go on while `execute` is off."""
    checker: TypeChecker | None = None
    """Checks types where a caller asks for that; None where there is no compiler."""
    now_ms: Callable[[], float] = lambda: time.time() * 1000
    """Unix time in ms."""
    monotonic: Callable[[], float] = time.monotonic
    """Seconds; only differences matter."""
    new_run_id: Callable[[], str] = lambda: secrets.token_hex(12)
    random_bytes: Callable[[int], bytes] = secrets.token_bytes
    _catalogue: Catalogue = field(init=False)
    _budget: ByteBudget = field(init=False)
    _fingerprint_key: bytes = field(init=False)
    _standing: Redactor = field(init=False, default=NOTHING)
    _live: set[RunSession] = field(init=False, default_factory=set)
    _executing: int = field(init=False, default=0)
    idle: asyncio.Event = field(init=False, default_factory=asyncio.Event)
    """Set while no `execute` is being answered."""

    def __post_init__(self) -> None:
        self._catalogue = catalogue_of(self.apis)
        self._budget = ByteBudget(self.limits.in_flight_bytes)
        self._fingerprint_key = self.random_bytes(32)
        self.idle.set()

    def serve_apis(self, apis: Mapping[str, Api]) -> None:
        """Serve these APIs from now on; runs under way keep those they began with. Raises `egress_denied`."""
        self._catalogue = catalogue_of(apis)
        self.apis = apis

    async def search(self, caller: Caller, request: SearchRequest, *, transport: str) -> SearchAnswer:
        """Answer one question about the catalogue; raises SandbridgeError. Audited either way."""
        began = self.monotonic()
        outcome, size = Code.CANCELLED.value, 0
        try:
            self.gate.require_caller(caller)
            hidden = (*request.hidden, *self.policy.hidden, *(f"{api}:*" for api in self.gate.sources_off))
            answer = await self.docs.search(replace(request, hidden=hidden))
            outcome, size = answer.outcome, len(orjson.dumps(answer.structured))
            return answer
        except SandbridgeError as error:
            outcome = error.failure.code.value
            raise
        finally:
            await self.audit.write(
                ToolAudit(
                    tool="search_docs",
                    caller=caller,
                    transport=transport,
                    outcome=outcome,
                    duration_ms=(self.monotonic() - began) * 1000,
                    query=self._redactor().text(request.query[:_MESSAGE_CHARS]),
                    bytes_out=size,
                )
            )

    async def execute(
        self, caller: Caller, request: ExecuteRequest, *, transport: str, progress: Progress | None = None
    ) -> RunOutcome:
        """Run one script to its end.

        Raises SandbridgeError only for what was refused before the run began: `disabled`, `code_too_large`,
        `at_capacity` and its kin, `audit_unavailable`. Cancelling the task destroys the sandbox, records what became
        of every call, and raises CancelledError. Audited in every case.

        A run whose sandbox is lost before any API call was sent is started again, once.
        """
        return await self._audited(caller, request, transport, self.admission.admit(caller), progress)

    async def probe(self, caller: Caller) -> RunOutcome:
        """Run `PROBE` on the pool that everybody uses, outside the limits of callers; raises as `execute` does."""
        return await self._audited(caller, ExecuteRequest(PROBE), "probe", nullcontext(), None)

    def cancel_runs(self, failure: Failure) -> int:
        """End the runs under way with this failure, and return how many; each caller gets it as its outcome."""
        for session in self._live:
            session.end(failure)
        return len(self._live)

    @property
    def runs(self) -> int:
        """How many runs are under way, waiting ones not counted."""
        return len(self._live)

    async def _audited(
        self,
        caller: Caller,
        request: ExecuteRequest,
        transport: str,
        place: AbstractAsyncContextManager[None],
        progress: Progress | None,
    ) -> RunOutcome:
        attempt = _Attempt(self.new_run_id(), self.monotonic(), caller, self._catalogue)
        self._executing += 1
        self.idle.clear()
        try:
            self._require_acceptable(caller, request.code)
            await self.audit.ready()
            async with reporting(progress) as attempt.on_call:
                outcome = await self._run(self._start(request, attempt), attempt, place)
            attempt.outcome = outcome_code(outcome)
            return outcome
        except SandbridgeError as error:
            attempt.outcome = error.failure.code.value
            raise
        finally:
            try:
                await self.audit.write(self._record(request, attempt, transport))
            finally:
                self._executing -= 1
                if self._executing == 0:
                    self.idle.set()

    def _record(self, request: ExecuteRequest, attempt: _Attempt, transport: str) -> ToolAudit:
        return ToolAudit(
            tool="execute",
            caller=attempt.caller,
            transport=transport,
            outcome=attempt.outcome,
            duration_ms=(self.monotonic() - attempt.began) * 1000,
            run_id=attempt.run_id,
            code=self._shown(request.code),
            code_sha256=hashlib.sha256(_utf8(request.code)).hexdigest(),
            bytes_out=attempt.bytes_out,
            calls=attempt.calls,
            starts=attempt.starts,
        )

    async def refused(self, caller: Caller, tool: str, failure: Failure, *, transport: str) -> None:
        """Record a call that was refused before it came to a tool; what cannot be recorded is refused all the same."""
        named = self._redactor().text(tool[:_TOOL_CHARS]).encode(errors="replace").decode()
        with suppress(SandbridgeError):
            await self.audit.write(RefusalAudit(transport, failure.code.value, caller, named))

    async def kept(self, caller: Caller, handle: str) -> Kept | None:
        """Return what the caller keeps under a handle; None where it is unknown, expired or another owner's.

        Raises SandbridgeError for a caller that is blocked.
        """
        self.gate.require_caller(caller)
        return await self.results.get(caller, handle)

    def _require_acceptable(self, caller: Caller, code: str) -> None:
        self._require_open(caller)
        size = len(_utf8(code))
        if size > self.limits.code_bytes:
            limit = self.limits.code_bytes // 1024
            raise fail(Code.CODE_TOO_LARGE, f"The script has {size:,} bytes; the limit is {limit} KiB.")

    def _require_open(self, caller: Caller) -> None:
        self.gate.require_caller(caller)
        self.gate.require_execute()

    def _start(self, request: ExecuteRequest, attempt: _Attempt) -> Start:
        wall_ms = self.limits.run.wall_clock_ms
        if request.timeout_ms is not None:
            wall_ms = max(1, min(request.timeout_ms, wall_ms))
        return Start(
            run_id=attempt.run_id,
            code=_utf8(request.code).decode(),
            now_ms=int(self.now_ms()),
            seed=self.random_bytes(32),
            api_names=attempt.catalogue.names,
            limits=replace(self.limits.run, wall_clock_ms=wall_ms),
            catalog_digests=attempt.catalogue.digests,
            dry_run=request.dry_run,
            check=request.check,
        )

    async def _run(self, start: Start, attempt: _Attempt, place: AbstractAsyncContextManager[None]) -> RunOutcome:
        async with place:
            if start.check:
                await self._check_types(start.code)
            session, finished = await self._driven(start, attempt)
            if await self._is_lost_unsent(session, finished):
                # Same seed, same clock, the time that is left; nothing of the first start is told.
                attempt.starts = 2
                rest = replace(start.limits, wall_clock_ms=session.remaining_ms)
                session, finished = await self._driven(replace(start, limits=rest), attempt)
        try:
            await session.settle(finished)
        finally:
            await self._stopped(session, attempt)
        return await self._outcome(session, finished, attempt)

    async def _check_types(self, code: str) -> None:
        """Raise what is wrong with the script's types; nothing of it has run."""
        if self.checker is None:
            raise fail(
                Code.DISABLED, "Types are not checked before a run here.", hint="Run the script without `check`."
            )
        failure = await self.checker.check(code)
        if failure is not None:
            raise SandbridgeError(failure)

    async def _driven(self, start: Start, attempt: _Attempt) -> tuple[RunSession, Finished]:
        self._require_open(attempt.caller)
        async with self.runner.open(start) as run:
            # Asked again: there may have been a queue for a sandbox.
            self._require_open(attempt.caller)
            session = self._session(start, attempt)
            self._live.add(session)
            try:
                finished = await session.drive(run)
            except BaseException:
                await self._stopped(session, attempt)
                raise
            finally:
                self._live.discard(session)
        return session, finished

    @staticmethod
    async def _is_lost_unsent(session: RunSession, finished: Finished) -> bool:
        lost = isinstance(finished.outcome, Failed) and _is_lost(finished.outcome.failure)
        if not lost or session.gathered.questions or session.remaining_ms < _SHORTEST_RESTART_MS:
            return False
        # Stopped first: a call that was about to leave must not do so after it was found unsent.
        await session.stop()
        return not session.ledger.sent()

    async def _stopped(self, session: RunSession, attempt: _Attempt) -> None:
        await session.stop()
        attempt.calls = len(session.ledger.entries)

    def _session(self, start: Start, attempt: _Attempt) -> RunSession:
        standing = self._redactor()
        ledger = Ledger(
            attempt.run_id,
            attempt.caller,
            self.audit,
            monotonic=self.monotonic,
            standing=standing,
            start=attempt.starts,
        )
        context = RunContext(
            run_id=attempt.run_id,
            caller=attempt.caller,
            catalogue=attempt.catalogue,
            limits=self.limits,
            ports=Ports(
                self.policy, self.credentials, self.journal, self.audit, self.sender, self.gate, self.admission
            ),
            ledger=ledger,
            deadline=self.monotonic() + start.limits.wall_clock_ms / 1000,
            monotonic=self.monotonic,
            now_ms=self.now_ms,
            fingerprint_key=self._fingerprint_key,
            standing=standing,
            dry_run=start.dry_run,
        )
        return RunSession(context, start, self.results, self._budget, attempt.on_call)

    async def _outcome(self, session: RunSession, finished: Finished, attempt: _Attempt) -> RunOutcome:
        gathered = session.gathered
        report = Report(
            run_id=attempt.run_id,
            logs=tuple(gathered.logs),
            calls=session.ledger.records(),
            duration_ms=round((self.monotonic() - attempt.began) * 1000, 1),
        )
        if gathered.questions:
            return RunHeld(report, tuple(gathered.questions))
        match finished.outcome:
            case Failed(failure=failure):
                told = self._told(failure, session.ledger)
                return (RunCancelled if told.code is Code.CANCELLED else RunFailed)(report, told)
            case Returned(result=result):
                return await self._returned(report, result, session, attempt)

    async def _returned(self, report: Report, result: bytes, session: RunSession, attempt: _Attempt) -> RunOutcome:
        if len(result) > self.limits.run.result_bytes:
            most = self.limits.run.result_bytes // 1024
            return RunFailed(report, Failure(Code.OUTPUT_EXCEEDED, f"The result is larger than {most:,} KiB."))
        clean = self._redactor().data(result) or b"null"
        try:
            shaped = await apart(len(clean), shape, clean, limit=self.limits.result_chars)
        except ValueError:
            return RunFailed(report, Failure(Code.GUEST_EXITED, "The sandbox gave a result that is not JSON."))
        truncated = None
        if not shaped.whole:
            try:
                handle = await self.results.keep(attempt.caller, clean, mime="application/json")
            except SandbridgeError as error:
                return RunFailed(report, error.failure)
            truncated = Truncated(len(clean), handle)
        attempt.bytes_out = len(clean) if shaped.whole else len(_utf8(compact(shaped.value)))
        return RunReturned(report, shaped.value, truncated, tuple(session.gathered.files))

    def _told(self, failure: Failure, ledger: Ledger) -> Failure:
        message = self._redactor().text(failure.message)[:_MESSAGE_CHARS]
        hint = self._redactor().text(failure.hint)[:_MESSAGE_CHARS]
        unknown = ledger.unknown()
        answered = ledger.answered() if _is_lost(failure) else ()
        if (unknown or answered) and not message.endswith("."):
            message += "."
        if unknown:
            message += f" Sent without an answer, so they may have taken effect: {_listed(unknown)}."
        if answered:
            # Whoever runs the script again must know what the API has done already.
            message += f" Calls that were answered before: {_listed(answered)}."
            hint = hint or "Do not repeat calls that changed something: check the API, then run only what is missing."
        return replace(failure, message=message, hint=hint)

    def _shown(self, code: str) -> str:
        clean = self._redactor().text(code)
        return _utf8(clean)[:_AUDITED_CODE_BYTES].decode("utf-8", "ignore")

    def _redactor(self) -> Redactor:
        # The same one again as long as no secret is new; one that was removed stays known, which does no harm.
        self._standing = self._standing.adding(self.credentials.standing())
        return self._standing


@dataclass(slots=True)
class _Attempt:
    """One call of `execute`, as its audit record will tell it."""

    run_id: str
    began: float
    caller: Caller
    catalogue: Catalogue
    on_call: Callable[[int, str], None] = lambda done, text: None
    outcome: str = Code.CANCELLED.value
    """Until the run says otherwise: what is left when the task is cancelled."""
    calls: int = 0
    bytes_out: int = 0
    starts: int | None = None


def _is_lost(failure: Failure) -> bool:
    return failure.code is Code.SANDBOX_LOST


def _listed(entries: Sequence[CallEntry]) -> str:
    named = ", ".join(f"{entry.operation} ({entry.method} {entry.path})" for entry in entries[:_CALLS_NAMED])
    more = len(entries) - _CALLS_NAMED
    return f"{named} and {more} more" if more > 0 else named


def _utf8(text: str) -> bytes:
    # A lone surrogate, which JSON can carry, becomes a question mark rather than an error.
    return text.encode("utf-8", "replace")

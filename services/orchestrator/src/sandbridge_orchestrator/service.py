"""The two use cases, free of any transport: `search` and `execute`."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

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
from sandbridge_orchestrator.ledger import Ledger
from sandbridge_orchestrator.ports import (
    Admission,
    Audit,
    Credentials,
    HttpSender,
    Journal,
    Kept,
    Policy,
    Results,
    ToolAudit,
)
from sandbridge_orchestrator.running import RunSession

log = logging.getLogger(__name__)

Progress: TypeAlias = Callable[[float, str], Awaitable[None]]
"""Called with the number of calls done, which only grows, and a short text."""

_AUDITED_CODE_BYTES = 8 * 1024
_MESSAGE_CHARS = 4_000
_PROGRESS_WAITING = 32


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
    execute_enabled: bool = True
    """The kill switch: False refuses `execute` at once; searches go on."""
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

    def __post_init__(self) -> None:
        self._catalogue = catalogue_of(self.apis)
        self._budget = ByteBudget(self.limits.in_flight_bytes)
        self._fingerprint_key = self.random_bytes(32)

    def serve_apis(self, apis: Mapping[str, Api]) -> None:
        """Serve these APIs from now on; runs under way keep those they began with. Raises `egress_denied`."""
        self._catalogue = catalogue_of(apis)
        self.apis = apis

    async def search(self, caller: Caller, request: SearchRequest, *, transport: str) -> SearchAnswer:
        """Answer one question about the catalogue; raises SandbridgeError. Audited either way."""
        began = self.monotonic()
        outcome, size = Code.CANCELLED.value, 0
        try:
            answer = await self.docs.search(request)
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
        """
        attempt = _Attempt(self.new_run_id(), self.monotonic())
        try:
            self._require_acceptable(request.code)
            await self.audit.ready()
            outcome = await self._run(caller, request, attempt, progress)
            attempt.outcome = outcome_code(outcome)
            return outcome
        except SandbridgeError as error:
            attempt.outcome = error.failure.code.value
            raise
        finally:
            await self.audit.write(
                ToolAudit(
                    tool="execute",
                    caller=caller,
                    transport=transport,
                    outcome=attempt.outcome,
                    duration_ms=(self.monotonic() - attempt.began) * 1000,
                    run_id=attempt.run_id,
                    code=self._audited(request.code),
                    code_sha256=hashlib.sha256(_utf8(request.code)).hexdigest(),
                    bytes_out=attempt.bytes_out,
                    calls=attempt.calls,
                )
            )

    async def kept(self, caller: Caller, handle: str) -> Kept | None:
        """Return what the caller keeps under a handle; None where it is unknown, expired or another owner's."""
        return await self.results.get(caller, handle)

    def _require_acceptable(self, code: str) -> None:
        if not self.execute_enabled:
            raise fail(Code.DISABLED, "execute is switched off at the moment.")
        size = len(_utf8(code))
        if size > self.limits.code_bytes:
            limit = self.limits.code_bytes // 1024
            raise fail(Code.CODE_TOO_LARGE, f"The script has {size:,} bytes; the limit is {limit} KiB.")

    async def _run(
        self, caller: Caller, request: ExecuteRequest, attempt: _Attempt, progress: Progress | None
    ) -> RunOutcome:
        session: RunSession | None = None
        async with _reporting(progress) as on_call:
            try:
                async with self.admission.admit(caller):
                    session = self._session(caller, request, attempt, on_call)
                    finished = await session.drive(self.runner)
                await session.settle(finished)
            finally:
                if session is not None:
                    await session.stop()
                    attempt.calls = len(session.ledger.entries)
        return await self._outcome(caller, session, finished, attempt)

    def _session(
        self, caller: Caller, request: ExecuteRequest, attempt: _Attempt, on_call: Callable[[int, str], None]
    ) -> RunSession:
        wall_ms = self.limits.run.wall_clock_ms
        if request.timeout_ms is not None:
            wall_ms = max(1, min(request.timeout_ms, wall_ms))
        start = Start(
            run_id=attempt.run_id,
            code=_utf8(request.code).decode(),
            now_ms=int(self.now_ms()),
            seed=self.random_bytes(32),
            api_names=self._catalogue.names,
            limits=replace(self.limits.run, wall_clock_ms=wall_ms),
            catalog_digests=self._catalogue.digests,
            dry_run=request.dry_run,
        )
        standing = self._redactor()
        context = RunContext(
            run_id=attempt.run_id,
            caller=caller,
            catalogue=self._catalogue,
            limits=self.limits,
            ports=Ports(self.policy, self.credentials, self.journal, self.audit, self.sender),
            ledger=Ledger(attempt.run_id, caller, self.audit, monotonic=self.monotonic, standing=standing),
            deadline=self.monotonic() + wall_ms / 1000,
            monotonic=self.monotonic,
            now_ms=self.now_ms,
            fingerprint_key=self._fingerprint_key,
            standing=standing,
            dry_run=request.dry_run,
        )
        return RunSession(context, start, self.results, self._budget, on_call)

    async def _outcome(self, caller: Caller, session: RunSession, finished: Finished, attempt: _Attempt) -> RunOutcome:
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
                return await self._returned(caller, report, result, session, attempt)

    async def _returned(
        self, caller: Caller, report: Report, result: bytes, session: RunSession, attempt: _Attempt
    ) -> RunOutcome:
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
                handle = await self.results.keep(caller, clean, mime="application/json")
            except SandbridgeError as error:
                return RunFailed(report, error.failure)
            truncated = Truncated(len(clean), handle)
        attempt.bytes_out = len(clean) if shaped.whole else len(_utf8(compact(shaped.value)))
        return RunReturned(report, shaped.value, truncated, tuple(session.gathered.files))

    def _told(self, failure: Failure, ledger: Ledger) -> Failure:
        message = self._redactor().text(failure.message)[:_MESSAGE_CHARS]
        unknown = ledger.unknown()
        if unknown:
            named = ", ".join(f"{entry.operation} ({entry.method} {entry.path})" for entry in unknown[:10])
            message += f" Sent without an answer, so they may have taken effect: {named}."
        return replace(failure, message=message, hint=self._redactor().text(failure.hint)[:_MESSAGE_CHARS])

    def _audited(self, code: str) -> str:
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
    outcome: str = Code.CANCELLED.value
    """Until the run says otherwise: what is left when the task is cancelled."""
    calls: int = 0
    bytes_out: int = 0


def _utf8(text: str) -> bytes:
    # A lone surrogate, which JSON can carry, becomes a question mark rather than an error.
    return text.encode("utf-8", "replace")


@contextlib.asynccontextmanager
async def _reporting(progress: Progress | None) -> AsyncIterator[Callable[[int, str], None]]:
    """Give a function that reports without waiting: a slow client must not slow the run, so reports may be dropped."""
    if progress is None:
        yield lambda done, text: None
        return
    waiting: asyncio.Queue[tuple[int, str]] = asyncio.Queue(_PROGRESS_WAITING)

    def report(done: int, text: str) -> None:
        with contextlib.suppress(asyncio.QueueFull):
            waiting.put_nowait((done, text))

    pump = asyncio.create_task(_pump(waiting, progress))
    try:
        yield report
    finally:
        pump.cancel()
        await asyncio.wait([pump])


async def _pump(waiting: asyncio.Queue[tuple[int, str]], progress: Progress) -> None:
    while True:
        done, text = await waiting.get()
        try:
            await progress(float(done), text)
        except Exception as error:
            log.warning("progress_not_delivered error=%s", type(error).__name__)
            return

"""One run: the script's sandbox on one side, the bridge on the other, and how it ends."""

from __future__ import annotations

import asyncio
import logging
import re
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sandbridge_kit.errors import Code, Failure, SandbridgeError, fail
from sandbridge_kit.ports.runner import Answer, Ask, Console, Failed, Finished, Returned, Run, Start
from sandbridge_orchestrator.bridge import ApiCall, Bridge, CallHeld, Replayed, RunContext
from sandbridge_orchestrator.budget import ByteBudget, Room
from sandbridge_orchestrator.core.answers import Reply, error_reply
from sandbridge_orchestrator.core.outcome import FileMade, LogLine, Question
from sandbridge_orchestrator.ports import Results

log = logging.getLogger(__name__)

_CALL_KINDS = frozenset({"api", "fetch", "page"})
_MIME = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,100}/[A-Za-z0-9!#$&^_.+-]{1,100}(; ?[A-Za-z0-9=_.\"-]{1,100})?")
_UNSEEN = re.compile(r"[\x00-\x1f\x7f/\\\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_NAME_CHARS = 200
_REFUSED_CALLS = 100
"""So many calls over the limit are refused one by one; then the script is looping and its run ends."""
_WAITING_BODIES = 4
"""So many times the bodies in flight may wait for their turn; a script that asks for more is ended."""
_LONGEST_TIMER_MS = 24 * 3_600_000


@dataclass(slots=True)
class Gathered:
    """What a run has produced so far."""

    logs: list[LogLine] = field(default_factory=list)
    files: list[FileMade] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    console_left: int = 0
    files_left: int = 0


class RunSession:
    """Drives one run from its start to `Finished`, and owns every task that its asks need."""

    def __init__(
        self,
        context: RunContext,
        start: Start,
        results: Results,
        process_budget: ByteBudget,
        on_call: Callable[[int, str], None],
    ) -> None:
        """`on_call` hears of every call that ended: how many so far, and a line about it."""
        limits = context.limits
        self.bridge = Bridge(context)
        self.gathered = Gathered(console_left=limits.run.console_bytes, files_left=limits.files_bytes)
        self.ledger = context.ledger
        self._context = context
        self._start = start
        self._results = results
        self._on_call = on_call
        self._budgets = (process_budget, ByteBudget(limits.run.in_flight_bytes))
        self._standing = context.standing
        self._tasks: dict[asyncio.Task[None], ApiCall | None] = {}
        self._delivery = asyncio.Lock()
        self._started = context.monotonic()
        self._run: Run | None = None
        self._calls_done = 0
        self._calls_refused = 0
        self._waiting_bytes = 0

    @property
    def remaining_ms(self) -> int:
        """Milliseconds of the run's time that are left."""
        return int(self._context.remaining_s * 1000)

    async def drive(self, run: Run) -> Finished:
        """Run the script in the sandbox that was opened for it. Its time is counted from the making of the session."""
        self._run = run
        wall_s = (self._start.limits.wall_clock_ms + self._context.limits.grace_ms) / 1000
        try:
            async with asyncio.timeout(wall_s):
                return await self._consume(run)
        except TimeoutError:
            return Finished(Failed(Failure(Code.TIMED_OUT, f"The run did not end within {wall_s:g} s.")))
        finally:
            self._run = None

    def end(self, failure: Failure) -> None:
        """End the run with this failure, if it has not ended; nothing more is sent from now on."""
        if self._run is None:
            return
        task = asyncio.ensure_future(self._end(self._run, failure))
        # One of the session's tasks, so that it is waited for like the others.
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._forget(done, 0))

    async def settle(self, finished: Finished) -> None:
        """End what is still under way.

        After a return, and for calls already sent before a hold, answers are awaited within the run's time; everything
        else stops at once.
        """
        returned = isinstance(finished.outcome, Returned)
        held = bool(self.gathered.questions)
        self.bridge.ending = self.bridge.ending or not returned
        waited = [
            task for task, call in self._tasks.items() if call is not None and (returned or (held and call.entry.sent))
        ]
        if waited:
            await asyncio.wait(waited, timeout=self._context.remaining_s)
        await self.stop()

    async def stop(self) -> None:
        """Cancel every task and wait until each has written what it must."""
        self.bridge.ending = True
        left = list(self._tasks)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)
        # A task that is cancelled before its first step leaves its call open.
        await self.ledger.close()

    async def _consume(self, run: Run) -> Finished:
        async for event in run.events():
            match event:
                case Ask():
                    await self._take(run, event)
                case Console(level=level, text=text):
                    self._note(level, text)
                case Finished(outcome=outcome):
                    # At once: while the sandbox is cleaned up, no call of a failed script may start.
                    self.bridge.ending = self.bridge.ending or isinstance(outcome, Failed)
                    return event
        return Finished(Failed(Failure(Code.SANDBOX_LOST, "The sandbox was lost before the script ended.")))

    def _note(self, level: str, text: str) -> None:
        gathered = self.gathered
        if gathered.console_left <= 0:
            return
        clean = self._standing.text(text)
        kept = clean.encode("utf-8", "replace")[: gathered.console_left].decode("utf-8", "ignore")
        gathered.console_left -= max(1, len(kept.encode()))
        gathered.logs.append(LogLine(level, kept))
        if gathered.console_left <= 0:
            gathered.logs.append(LogLine("warn", "… the console's limit is reached; later lines are dropped"))

    async def _take(self, run: Run, ask: Ask) -> None:
        if len(self._tasks) >= self._context.limits.pending_asks:
            await self._end(run, Failure(Code.CALL_LIMIT, "The script waits for too many things at the same time."))
            return
        most = _WAITING_BODIES * self._context.limits.run.in_flight_bytes
        self._waiting_bytes += len(ask.body)
        if self._waiting_bytes > most:
            size = f"{most // (1024 * 1024)} MiB"
            await self._end(run, Failure(Code.CALL_LIMIT, f"Calls with more than {size} of bodies wait to be sent."))
            return
        call = ApiCall(self.bridge, ask) if ask.kind in _CALL_KINDS else None
        task = asyncio.create_task(self._serve(run, ask, call))
        self._tasks[task] = call
        task.add_done_callback(lambda done: self._forget(done, len(ask.body)))

    def _forget(self, task: asyncio.Task[None], size: int) -> None:
        self._tasks.pop(task, None)
        self._waiting_bytes -= size
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("answer_not_delivered error=%s", type(error).__name__)

    async def _end(self, run: Run, failure: Failure) -> None:
        self.bridge.ending = True
        await run.cancel(failure)

    async def _serve(self, run: Run, ask: Ask, call: ApiCall | None) -> None:
        async with Room(*self._budgets) as room:
            try:
                answered = await (self._other(ask) if call is None else self.bridge.answer(call, room))
            except Replayed as replayed:
                await self._deliver(run, ask, replayed.answer)
                return
            except CallHeld as held:
                self.gathered.questions.append(held.question)
                await self._end(run, Failure(Code.APPROVAL_REQUIRED, "A call waits for a person's approval."))
                return
            except SandbridgeError as error:
                answered = error_reply(self._clean(error.failure))
                await self._count_refusal(run, error.failure)
            except Exception as error:
                answered = error_reply(_internal(ask, error))
            if call is not None:
                self._report(call)
            await self._deliver(run, ask, answered)

    def _clean(self, failure: Failure) -> Failure:
        return replace(failure, message=self._standing.text(failure.message))

    async def _count_refusal(self, run: Run, failure: Failure) -> None:
        if failure.code in (Code.CALL_LIMIT, Code.RATE_LIMITED):
            self._calls_refused += 1
            if self._calls_refused == _REFUSED_CALLS:
                await self._end(run, failure)

    def _report(self, call: ApiCall) -> None:
        self._calls_done += 1
        entry = call.entry
        said = entry.status if entry.outcome == "answered" else entry.outcome
        self._on_call(self._calls_done, f"{entry.operation}: {said}")

    async def _deliver(self, run: Run, ask: Ask, answered: Reply | Answer) -> None:
        # One at a time, so that the recorded order, the stamps and the delivered order are the same.
        async with self._delivery:
            if isinstance(answered, Answer):
                answer = answered
            else:
                at_ms = self._start.now_ms + (self._context.monotonic() - self._started) * 1000
                answer = Answer(ask.seq, at_ms, answered.head, answered.body)
                await self._context.ports.journal.record(self._context.run_id, ask, answer)
            await run.answer(answer)

    async def _other(self, ask: Ask) -> Reply:
        recorded = await self._context.ports.journal.replay(self._context.run_id, ask)
        if recorded is not None:
            raise Replayed(recorded)
        match ask.kind:
            case "timer":
                await asyncio.sleep(_timer_ms(ask.head) / 1000)
                return Reply({})
            case "result":
                return await self._result(ask)
            case "file":
                return await self._file(ask)
            case _:
                raise fail(
                    Code.DISABLED,
                    "ask() is not available here: nobody can be asked during a run.",
                    hint="Put the value into the code, or return and ask the user.",
                )

    async def _result(self, ask: Ask) -> Reply:
        handle = str(ask.head.get("handle", ""))[:_NAME_CHARS]
        kept = await self._results.get(self._context.caller, handle)
        if kept is None:
            raise fail(
                Code.INVALID_ARGUMENTS,
                f"There is no kept result {handle!r}.",
                hint="Handles last 24 hours; run the script that made it again.",
            )
        if kept.mime == "application/json":
            return Reply({"payload": {"kind": "json"}}, kept.data)
        return Reply({"payload": {"kind": "bytes", "name": kept.name, "mime": kept.mime}}, kept.data)

    async def _file(self, ask: Ask) -> Reply:
        gathered, limits = self.gathered, self._context.limits
        if len(gathered.files) >= limits.files or len(ask.body) > gathered.files_left:
            raise fail(
                Code.OUTPUT_EXCEEDED,
                f"A run can make {limits.files} files of {limits.files_bytes // 1024:,} KiB together.",
            )
        gathered.files_left -= len(ask.body)
        name = _UNSEEN.sub("_", self._standing.text(str(ask.head.get("name", ""))))[:_NAME_CHARS].strip() or "file"
        stated = str(ask.head.get("mime", ""))
        mime = stated if _MIME.fullmatch(stated) else "application/octet-stream"
        data = self._standing.data(ask.body)
        handle = await self._results.keep(self._context.caller, data, mime=mime, name=name)
        gathered.files.append(FileMade(name, mime, data, handle))
        return Reply({"handle": handle})


def _timer_ms(head: Mapping[str, Any]) -> float:
    value = head.get("ms")
    if not isinstance(value, int | float) or value != value:
        return 0.0
    return min(max(0.0, float(value)), _LONGEST_TIMER_MS)


def _internal(ask: Ask, error: Exception) -> Failure:
    # Neither the message nor the arguments: either may hold data or a secret.
    where = traceback.extract_tb(error.__traceback__)[-1] if error.__traceback__ else None
    place = "" if where is None else f" at {Path(where.filename).name}:{where.lineno}"
    log.error("ask_failed kind=%s error=%s%s", ask.kind, type(error).__name__, place)
    return Failure(Code.SANDBOX_LOST, "An internal error ended this call; the server's log has more.")

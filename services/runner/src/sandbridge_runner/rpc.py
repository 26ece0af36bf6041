"""`runner.v1.Runner` on the wire: runs as streams, each with one writer and one reader, over the runner port."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import fields

import structlog

from sandbridge.runner.v1 import runner_pb2 as pb
from sandbridge.runner.v1 import runner_pb2_grpc
from sandbridge_kit.errors import Code, Failure, fail
from sandbridge_kit.heads import HeadError, write_head
from sandbridge_kit.ports.runner import (
    Answer,
    Ask,
    Console,
    Failed,
    Finished,
    Run,
    RunLimits,
    Runner,
    RunnerStatus,
    Start,
    Started,
)
from sandbridge_kit.rpc import (
    EOF,
    BodyTooLarge,
    Context,
    Joiner,
    Piece,
    PieceError,
    RpcServer,
    Service,
    TlsSource,
    pieces,
)

log = structlog.get_logger(__name__)

SERVICE = "sandbridge.runner.v1.Runner"
SEED_BYTES = 32
START_WAIT_S = 300.0
"""Longest wait for the first message of a run: orchestrators open a stream before there is a run for it."""
STATUS_DELAY_S = 0.02
"""A change is told this long after it: a short run is over by then, and there is nothing to tell."""
STATUS_POLL_S = 0.25
"""How often changes are looked for that nobody reports, such as a spare that has become ready."""
_KINDS: Mapping[str, pb.AskKind.ValueType] = {
    "api": pb.ASK_KIND_API,
    "fetch": pb.ASK_KIND_FETCH,
    "page": pb.ASK_KIND_PAGE,
    "result": pb.ASK_KIND_RESULT,
    "input": pb.ASK_KIND_INPUT,
    "file": pb.ASK_KIND_FILE,
    "timer": pb.ASK_KIND_TIMER,
}


def runner_server(
    tls: TlsSource, runner: Runner, *, body_bytes: int = RunLimits().body_bytes
) -> tuple[RpcServer, RunnerServicer]:
    """Return a server, not started yet, on which orchestrators of the same deployment can open runs.

    `body_bytes` is the most that one answer's body may have here, whatever a run's own limits say.
    """
    server = RpcServer(tls, {SERVICE: {Service.ORCHESTRATOR}}, watches={f"/{SERVICE}/Status"})
    servicer = RunnerServicer(runner, body_bytes, server)
    runner_pb2_grpc.add_RunnerServicer_to_server(servicer, server.grpc)
    return server, servicer


class RunnerServicer(runner_pb2_grpc.RunnerServicer):
    """Translates between streams and the port."""

    def __init__(self, runner: Runner, body_bytes: int, server: RpcServer) -> None:
        self._runner = runner
        self._body_bytes = body_bytes
        self._server = server
        self._runs: set[Run] = set()
        self._changed = asyncio.Event()

    @property
    def runs(self) -> int:
        """How many runs are open."""
        return len(self._runs)

    async def end_runs(self, failure: Failure) -> None:
        """End every open run with this failure; their callers are still told."""
        for run in list(self._runs):
            await run.cancel(failure)

    async def Run(self, request_iterator: object, context: Context) -> None:  # type: ignore[override]
        """Serve one run. The sandbox is gone, and its slot free, before the end is told."""
        async with self._server.until_drained(START_WAIT_S):
            message = await context.read()
        start = read_start(message)
        most = min(start.limits.body_bytes, self._body_bytes)
        async with contextlib.AsyncExitStack() as stack:
            async with self._runner.open(start) as run:
                self._runs.add(run)
                self._changed.set()
                stack.push_async_callback(_ended, reading := asyncio.create_task(_take_answers(run, context, most)))
                try:
                    finished = await _tell_events(run, context)
                finally:
                    self._runs.discard(run)
                    reading.cancel()
            self._changed.set()
            for part in finished_messages(finished):
                await context.write(part)

    async def Status(self, request: pb.StatusRequest, context: Context) -> AsyncIterator[pb.StatusResponse]:
        """Tell how full the runner is, now and soon after every change."""
        told: RunnerStatus | None = None
        while True:
            now = self._runner.status()
            if now != told:
                told = now
                yield pb.StatusResponse(free_slots=now.free_slots, running=now.running, idle_spares=now.idle_spares)
            await self._change()

    async def _change(self) -> None:
        self._changed.clear()
        try:
            async with asyncio.timeout(STATUS_POLL_S):
                await self._changed.wait()
        except TimeoutError:
            return
        await asyncio.sleep(STATUS_DELAY_S)


async def _ended(task: asyncio.Task[None]) -> None:
    await asyncio.wait([task])


async def _tell_events(run: Run, context: Context) -> Finished:
    finished: Finished | None = None
    async for event in run.events():
        if isinstance(event, Finished):
            finished = event
            continue
        try:
            for message in event_messages(event):
                await context.write(message)
        except HeadError as error:
            await run.cancel(Failure(Code.INVALID_ARGUMENTS, f"a call of the script cannot be sent on: {error}"))
    if finished is None:
        raise fail(Code.SANDBOX_LOST, "the run ended without saying how")
    return finished


async def _take_answers(run: Run, context: Context, body_bytes: int) -> None:
    """Hand on what the caller sends, until it stops; what breaks the protocol ends the run."""
    joiner = Joiner(body_bytes)
    try:
        while (message := await context.read()) is not EOF:
            match message.WhichOneof("message"):
                case "answer":
                    await _take_answer(run, joiner, message.answer)
                case "cancel":
                    await run.cancel(read_failure(message.cancel.reason))
                case _:
                    raise PieceError("a message that is neither answer nor cancel")
    except BodyTooLarge as error:
        failure = Failure(Code.RESPONSE_TOO_LARGE, f"an answer cannot enter the sandbox: {error}")
    except PieceError as error:
        failure = Failure(Code.SANDBOX_LOST, f"the stream to the sandbox broke its protocol: {error}")
    except Exception as error:
        # The library raises what its parser does for bytes that are no message.
        log.warning("stream_not_read", error=type(error).__name__)
        failure = Failure(Code.SANDBOX_LOST, "the stream to the sandbox broke its protocol: not a message")
    else:
        failure = Failure(Code.CANCELLED, "the caller closed the stream")
    await run.cancel(failure)


async def _take_answer(run: Run, joiner: Joiner, part: pb.Answer) -> None:
    whole = joiner.add(Piece(part.seq, part.head, part.body, part.last))
    if whole is not None:
        await run.answer(Answer(part.seq, part.at_ms, *whole))


def read_start(request: object) -> Start:
    """Return the start as the port has it; a limit of 0 is its default. Raises `invalid_arguments`."""
    if not isinstance(request, pb.RunRequest) or request.WhichOneof("message") != "start":
        raise fail(Code.INVALID_ARGUMENTS, "the first message of a run must be its start")
    start = request.start
    if len(start.seed) != SEED_BYTES:
        raise fail(Code.INVALID_ARGUMENTS, f"a run's seed has {SEED_BYTES} bytes, not {len(start.seed)}")
    asked = {item.name: getattr(start.limits, item.name) for item in fields(RunLimits)}
    return Start(
        run_id=start.run_id,
        code=start.code,
        now_ms=start.now_ms,
        seed=start.seed,
        api_names=tuple(start.api_names),
        limits=RunLimits(**{name: value for name, value in asked.items() if value}),
        catalog_digests=tuple(start.catalog_digests),
        dry_run=start.dry_run,
        check=start.check,
    )


def read_failure(failure: pb.Failure) -> Failure:
    """Return why a caller cancels; a code that does not exist is `cancelled`."""
    code = Code(failure.code) if failure.code in list(Code) else Code.CANCELLED
    wait = failure.retry_after_ms if failure.HasField("retry_after_ms") else None
    return Failure(code, failure.message, failure.hint, wait)


def event_messages(event: Started | Console | Ask) -> Iterator[pb.RunResponse]:
    """Yield an event as messages; a body beyond one piece becomes several. Raises HeadError for too large a head."""
    match event:
        case Started(guest_build=build):
            yield pb.RunResponse(started=pb.Started(guest_build=build))
        case Console(level=level, text=text):
            yield pb.RunResponse(console=pb.Console(level=level, text=text))
        case Ask():
            head, kind = write_head(event.head), _KINDS[event.kind]
            for part, last in pieces(event.body):
                yield pb.RunResponse(ask=pb.Ask(seq=event.seq, kind=kind, head=head, body=part, last=last))
                head = b""


def finished_messages(finished: Finished) -> Iterator[pb.RunResponse]:
    """Yield the end of a run, and before it the pieces of a result that is longer than one."""
    outcome = finished.outcome
    end = pb.Finished(peak_memory_bytes=finished.peak_memory_bytes)
    if isinstance(outcome, Failed):
        end.failed.failure.CopyFrom(_failure(outcome.failure))
    else:
        for part, last in pieces(outcome.result):
            if last:
                end.returned.result = part
            else:
                yield pb.RunResponse(result=pb.ResultPiece(data=part))
        end.returned.SetInParent()
    yield pb.RunResponse(finished=end)


def _failure(failure: Failure) -> pb.Failure:
    place = failure.position
    return pb.Failure(
        code=failure.code,
        message=failure.message,
        hint=failure.hint,
        retry_after_ms=failure.retry_after_ms,
        position=None if place is None else pb.Position(line=place.line, column=place.column),
    )

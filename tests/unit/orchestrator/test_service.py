"""`execute` and `search`, end to end with scripted neighbours."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from sandbridge_kit.errors import Code, Failure, SandbridgeError, fail
from sandbridge_kit.identity import LOCAL_CALLER, Caller
from sandbridge_kit.ports.docs import SearchRequest
from sandbridge_kit.ports.runner import Answer, Ask, RunLimits
from sandbridge_kit.testing import ScriptedGuest
from sandbridge_orchestrator.adapters.admission import Slots
from sandbridge_orchestrator.core.answers import Received
from sandbridge_orchestrator.core.limits import Limits
from sandbridge_orchestrator.core.outcome import (
    CallRecord,
    ExecuteRequest,
    FileMade,
    LogLine,
    Question,
    Report,
    RunFailed,
    RunHeld,
    RunReturned,
    Truncated,
)
from sandbridge_orchestrator.core.switches import SwitchState
from sandbridge_orchestrator.gate import ControlledGate
from sandbridge_orchestrator.ports import CallAudit, Hold, ToolAudit
from sandbridge_orchestrator.testing import MemoryAudit, MemoryJournal

Make = Callable[..., Any]
KEY = "c4n4ry-s3cr3t-k3y"


async def one_call(guest: ScriptedGuest) -> Any:
    answer = await guest.call("orders.get", path={"id": "7"})
    return json.loads(answer.body)


async def test_a_script_gets_the_api_answer_and_its_result_comes_back(bench: Make) -> None:
    at = bench(one_call, monotonic=lambda: 5.0)

    outcome = await at.execute()

    call = CallRecord("api:orders.get", "GET", "/v1/orders/7", 200, 0.0, 12, "allowed")
    assert outcome == RunReturned(Report("run-1", (), (call,), 0.0), {"ok": True})


async def test_a_name_that_cannot_be_encoded_is_shown_with_a_question_mark(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> None:
        await guest.begin("api", {"api": "api", "call": "\ud800"})
        await guest.begin("fetch", {"url": "/\udfff", "method": "\ud800"})

    outcome = await bench(script).execute()

    assert [call.operation for call in outcome.report.calls] == ["api:?", "fetch ?"]


async def test_the_run_starts_with_clock_seed_and_apis_from_outside(bench: Make) -> None:
    at = bench(one_call)

    await at.execute(timeout_ms=10**9, dry_run=True)

    start = at.runner.starts[0]
    assert (start.now_ms, start.seed, start.api_names, start.dry_run, start.limits) == (
        1_700_000_000_000,
        bytes(32),
        ("api",),
        True,
        RunLimits(),
    )


async def test_a_shorter_timeout_is_taken_and_a_senseless_one_becomes_the_least(bench: Make) -> None:
    at = bench(one_call)

    await at.execute(timeout_ms=1_500)
    await at.execute(timeout_ms=-5)

    assert [start.limits.wall_clock_ms for start in at.runner.starts] == [1_500, 1]


async def test_logs_are_kept_also_when_the_script_fails(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> None:
        guest.log("before")
        guest.log(f"the key is {KEY}", "error")
        raise fail(Code.SCRIPT_ERROR, f"boom {KEY}")

    outcome = await bench(script, monotonic=lambda: 5.0).execute()

    report = Report("run-1", (LogLine("log", "before"), LogLine("error", "the key is [redacted]")), (), 0.0)
    assert outcome == RunFailed(report, Failure(Code.SCRIPT_ERROR, "boom [redacted]"))


async def test_the_console_is_bounded(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> None:
        for _ in range(100):
            guest.log("é" * 30)

    outcome = await bench(script, limits=Limits(run=RunLimits(console_bytes=100))).execute()

    texts = [line.text for line in outcome.report.logs]
    assert texts == ["é" * 30, "é" * 20, "… the console's limit is reached; later lines are dropped"]


async def test_a_tool_call_is_audited_with_its_code_cut_and_hashed(bench: Make) -> None:
    at = bench(one_call, monotonic=lambda: 5.0)
    code = f"// {KEY}\n" + "é" * 5_000

    await at.execute(code)

    expected_code = ("// [redacted]\n" + "é" * 5_000).encode()[: 8 * 1024].decode("utf-8", "ignore")
    assert at.audit.tools == [
        ToolAudit(
            tool="execute",
            caller=LOCAL_CALLER,
            transport="stdio",
            outcome="returned",
            duration_ms=0.0,
            run_id="run-1",
            code=expected_code,
            code_sha256=hashlib.sha256(code.encode()).hexdigest(),
            bytes_out=12,
            calls=1,
        )
    ]


@pytest.mark.parametrize(
    ("changes", "code", "refused"),
    [
        ({"gate": ControlledGate(SwitchState(execute=False))}, "return 1", Code.DISABLED),
        ({}, "é" * (128 * 1024 + 1), Code.CODE_TOO_LARGE),
        ({"admission": Slots(0, queue=0)}, "return 1", Code.AT_CAPACITY),
    ],
)
async def test_a_run_that_may_not_begin_is_refused_and_audited(
    bench: Make, changes: dict[str, Any], code: str, refused: Code
) -> None:
    at = bench(one_call, **changes)

    with pytest.raises(SandbridgeError) as error:
        await at.execute(code)

    assert (error.value.failure.code, [t.outcome for t in at.audit.tools], at.runner.starts) == (refused, [refused], [])


async def test_nothing_runs_while_the_audit_trail_cannot_be_written(bench: Make) -> None:
    at = bench(one_call)
    at.audit.broken = True

    with pytest.raises(SandbridgeError) as error:
        await at.execute()

    assert (error.value.failure.code, at.runner.starts) == (Code.AUDIT_UNAVAILABLE, [])


async def test_a_large_result_is_cut_and_opens_by_its_handle_in_a_later_run_of_the_same_owner(bench: Make) -> None:
    rows = [{"id": n} for n in range(10_000)]
    answers: list[Any] = []

    async def script(guest: ScriptedGuest) -> Any:
        if guest.start.code == "first":
            return rows
        answers.append(json.loads((await guest.ask("result", {"handle": "handle-1"})).body))
        return len(answers[-1])

    at = bench(script)
    first = await at.execute("first")
    second = await at.execute("second")
    other = await at.execute("second", caller=Caller("local", "somebody-else", "local"))

    whole = len(json.dumps(rows))
    assert (first.truncated, first.result[0], second.result) == (Truncated(whole, "handle-1"), {"id": 0}, 10_000)
    assert answers == [rows]
    assert other.failure.code == Code.INVALID_ARGUMENTS


async def test_a_result_beyond_what_is_kept_is_an_error(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> bytes:
        return b'"' + b"x" * 2_000 + b'"'

    outcome = await bench(script, limits=Limits(run=RunLimits(result_bytes=1_024))).execute()

    assert outcome.failure == Failure(Code.OUTPUT_EXCEEDED, "The result is larger than 1 KiB.")


async def test_a_result_that_is_not_json_is_an_error(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> bytes:
        return b'{"a": '

    outcome = await bench(script).execute()

    assert outcome.failure.code == Code.GUEST_EXITED


async def test_files_come_back_with_safe_names_and_types(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> None:
        await guest.ask("file", {"name": "../a\u202e\n\ud800b.csv", "mime": "text/csv"}, b"1,2")
        await guest.ask("file", {"name": "", "mime": "not a type\r\n"}, b"x")

    outcome = await bench(script).execute()

    assert outcome.files == (
        FileMade(".._a___b.csv", "text/csv", b"1,2", "handle-1"),
        FileMade("file", "application/octet-stream", b"x", "handle-2"),
    )


async def test_files_are_bounded_in_number_and_bytes(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> list[str]:
        codes = []
        for size in (3, 90, 3, 3):
            answer = await guest.begin("file", {"name": "f", "mime": "text/plain"}, b"x" * size)
            codes.append(answer.head.get("error", {"code": "kept"})["code"])
        return codes

    outcome = await bench(script, limits=Limits(files=2, files_bytes=50)).execute()

    assert outcome.result == ["kept", "output_exceeded", "kept", "output_exceeded"]


async def test_a_question_to_a_person_is_answered_by_how_to_do_without(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> None:
        await guest.ask("input", {"message": "which?", "schema": {}})

    outcome = await bench(script).execute()

    assert (outcome.failure.code, "Put the value into the code" in outcome.failure.hint) == (Code.DISABLED, True)


async def test_timers_are_answered_in_the_order_they_end_and_stamps_never_go_back(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> list[int]:
        await asyncio.gather(*(guest.begin("timer", {"ms": ms}) for ms in (60, 30, "soon", -1)))
        return [answer.seq for answer in guest.answers]

    at = bench(script)
    outcome = await at.execute()

    stamps = [answer.at_ms for answer in at.runner.guests[0].answers]
    assert (outcome.result, stamps == sorted(stamps)) == ([3, 4, 2, 1], True)


async def test_every_answer_is_recorded_in_the_order_it_is_delivered(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> None:
        await asyncio.gather(guest.begin("timer", {"ms": 5}), guest.begin("api", {"api": "api", "call": "ops.health"}))

    at = bench(script)
    await at.execute()

    assert [answer for _, answer in at.journal.recorded] == at.runner.guests[0].answers
    assert len(at.journal.recorded) == 2


async def test_answers_are_delivered_in_the_order_in_which_they_were_recorded(bench: Make) -> None:
    class SlowJournal(MemoryJournal):
        async def record(self, run_id: str, ask: Ask, answer: Answer) -> None:
            await super().record(run_id, ask, answer)
            await asyncio.sleep(0.01 if len(self.recorded) == 1 else 0)

    async def script(guest: ScriptedGuest) -> None:
        await asyncio.gather(*(guest.begin("timer", {"ms": 0}) for _ in range(3)))

    journal = SlowJournal()
    at = bench(script, journal=journal)
    await at.execute()

    assert at.runner.guests[0].answers == [answer for _, answer in journal.recorded]


async def test_a_script_cannot_return_or_save_a_secret_that_it_was_told(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> list[str]:
        await guest.ask("file", {"name": f"{KEY}.txt", "mime": "text/plain"}, KEY.encode())
        return [KEY]

    outcome = await bench(script).execute()

    made = FileMade("[redacted].txt", "text/plain", b"[redacted]", "handle-1")
    assert (outcome.result, outcome.files) == (["[redacted]"], (made,))


async def test_nothing_is_sent_after_a_hold_even_where_the_audit_trail_is_slow(bench: Make) -> None:
    class SlowAudit(MemoryAudit):
        async def write(self, record: ToolAudit | CallAudit) -> None:
            await asyncio.sleep(0.005)
            await super().write(record)

    async def script(guest: ScriptedGuest) -> None:
        guest.begin("api", {"api": "api", "call": "orders.delete", "path": {"id": "7"}})
        await guest.begin("api", {"api": "api", "call": "ops.health"})

    verdicts = {"api:orders.delete": Hold("it deletes")}
    at = bench(script, verdicts=verdicts, audit=SlowAudit(), limits=Limits(calls_at_once=1))
    outcome = await at.execute()

    assert (type(outcome), at.sender.sent) == (RunHeld, [])


async def test_a_held_call_ends_the_guest_frees_the_slot_and_says_why(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> None:
        await guest.call("orders.delete", path={"id": "7"})
        pytest.fail("a held call has no answer")

    at = bench(script, verdicts={"api:orders.delete": Hold("it deletes")}, admission=Slots(1, queue=0))

    held = await at.execute()
    again = await at.execute()

    question = Question("api:orders.delete", "DELETE", "/v1/orders/7", "it deletes")
    assert (type(held), held.questions, again.questions) == (RunHeld, (question,), (question,))
    assert [run.cancelled.code for run in at.runner.runs] == [Code.APPROVAL_REQUIRED] * 2
    assert (at.runner.running, at.sender.sent, [t.outcome for t in at.audit.tools]) == (0, [], ["held", "held"])
    assert at.decisions() == [("api:orders.delete", "held", "approval_required")] * 2


async def test_a_call_already_sent_when_another_is_held_gets_its_answer_and_an_unsent_one_is_cancelled(
    bench: Make,
) -> None:
    release = asyncio.Event()

    async def respond(_: Any) -> Any:
        await release.wait()
        return Received(201, (), b"")

    async def script(guest: ScriptedGuest) -> None:
        create = {"api": "api", "call": "orders.create", "payload": {"kind": "json"}}
        guest.begin("api", create, b'{"sku": "A"}')
        while not at.sender.sent:
            await asyncio.sleep(0)
        guest.begin("api", {"api": "api", "call": "orders.delete", "path": {"id": "7"}})
        await guest.begin("api", create, b'{"sku": "B"}')

    at = bench(
        script, respond=respond, verdicts={"api:orders.delete": Hold("it deletes")}, limits=Limits(calls_at_once=2)
    )
    run = asyncio.create_task(at.execute())
    while at.runner.running or not at.runner.runs:
        await asyncio.sleep(0)
    release.set()
    await run

    assert at.decisions() == [
        ("api:orders.delete", "held", "approval_required"),
        ("api:orders.create", "cancelled", "cancelled"),
        ("api:orders.create", "allowed", "answered"),
    ]


@pytest.mark.parametrize(("method", "outcome"), [("orders.delete", "outcome_unknown"), ("orders.get", "cancelled")])
async def test_cancelling_kills_the_guest_and_says_what_became_of_each_call(
    bench: Make, method: str, outcome: str
) -> None:
    async def respond(_: Any) -> Any:
        await asyncio.Event().wait()

    async def script(guest: ScriptedGuest) -> None:
        guest.begin("api", {"api": "api", "call": method, "path": {"id": "1"}})
        guest.begin("api", {"api": "api", "call": "orders.list"})
        await asyncio.Event().wait()

    at = bench(script, respond=respond, limits=Limits(calls_at_once=1))
    run = asyncio.create_task(at.execute())
    while not at.sender.sent:
        await asyncio.sleep(0)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run

    assert (at.runner.running, [t.outcome for t in at.audit.tools], [t.calls for t in at.audit.tools]) == (
        0,
        ["cancelled"],
        [2],
    )
    assert at.decisions() == [
        (f"api:{method}", "allowed", outcome),
        ("api:orders.list", "cancelled", "cancelled"),
    ]


async def test_a_run_killed_at_its_deadline_names_the_call_that_may_have_acted(bench: Make) -> None:
    async def respond(_: Any) -> Any:
        await asyncio.Event().wait()

    async def script(guest: ScriptedGuest) -> None:
        guest.begin("api", {"api": "api", "call": "orders.delete", "path": {"id": "1"}})
        while not at.sender.sent:
            await asyncio.sleep(0)
        raise fail(Code.TIMED_OUT, "The run took longer than 30 s.")

    at = bench(script, respond=respond)
    outcome = await at.execute()

    assert outcome.failure.message == (
        "The run took longer than 30 s. Sent without an answer, so they may have taken effect: "
        "api:orders.delete (DELETE /v1/orders/1)."
    )
    assert [call.decision for call in outcome.report.calls] == ["outcome_unknown"]


async def test_a_call_asked_in_the_moment_that_the_run_fails_has_its_record_too(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> None:
        guest.begin("api", {"api": "api", "call": "orders.delete", "path": {"id": "1"}})
        raise fail(Code.GUEST_EXITED, "gone")

    at = bench(script)
    outcome = await at.execute()

    assert [(call.decision, call.outcome) for call in at.audit.calls] == [("cancelled", "cancelled")]
    assert [call.decision for call in outcome.report.calls] == ["cancelled"]
    assert at.sender.sent == []


async def test_calls_still_under_way_when_the_script_returns_are_awaited_and_listed(bench: Make) -> None:
    async def respond(_: Any) -> Any:
        await asyncio.sleep(0.02)
        return Received(204, (), b"")

    async def script(guest: ScriptedGuest) -> int:
        guest.begin("api", {"api": "api", "call": "orders.delete", "path": {"id": "1"}})
        guest.begin("timer", {"ms": 60_000})
        return 1

    outcome = await bench(script, respond=respond).execute()

    assert [(call.status, call.decision) for call in outcome.report.calls] == [(204, "allowed")]


async def test_a_run_whose_runner_does_not_end_it_is_ended_from_here(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> None:
        await asyncio.Event().wait()

    at = bench(script, limits=Limits(run=RunLimits(wall_clock_ms=10), grace_ms=10))
    outcome = await at.execute()

    assert (outcome.failure.code, at.runner.running) == (Code.TIMED_OUT, 0)


async def test_too_many_asks_at_the_same_time_end_the_run(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> None:
        for _ in range(20):
            guest.begin("timer", {"ms": 60_000})
        await asyncio.Event().wait()

    outcome = await bench(script, limits=Limits(pending_asks=10)).execute()

    assert outcome.failure.code == Code.CALL_LIMIT


async def test_bodies_that_wait_in_the_hundreds_end_the_run_before_they_fill_the_memory(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> None:
        for _ in range(50):
            guest.begin("file", {"name": "f", "mime": "text/plain"}, b"x" * 10)
            guest.begin("api", {"api": "api", "call": "orders.delete", "path": {"id": "1"}}, b"x" * 10)
        await asyncio.Event().wait()

    outcome = await bench(script, limits=Limits(run=RunLimits(in_flight_bytes=100))).execute()

    assert (outcome.failure.code, len(outcome.report.calls)) == (Code.CALL_LIMIT, 20)


async def test_a_script_that_goes_on_calling_after_its_limit_is_ended(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> None:
        while True:
            await guest.begin("api", {"api": "api", "call": "ops.health"})

    at = bench(script, limits=Limits(calls=2))
    outcome = await at.execute()

    assert (outcome.failure.code, len(at.sender.sent), len(at.audit.calls)) == (Code.CALL_LIMIT, 2, 102)


async def test_progress_tells_of_each_call_and_a_client_that_fails_does_not_end_the_run(bench: Make) -> None:
    heard: list[tuple[float, str]] = []

    async def listen(done: float, text: str) -> None:
        heard.append((done, text))

    async def broken(done: float, text: str) -> None:
        raise ConnectionError

    async def script(guest: ScriptedGuest) -> str:
        await guest.call("ops.health")
        await guest.begin("api", {"api": "api", "call": "nope"})
        await asyncio.sleep(0.01)
        return "done"

    at = bench(script)
    for progress in (listen, broken):
        outcome = await at.orchestrator.execute(LOCAL_CALLER, ExecuteRequest("x"), transport="stdio", progress=progress)
        assert outcome.result == "done"

    assert heard == [(1.0, "api:ops.health: 200"), (2.0, "api:nope: unknown_operation")]


async def test_a_search_is_audited_with_its_query(bench: Make) -> None:
    at = bench(one_call, monotonic=lambda: 5.0)

    await at.orchestrator.search(LOCAL_CALLER, SearchRequest(f"list {KEY}"), transport="http")

    assert at.audit.records == [
        ToolAudit(
            tool="search_docs",
            caller=LOCAL_CALLER,
            transport="http",
            outcome="hits",
            duration_ms=0.0,
            query="list [redacted]",
            bytes_out=18,
        )
    ]


async def test_a_run_keeps_the_apis_it_began_with(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> int:
        at.orchestrator.serve_apis({})
        return (await guest.call("ops.health")).head["status"]

    at = bench(script)
    first, second = await at.execute(), await at.execute()

    assert (first.result, second.failure.code) == (200, Code.UNKNOWN_OPERATION)

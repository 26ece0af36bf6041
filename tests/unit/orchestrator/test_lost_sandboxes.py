"""A sandbox that is lost: when a run is started again, and what is said when it is not."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from sandbridge_kit.errors import Code, Failure, SandbridgeError, fail
from sandbridge_kit.identity import LOCAL_CALLER
from sandbridge_kit.ports.docs import SearchRequest
from sandbridge_kit.ports.runner import Answer, Start
from sandbridge_kit.testing import ScriptedGuest
from sandbridge_orchestrator.adapters.admission import Slots
from sandbridge_orchestrator.core.answers import Received
from sandbridge_orchestrator.core.blocks import Block
from sandbridge_orchestrator.core.outcome import ExecuteRequest, LogLine, RunFailed, RunReturned
from sandbridge_orchestrator.core.switches import SwitchState
from sandbridge_orchestrator.gate import ControlledGate
from sandbridge_orchestrator.ports import CallAudit, Outgoing, Unreachable

Make = Callable[..., Any]
LOST = fail(Code.SANDBOX_LOST, "the sandbox was lost")


def lost_at_first(*, before: Callable[[ScriptedGuest], Any]) -> Callable[[ScriptedGuest], Any]:
    """A script whose first sandbox is lost after `before`."""
    starts: list[Start] = []

    async def script(guest: ScriptedGuest) -> Any:
        starts.append(guest.start)
        guest.log(f"start {len(starts)}")
        if len(starts) == 1:
            await before(guest)
            raise LOST
        return (await guest.call("orders.get", path={"id": "7"})).head["status"]

    return script


async def nothing(guest: ScriptedGuest) -> None:
    pass


def trail(calls: list[CallAudit]) -> list[tuple[str, str, str, int | None]]:
    return [(call.operation, call.decision, call.outcome, call.start) for call in calls]


async def test_a_run_lost_before_any_call_was_sent_starts_again_the_same_way_and_shows_nothing_of_it(
    bench: Make,
) -> None:
    at = bench(lost_at_first(before=nothing), monotonic=lambda: 5.0)

    outcome = await at.execute()

    first, second = at.runner.starts
    assert isinstance(outcome, RunReturned)
    assert (outcome.report.logs, outcome.result, second) == ((LogLine("log", "start 2"),), 200, first)
    assert trail(at.audit.calls) == [("api:orders.get", "allowed", "answered", 2)]
    assert [(tool.outcome, tool.starts, tool.calls) for tool in at.audit.tools] == [("returned", 2, 1)]


async def test_a_call_that_was_asked_and_not_sent_is_recorded_as_cancelled_and_does_not_hinder_the_second_start(
    bench: Make,
) -> None:
    resolving = asyncio.Event()

    async def asks(guest: ScriptedGuest) -> None:
        guest.begin("api", {"api": "api", "call": "orders.delete", "path": {"id": "1"}})
        await resolving.wait()

    at = bench(lost_at_first(before=asks))
    never = asyncio.Event()

    async def resolve(host: str, port: int) -> tuple[str, ...]:
        if not resolving.is_set():
            resolving.set()
            await never.wait()
        return ("93.184.215.14",)

    at.sender.resolve = resolve

    outcome = await at.execute()

    assert [call.operation for call in outcome.report.calls] == ["api:orders.get"]
    assert trail(at.audit.calls) == [
        ("api:orders.delete", "cancelled", "cancelled", None),
        ("api:orders.get", "allowed", "answered", 2),
    ]


async def test_progress_never_goes_back_when_a_run_starts_again(bench: Make) -> None:
    seen: list[float] = []

    async def hears(done: float, text: str) -> None:
        seen.append(done)

    async def refused_twice(guest: ScriptedGuest) -> None:
        for _ in range(2):
            with pytest.raises(SandbridgeError):
                await guest.call("orders.nowhere")
        await asyncio.sleep(0.01)

    at = bench(lost_at_first(before=refused_twice))
    await at.orchestrator.execute(LOCAL_CALLER, ExecuteRequest("return 1"), transport="stdio", progress=hears)

    assert (len(at.runner.starts), seen) == (2, [1.0, 2.0])


async def test_a_run_lost_twice_fails(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> None:
        raise LOST

    at = bench(script)
    outcome = await at.execute()

    assert (type(outcome), outcome.failure.code, len(at.runner.starts)) == (RunFailed, Code.SANDBOX_LOST, 2)


async def test_the_second_start_has_the_time_that_is_left_and_with_none_there_is_no_second_start(bench: Make) -> None:
    now = [0.0]

    def after(seconds: float) -> Callable[[ScriptedGuest], Any]:
        async def script(guest: ScriptedGuest) -> None:
            now[0] += seconds
            raise LOST

        return script

    walls = []
    for seconds in (12.0, 29.95):
        at = bench(after(seconds), monotonic=lambda: now[0])
        await at.execute()
        walls.append([start.limits.wall_clock_ms for start in at.runner.starts])

    assert walls == [[30_000, 18_000], [30_000]]


async def test_a_run_lost_after_an_answer_fails_and_says_what_was_done(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> None:
        await guest.call("orders.create", json_body={"sku": "a"})
        raise LOST

    at = bench(script)
    outcome = await at.execute()

    assert (outcome.failure.message, len(at.runner.starts)) == (
        "the sandbox was lost. Calls that were answered before: api:orders.create (POST /v1/orders).",
        1,
    )
    assert outcome.failure.hint.startswith("Do not repeat calls that changed something")
    assert trail(at.audit.calls) == [("api:orders.create", "allowed", "answered", None)]


def never_answering() -> tuple[asyncio.Event, Callable[[Outgoing], Awaitable[Received]]]:
    """Return an API that never answers, and what tells that a request has reached it."""
    sent = asyncio.Event()

    async def respond(outgoing: Outgoing) -> Received:
        sent.set()
        await asyncio.Event().wait()
        raise AssertionError

    return sent, respond


async def test_a_run_lost_during_a_call_fails_and_says_that_it_may_have_taken_effect(bench: Make) -> None:
    sent, respond = never_answering()

    async def script(guest: ScriptedGuest) -> None:
        guest.begin("api", {"api": "api", "call": "orders.delete", "path": {"id": "1"}})
        await sent.wait()
        raise LOST

    at = bench(script, respond=respond)
    outcome = await at.execute()

    assert "may have taken effect: api:orders.delete (DELETE /v1/orders/1)" in outcome.failure.message
    assert (trail(at.audit.calls), len(at.runner.starts)) == (
        [("api:orders.delete", "allowed", "outcome_unknown", None)],
        1,
    )


async def test_a_reading_call_under_way_when_a_run_is_lost_is_told_as_neither(bench: Make) -> None:
    sent, respond = never_answering()

    async def script(guest: ScriptedGuest) -> None:
        guest.begin("api", {"api": "api", "call": "orders.get", "path": {"id": "1"}})
        await sent.wait()
        raise LOST

    at = bench(script, respond=respond)
    outcome = await at.execute()

    assert outcome.failure.message == LOST.failure.message


async def test_a_call_that_reached_nobody_was_not_sent(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> None:
        await guest.begin("api", {"api": "api", "call": "orders.get", "path": {"id": "1"}})
        raise LOST

    at = bench(script)
    at.sender.send = _unsent
    await at.execute()

    assert len(at.runner.starts) == 2


async def _unsent(outgoing: Outgoing, **_: Any) -> Received:
    raise Unreachable("no connection", sent=False)


async def test_a_source_switched_off_stops_the_next_call_of_a_run_already_going(bench: Make) -> None:
    gate = ControlledGate(SwitchState())

    async def script(guest: ScriptedGuest) -> int:
        first = await guest.call("orders.get", path={"id": "1"})
        gate.offer(SwitchState(sources={"api": False}, revision=1), by="test")
        await guest.call("orders.get", path={"id": "2"})
        return int(first.head["status"])

    at = bench(script, gate=gate)
    outcome = await at.execute()

    assert outcome.failure.code is Code.DISABLED
    assert trail(at.audit.calls) == [
        ("api:orders.get", "allowed", "answered", None),
        ("api:orders.get", "denied", "disabled", None),
    ]


async def test_a_source_switched_off_stops_the_retries_of_a_call(bench: Make) -> None:
    gate = ControlledGate(SwitchState())

    def respond(outgoing: Outgoing) -> Received:
        gate.offer(SwitchState(sources={"api": False}, revision=1), by="test")
        return Received(503, (("retry-after", "0"),), b"")

    async def script(guest: ScriptedGuest) -> None:
        await guest.call("orders.get", path={"id": "1"})

    at = bench(script, respond=respond, gate=gate)
    await at.execute()

    assert (len(at.sender.sent), trail(at.audit.calls)) == (1, [("api:orders.get", "allowed", "disabled", None)])


async def test_a_blocked_caller_makes_no_further_call(bench: Make) -> None:
    gate = ControlledGate(SwitchState())

    async def script(guest: ScriptedGuest) -> None:
        gate.block(Block(("client", ("local",))))
        await guest.call("orders.get", path={"id": "1"})

    at = bench(script, gate=gate)
    outcome = await at.execute()

    assert (outcome.failure.code, at.sender.sent) == (Code.DENIED_BY_POLICY, [])


@pytest.mark.parametrize("queued", [False, True])
async def test_execute_switched_off_refuses_new_runs_also_those_that_wait(bench: Make, queued: bool) -> None:
    gate = ControlledGate(SwitchState())
    release = asyncio.Event()

    async def script(guest: ScriptedGuest) -> int:
        await release.wait()
        return 1

    at = bench(script, gate=gate, **({"admission": Slots(1)} if queued else {}))
    first = asyncio.create_task(at.execute())
    while not at.runner.starts:
        await asyncio.sleep(0)
    second = asyncio.create_task(at.execute()) if queued else None
    await asyncio.sleep(0.01)
    gate.offer(SwitchState(execute=False, revision=1), by="test")
    third = asyncio.create_task(at.execute())
    await asyncio.sleep(0.01)
    release.set()
    ended = await asyncio.gather(first, *filter(None, (second, third)), return_exceptions=True)

    assert [getattr(getattr(end, "failure", None), "code", None) for end in ended] == [
        None,
        *([Code.DISABLED] * (2 if queued else 1)),
    ]


async def test_runs_under_way_can_be_ended_with_a_reason(bench: Make) -> None:
    async def script(guest: ScriptedGuest) -> None:
        await asyncio.Event().wait()

    at = bench(script)
    run = asyncio.create_task(at.execute())
    while not at.orchestrator.runs:
        await asyncio.sleep(0)
    ended = at.orchestrator.cancel_runs(Failure(Code.DISABLED, "execute was switched off"))
    outcome = await run

    assert (ended, outcome.failure.code, at.orchestrator.runs) == (1, Code.DISABLED, 0)


async def test_execute_switched_off_refuses_a_run_that_waits_for_a_sandbox(bench: Make) -> None:
    gate = ControlledGate(SwitchState())
    at = bench(nothing, gate=gate)
    opened, waits = at.runner.open, asyncio.Event()

    @contextlib.asynccontextmanager
    async def queueing(start: Start) -> AsyncIterator[Any]:
        waits.set()
        while gate.state.execute:
            await asyncio.sleep(0)
        async with opened(start) as run:
            yield run

    at.runner.open = queueing
    run = asyncio.create_task(at.execute())
    await waits.wait()
    gate.offer(SwitchState(execute=False, revision=1), by="test")

    with pytest.raises(SandbridgeError) as caught:
        await run
    assert (caught.value.failure.code, at.orchestrator.runs) == (Code.DISABLED, 0)


@pytest.mark.parametrize("changes", [{"dry_run": True}, {"replayed": {1: Answer(1, 0.0, {"status": 200})}}])
async def test_a_source_that_is_off_answers_nothing_even_where_nothing_would_be_sent(
    bench: Make, changes: dict[str, Any]
) -> None:
    async def script(guest: ScriptedGuest) -> None:
        await guest.call("orders.delete", path={"id": "1"})

    members = {"dry_run": changes.pop("dry_run")} if "dry_run" in changes else {}
    at = bench(script, gate=ControlledGate(SwitchState(sources={"api": False})), **changes)
    outcome = await at.execute(**members)

    assert (outcome.failure.code, trail(at.audit.calls)) == (
        Code.DISABLED,
        [("api:orders.delete", "denied", "disabled", None)],
    )


async def test_a_search_leaves_out_what_is_off_and_refuses_who_is_blocked(bench: Make) -> None:
    gate = ControlledGate(SwitchState(sources={"orders": False, "mail": True}))
    at = bench(nothing, gate=gate)
    request = SearchRequest("orders", hidden=("api:secret.*",))

    await at.orchestrator.search(LOCAL_CALLER, request, transport="stdio")
    gate.block(Block(("principal", LOCAL_CALLER.owner)))
    with pytest.raises(SandbridgeError) as caught:
        await at.orchestrator.search(LOCAL_CALLER, request, transport="stdio")

    assert [seen.hidden for seen in at.orchestrator.docs.seen] == [("api:secret.*", "orders:*")]
    assert caught.value.failure.code is Code.DENIED_BY_POLICY
    assert [tool.outcome for tool in at.audit.tools] == ["hits", "denied_by_policy"]

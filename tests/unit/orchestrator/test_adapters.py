"""Places in the queue, kept results, the audit trail, bytes in flight."""

from __future__ import annotations

import asyncio
import io
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from sandbridge_kit.audit.sink import TextSink
from sandbridge_kit.audit.trail import Trail, TrailOptions
from sandbridge_kit.errors import Code, SandbridgeError
from sandbridge_kit.identity import LOCAL_CALLER, Caller
from sandbridge_orchestrator.adapters.admission import Slots
from sandbridge_orchestrator.adapters.audit import JsonAudit
from sandbridge_orchestrator.adapters.credentials import StaticKeys
from sandbridge_orchestrator.adapters.results import MemoryResults
from sandbridge_orchestrator.budget import ByteBudget, Room
from sandbridge_orchestrator.core.redaction import NOTHING
from sandbridge_orchestrator.ledger import Ledger
from sandbridge_orchestrator.ports import Kept, ToolAudit
from sandbridge_orchestrator.testing import MemoryAudit


async def test_places_are_given_in_the_order_of_the_queue() -> None:
    slots, order = Slots(1, queue=3), []

    async def run(name: str) -> None:
        async with slots.admit(LOCAL_CALLER):
            order.append(name)
            await asyncio.sleep(0)

    await asyncio.gather(*(run(name) for name in "abcd"))

    assert order == ["a", "b", "c", "d"]


@pytest.mark.parametrize(("queue", "timeout_ms", "told"), [(0, 30_000, "queue is full"), (1, 10, "within 0.01 s")])
async def test_who_cannot_wait_is_told_when_to_come_back(queue: int, timeout_ms: int, told: str) -> None:
    slots = Slots(1, queue=queue, queue_timeout_ms=timeout_ms)

    async with slots.admit(LOCAL_CALLER):
        with pytest.raises(SandbridgeError) as error:
            async with slots.admit(LOCAL_CALLER):
                pytest.fail("there is no second place")

    failure = error.value.failure
    assert (failure.code, told in failure.message, failure.retry_after_ms) == (Code.AT_CAPACITY, True, 1_000)


async def test_no_place_is_lost_when_waiting_runs_are_cancelled() -> None:
    slots = Slots(2, queue=100)

    async def run() -> None:
        async with slots.admit(LOCAL_CALLER):
            await asyncio.sleep(0.001)

    tasks = [asyncio.create_task(run()) for _ in range(60)]
    await asyncio.sleep(0.002)
    for task in tasks[::3]:
        task.cancel()
    await asyncio.wait(tasks)

    async with slots.admit(LOCAL_CALLER), slots.admit(LOCAL_CALLER):
        pass


async def test_a_place_given_to_a_run_that_is_cancelled_in_the_same_moment_goes_on() -> None:
    slots = Slots(1, queue=1)

    async def run() -> None:
        async with slots.admit(LOCAL_CALLER):
            pytest.fail("it was cancelled before its turn")

    async with slots.admit(LOCAL_CALLER):
        waiting = asyncio.create_task(run())
        await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])

    async with asyncio.timeout(5), slots.admit(LOCAL_CALLER):
        pass


async def test_a_kept_result_opens_for_its_owner_alone(tmp_path: Path) -> None:
    results = MemoryResults()
    handle = await results.keep(LOCAL_CALLER, b"data", mime="text/plain", name="n")

    other = Caller("local", "other", "local")
    assert await results.get(LOCAL_CALLER, handle) == Kept(handle, "text/plain", b"data", "n")
    assert [await results.get(caller, h) for caller, h in ((other, handle), (LOCAL_CALLER, "../x"))] == [None, None]
    results.close()


async def test_the_oldest_results_of_an_owner_go_first() -> None:
    now = [0.0]
    results = MemoryResults(now_ms=lambda: now[0], most=3, most_bytes=100, life_ms=50)
    other = Caller("local", "other", "local")
    theirs = await results.keep(other, b"x" * 90, mime="a/b")
    handles = [await results.keep(LOCAL_CALLER, b"x" * size, mime="a/b") for size in (10, 10, 10, 10, 85)]

    alive = [await results.get(LOCAL_CALLER, handle) is not None for handle in handles]
    assert (alive, await results.get(other, theirs) is not None) == ([False, False, False, True, True], True)
    now[0] = 51.0
    assert await results.get(LOCAL_CALLER, handles[4]) is None
    results.close()


async def test_kept_data_lies_in_a_private_directory_that_is_removed_at_the_end() -> None:
    results = MemoryResults()
    await results.keep(LOCAL_CALLER, b"data", mime="a/b")
    directory = results._directory
    assert directory is not None
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700

    results.close()

    assert not directory.exists()


def tool_audit(**changes: Any) -> ToolAudit:
    members: dict[str, Any] = {
        "tool": "execute",
        "caller": LOCAL_CALLER,
        "transport": "stdio",
        "outcome": "returned",
        "duration_ms": 1.23456,
        **changes,
    }
    return ToolAudit(**members)


async def test_a_record_is_one_line_whatever_it_holds() -> None:
    stream = io.StringIO()
    nasty = 'a"\n{"event": "forged"}\r\x1b[31m\x7f\u2028é\ud800'

    await JsonAudit(stream, now=lambda: "T").write(tool_audit(code=nasty))

    text = stream.getvalue()
    assert (text.count("\n"), text.isascii(), [c for c in text[:-1] if not c.isprintable()]) == (1, True, [])
    stream_id = json.loads(text).pop("stream")
    assert json.loads(text) == {
        "stream": stream_id,
        "number": 0,
        "time": "T",
        "event": "tool_call",
        "issuer": "local",
        "sub": "local",
        "client": "local",
        "tool": "execute",
        "transport": "stdio",
        "outcome": "returned",
        "duration_ms": 1.235,
        "code": nasty,
        "bytes_out": 0,
        "calls": 0,
    }


class FullDisk(io.StringIO):
    full = True

    def write(self, text: str) -> int:
        if self.full:
            raise OSError(28, "No space left on device")
        return super().write(text)


async def test_texts_are_kept_as_digests_only_where_that_is_set() -> None:
    stream = io.StringIO()
    audit = JsonAudit(Trail(TextSink(stream), options=TrailOptions(texts=False)))

    await audit.write(tool_audit(code="return 'who'", code_sha256="5e"))
    await audit.write(tool_audit(query="who"))

    told = [(one.get("code"), one.get("code_sha256"), one.get("query")) for one in map(json.loads, lines(stream))]
    assert (told[0], told[1][:2], len(told[1][2]), "who" in stream.getvalue()) == (
        (None, "5e", None),
        (None, None),
        len("sha256:") + 64,
        False,
    )


async def test_where_records_are_not_required_what_is_lost_is_counted_and_calls_go_on() -> None:
    stream = FullDisk()
    audit = JsonAudit(Trail(TextSink(stream), options=TrailOptions(required=False)))

    for _ in range(3):
        await audit.ready()
        await audit.write(tool_audit())
    stream.full = False
    await audit.write(tool_audit())

    told = [(one["event"], one["number"], one.get("records_lost")) for one in map(json.loads, lines(stream))]
    assert (audit.lost, told) == (3, [("stream_resumed", 0, 3), ("tool_call", 1, None)])


async def test_records_get_their_checkpoint_though_nothing_follows_them() -> None:
    stream = io.StringIO()
    key = X25519PrivateKey.generate().public_key()
    audit = JsonAudit(Trail(TextSink(stream), key=key, options=TrailOptions(checkpoint_s=0.01)))

    async with audit.checkpoints(), asyncio.timeout(5):
        await audit.write(tool_audit())
        while len(lines(stream)) < 3:
            await asyncio.sleep(0.01)

    assert [json.loads(one)["event"] for one in lines(stream)] == ["stream_start", "tool_call", "stream_checkpoint"]


def lines(stream: io.StringIO) -> list[str]:
    return stream.getvalue().splitlines()


async def test_a_trail_that_cannot_be_written_is_unavailable_until_it_can() -> None:
    stream = FullDisk()
    audit = JsonAudit(stream)

    await audit.ready()
    for attempt in (audit.write(tool_audit()), audit.ready()):
        with pytest.raises(SandbridgeError) as error:
            await attempt
        assert error.value.failure.code == Code.AUDIT_UNAVAILABLE
    stream.full = False
    await audit.ready()


async def test_static_keys_print_nothing() -> None:
    keys = StaticKeys({"a": "s3cr3t-key"})

    credential = await keys.credential_for(LOCAL_CALLER, "a", "https://h")
    assert "s3cr3t" not in repr([keys, credential])
    assert (await keys.credential_for(LOCAL_CALLER, "b", "https://h"), keys.standing()) == (None, ("s3cr3t-key",))


async def test_bytes_in_flight_are_given_in_order_and_all_come_back() -> None:
    budget, order = ByteBudget(10), []

    async def hold(name: str, amount: int) -> None:
        async with Room(budget) as room:
            await room.swap(amount)
            order.append(name)
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(hold(name, size)) for name, size in (("a", 8), ("b", 8), ("c", 2), ("d", 99))]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.wait(tasks)

    assert (order, budget.free) == (["a", "c", "d"], 10)


async def test_who_needs_no_room_does_not_wait_behind_those_who_do() -> None:
    budget = ByteBudget(10)
    await budget.take(10)
    waiting = asyncio.create_task(budget.take(5))
    await asyncio.sleep(0)

    assert (await budget.take(0), waiting.done()) == (0, False)
    waiting.cancel()


async def test_waiting_for_room_ends_as_cancelled_however_many_are_cancelled_at_once() -> None:
    budget = ByteBudget(10)
    await budget.take(10)
    waiting = [asyncio.create_task(budget.take(size)) for size in (3, 4, 5)]
    await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    ends = await asyncio.gather(*waiting, return_exceptions=True)
    budget.give(10)

    assert ([type(end) for end in ends], budget.free) == ([asyncio.CancelledError] * 3, 10)


async def test_room_is_given_back_before_more_is_taken() -> None:
    budget = ByteBudget(10)

    async with asyncio.timeout(5), Room(budget) as room:
        await room.swap(6)
        await room.swap(8)
        assert budget.free == 2

    assert budget.free == 10


async def test_a_call_is_recorded_once_however_often_it_is_settled() -> None:
    audit = MemoryAudit()
    ledger = Ledger("run-1", LOCAL_CALLER, audit, monotonic=lambda: 0.0, standing=NOTHING)
    entry = ledger.open(1, "api:a.b")

    await ledger.settle(entry)
    await ledger.settle(entry)
    await ledger.close()

    assert len(audit.records) == 1


async def test_a_call_whose_turn_never_came_is_recorded_as_cancelled() -> None:
    audit = MemoryAudit()
    ledger = Ledger("run-1", LOCAL_CALLER, audit, monotonic=lambda: 0.0, standing=NOTHING)
    ledger.open(1, "api:a.b")
    await ledger.close()

    assert [(record.decision, record.outcome) for record in audit.calls] == [("cancelled", "cancelled")]

"""Time and memory: what is too much ends the run, from outside, with the right name."""

from __future__ import annotations

import asyncio

import pytest
from guests import NOW_MS, Execute, NewEngine, a_start, run_on

from sandbridge_kit.errors import Code, Failure, SandbridgeError
from sandbridge_kit.ports.runner import Answer, Ask, Failed, Finished, RunLimits
from sandbridge_runner.service import PoolRunner

pytestmark = pytest.mark.asyncio(loop_scope="module")

MIB = 1024 * 1024
SPINNING = {
    "loop": "while (true) {}",
    "microtasks": "(async () => { for (;;) await null })()\nreturn await new Promise(() => {})",
    "pattern": "return /^(a+)+$/.test('a'.repeat(40) + 'b')",
    "timers": "for (;;) await new Promise((r) => setTimeout(r, 1))",
    "getter": "return {get x() { for (;;); }}",
}


@pytest.mark.parametrize("code", SPINNING.values(), ids=SPINNING.keys())
async def test_a_script_that_does_not_end_is_ended_at_its_limit(execute: Execute, code: str) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    failure = (await execute(code, wall_clock_ms=400)).failure

    assert (failure.code, loop.time() - began < 0.4 + 0.5) == (Code.TIMED_OUT, True)


HUNGRY = {
    "one big array": "const a = new Uint8Array(1 << 30); a.fill(1); return a.length",
    "many small arrays": "const a = []; for (;;) { const b = new Uint8Array(1 << 16); b.fill(1); a.push(b) }",
    "an array too big for anyone": "return new ArrayBuffer(2 ** 45)",
    "heap": "const a = []; for (;;) a.push({n: a.length})",
    "strings": "const a = []; for (let i = 0; ; i++) a.push('x'.repeat(1000) + i)",
    "one string": "let s = 'x'; for (;;) s += s",
    "wasm": (
        "const m = new WebAssembly.Memory({initial: 1, maximum: 65536});"
        "for (;;) { m.grow(64); new Uint8Array(m.buffer).fill(1) }"
    ),
    "shared buffer": "const a = new Uint8Array(new SharedArrayBuffer(1 << 30)); a.fill(1); return 1",
}


@pytest.mark.parametrize("groups", [False, True], ids=["watched", "control group"])
@pytest.mark.parametrize("code", HUNGRY.values(), ids=HUNGRY.keys())
async def test_memory_beyond_the_limit_is_named_and_bounded(code: str, groups: bool, new_engine: NewEngine) -> None:
    limit = 128 * MIB
    async with PoolRunner(new_engine(use_groups=groups), spares=1) as runner:
        ran = await run_on(runner, a_start(code, memory_bytes=limit, wall_clock_ms=20_000))

    assert (ran.failure.code, (ran.finished.peak_memory_bytes or 0) <= 1.5 * limit) == (Code.MEMORY_EXCEEDED, True)


async def test_a_refused_allocation_that_the_script_catches_is_its_own_affair(execute: Execute) -> None:
    assert (await execute("try { return new ArrayBuffer(2 ** 45) } catch { return 'caught' }")).result == "caught"


async def test_code_that_is_too_large_is_refused_before_a_guest_is_spent(new_engine: NewEngine) -> None:
    async with PoolRunner(new_engine(), spares=1) as runner:
        with pytest.raises(SandbridgeError) as raised:
            async with runner.open(a_start("x" * (256 * 1024 + 1))):
                pass
        left = runner.status().idle_spares

    assert (raised.value.failure.code, left) == (Code.CODE_TOO_LARGE, 1)


async def test_a_run_more_than_there_are_slots_is_at_capacity(new_engine: NewEngine) -> None:
    async with PoolRunner(new_engine(), slots=1, spares=1) as runner, runner.open(a_start("while(true){}")):
        with pytest.raises(SandbridgeError) as raised:
            async with runner.open(a_start("return 1")):
                pass

    assert raised.value.failure.code is Code.AT_CAPACITY


async def test_limits_are_clamped_to_the_ceilings(new_engine: NewEngine) -> None:
    async with PoolRunner(new_engine(), spares=1, ceilings=RunLimits(wall_clock_ms=300)) as runner:
        failure = (await run_on(runner, a_start("while(true){}", wall_clock_ms=60_000))).failure

    assert failure.message == "the script ran longer than 300 ms"


async def test_a_cancelled_run_ends_with_the_reason_given(runner: PoolRunner) -> None:
    reason = Failure(Code.CANCELLED, "the client went away")
    async with runner.open(a_start("while(true){}")) as run:
        await run.cancel(reason)
        events = [event async for event in run.events()]

    assert events[-1] == Finished(Failed(reason), events[-1].peak_memory_bytes)  # type: ignore[union-attr]


async def test_a_guest_that_does_not_read_holds_up_only_its_own_answers(runner: PoolRunner) -> None:
    code = "api.a(); const end = Date.now; while (true) {}"
    body = b'"' + b"x" * (8 * MIB) + b'"'
    async with runner.open(a_start(code, in_flight_bytes=MIB)) as run:
        stuck: asyncio.Task[None] | None = None
        async for event in run.events():
            if hasattr(event, "seq"):
                answer = Answer(event.seq, NOW_MS, {"status": 200, "payload": {"kind": "json"}}, body)
                stuck = asyncio.create_task(run.answer(answer))
                other = await run_on(runner, a_start("return 2"))
                held = not stuck.done()
                await run.cancel(Failure(Code.CANCELLED, "enough"))
        assert stuck is not None
        await stuck

    assert (other.result, held) == (2, True)


async def test_asks_beyond_the_bodies_in_flight_wait_in_the_guest(runner: PoolRunner) -> None:
    code = "for (let i = 0; i < 64; i++) api.a({body: new Uint8Array(1 << 20)}); return 1"
    async with runner.open(a_start(code, in_flight_bytes=4 * MIB)) as run:
        await asyncio.sleep(0.5)
        held = run._held_bytes  # type: ignore[attr-defined]
        count = 0
        async for event in run.events():
            if hasattr(event, "seq"):
                count += 1
                await run.answer(Answer(event.seq, NOW_MS, {"status": 200}))

    assert (held <= 6 * MIB, count) == (True, 64)


async def test_asks_that_are_read_but_not_answered_count_as_held(runner: PoolRunner) -> None:
    code = "for (let i = 0; i < 16; i++) api.a({body: new Uint8Array(1 << 20)}); return 1"
    async with runner.open(a_start(code, in_flight_bytes=4 * MIB)) as run:
        events = run.events()
        ahead = asyncio.ensure_future(anext(events))
        unanswered: list[int] = []
        while (await asyncio.wait([ahead], timeout=0.5))[0]:
            unanswered += [ahead.result().seq] if isinstance(ahead.result(), Ask) else []  # type: ignore[union-attr]
            ahead = asyncio.ensure_future(anext(events))
        held = len(unanswered)
        for seq in unanswered:
            await run.answer(Answer(seq, NOW_MS, {"status": 200}))
        count = held
        event = await ahead
        while not isinstance(event, Finished):
            count += 1
            await run.answer(Answer(event.seq, NOW_MS, {"status": 200}))  # type: ignore[union-attr]
            event = await anext(events)

    assert (held <= 6, count) == (True, 16)

"""What is too much ends the run from outside, with the right name, in time, and no other run notices."""

from __future__ import annotations

import asyncio
import os

import psutil
import pytest
from bombs import BALLOONS, CROWDS, DEEP, ENDLESS, FLOODS, Bomb
from guest_trees import tasks_below
from guests import Execute, Ran, a_start, run_on

from sandbridge_kit.errors import Code, SandbridgeError
from sandbridge_kit.ports.runner import Ask
from sandbridge_runner.service import PoolRunner

MIB = 1024 * 1024
SLACK_S = 1.0
LIMIT_MS = 400
pytestmark = pytest.mark.asyncio(loop_scope="session")


def slack() -> float:
    """The second after a limit, stretched where the machine has more to do than its processors can."""
    return SLACK_S * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


async def ends(runner: PoolRunner, bomb: Bomb, **limits: int) -> Ran:
    """Run it; check code and time, and that the next run is none the worse."""
    loop = asyncio.get_running_loop()
    limit_s = limits["wall_clock_ms"] / 1000
    async with runner.open(a_start(bomb.code, **limits)) as run:
        began = loop.time()
        ran = Ran([event async for event in run.events()])
        took = loop.time() - began
    after = await run_on(runner, a_start("return 6 * 7"))

    assert (ran.failure.code in bomb.ends, took < limit_s + slack(), after.result) == (True, True, 42), (
        ran.failure,
        took,
    )
    return ran


@pytest.mark.parametrize("way", ENDLESS)
async def test_s04_s05_a_script_that_does_not_end_is_ended_at_its_limit(runner: PoolRunner, way: str) -> None:
    await ends(runner, ENDLESS[way], wall_clock_ms=LIMIT_MS)


@pytest.mark.parametrize("way", BALLOONS)
async def test_s02_memory_beyond_the_limit_is_named_and_bounded(runner: PoolRunner, way: str) -> None:
    limit = 128 * MIB
    ran = await ends(runner, BALLOONS[way], memory_bytes=limit, wall_clock_ms=20_000)

    assert (ran.finished.peak_memory_bytes or 0) <= 1.5 * limit


@pytest.mark.parametrize("way", FLOODS)
async def test_s07_a_flood_of_output_is_cut_off_and_never_held_in_memory(runner: PoolRunner, way: str) -> None:
    process = psutil.Process()
    before = process.memory_info().rss
    await ends(runner, FLOODS[way], wall_clock_ms=2 * LIMIT_MS)

    assert process.memory_info().rss - before < 120 * MIB


@pytest.mark.parametrize("way", CROWDS)
async def test_s01_a_script_starts_no_process_and_no_thread(runner: PoolRunner, way: str) -> None:
    most = 0
    async with runner.open(a_start(CROWDS[way], wall_clock_ms=3000)) as run:
        idle = tasks_below(run)
        reading = asyncio.ensure_future(_all(run))
        while not reading.done():
            most = max(most, tasks_below(run))
            await asyncio.wait([reading], timeout=0.02)
    after = await run_on(runner, a_start("return 6 * 7"))

    assert (reading.result().failure.code, most <= idle + 4, after.result) == (Code.SCRIPT_ERROR, True, 42), most


async def _all(run: object) -> Ran:
    return Ran([event async for event in run.events()])  # type: ignore[attr-defined]


@pytest.mark.parametrize("way", DEEP)
async def test_s07_whatever_is_deep_or_long_ends_one_run_only(execute: Execute, way: str) -> None:
    ran = await execute(DEEP[way], wall_clock_ms=5 * LIMIT_MS, memory_bytes=128 * MIB)
    after = await execute("return 6 * 7")

    assert (ran.finished.outcome is not None, after.result) == (True, 42)


async def test_four_balloons_at_once_are_each_named_and_bounded(runner: PoolRunner) -> None:
    limit = 96 * MIB
    starts = [a_start(BALLOONS["typed arrays"].code, memory_bytes=limit, wall_clock_ms=20_000) for _ in range(4)]
    rans = await asyncio.gather(*(run_on(runner, start) for start in starts))

    codes = [ran.failure.code for ran in rans]
    peaks = [(ran.finished.peak_memory_bytes or 0) <= 1.5 * limit for ran in rans]
    assert (codes, peaks) == ([Code.MEMORY_EXCEEDED] * 4, [True] * 4)


async def test_s25_code_that_is_too_large_is_refused_before_a_guest_is_spent(runner: PoolRunner) -> None:
    with pytest.raises(SandbridgeError) as raised:
        async with runner.open(a_start("x" * (256 * 1024 + 1))):
            pass

    assert raised.value.failure.code is Code.CODE_TOO_LARGE


TEXTS: dict[str, tuple[str, object]] = {
    "largest code": ("/*" + "x" * (256 * 1024 - 13) + "*/return 1", 1),
    "null bytes": ("return 'a\0b'.length", 3),
    "mark of byte order": ("\ufeffreturn 1", 1),
    "line separators": ("return 'a\u2028b\u2029c'.length", 5),
    "closing tags": ("return '</script>--></api-text>'.length", 23),
    "lone surrogate": ("return '\ud800'.length", 1),
    "direction marks": ("/* \u202e */ return '\u2066'.length", 1),
    "end of the wrapper": ("}); return 1; (() => {", Code.SYNTAX_ERROR),
    "start of a comment": ("return 1 /*", Code.SYNTAX_ERROR),
    "a template left open": ("return `1", Code.SYNTAX_ERROR),
    "a shebang": ("#!/usr/bin/env node\nreturn 1", Code.SYNTAX_ERROR),
    "a comment in HTML": ("<!-- x\nreturn 1", None),
    "nothing": ("", None),
}


@pytest.mark.parametrize("kind", TEXTS)
async def test_s25_any_text_is_code_or_an_error_in_it(execute: Execute, kind: str) -> None:
    code, expected = TEXTS[kind]
    ran = await execute(code)
    ended = getattr(ran.finished.outcome, "failure", None)

    assert expected is None or (ended.code if ended else ran.result) == expected


async def test_limits_of_one_run_are_not_those_of_the_next(execute: Execute) -> None:
    small = await execute("return 'x'.repeat(2000)", result_bytes=1000)
    large = await execute("return 'x'.repeat(2000).length")
    console = await execute("for (let i = 0; i < 500; i++) console.log('x'.repeat(100)); return 1", console_bytes=4096)

    texts = [text for _, text in console.logs]
    assert (small.failure.code, large.result, sum(map(len, texts)) <= 4096 + 64) == (Code.OUTPUT_EXCEEDED, 2000, True)


async def test_an_ask_that_is_never_answered_ends_with_the_run(execute: Execute) -> None:
    ran = await execute("return await api.a()", lambda ask: None, wall_clock_ms=LIMIT_MS)

    assert (ran.failure.code, [isinstance(ask, Ask) for ask in ran.asks]) == (Code.TIMED_OUT, [True])

"""Warm guests: single use, refilled, replaced when they die or grow old, and none left behind."""

from __future__ import annotations

import asyncio

import pytest
from guests import a_start, run_on
from shell_guests import READY, RETURNS, ShellEngine, a_frame

from sandbridge_kit.errors import Code, SandbridgeError
from sandbridge_kit.ports.runner import RunnerStatus
from sandbridge_runner.pool import PoolSettings, WarmPool
from sandbridge_runner.service import PoolRunner


async def until(condition: object, within: float = 5.0) -> bool:
    """Wait until `condition()` holds; False where it does not come true."""
    assert callable(condition)
    end = asyncio.get_running_loop().time() + within
    while not condition():
        if asyncio.get_running_loop().time() > end:
            return False
        await asyncio.sleep(0.005)
    return True


async def test_a_guest_serves_one_run_and_the_pool_is_filled_again() -> None:
    engine = ShellEngine(RETURNS)
    async with PoolRunner(engine, slots=3, spares=2) as runner:
        before = runner.status()
        results = [(await run_on(runner, a_start("x"))).result for _ in range(3)]
        filled = await until(lambda: runner.status().idle_spares == 2)
        leased = len(engine.guests)

    assert (before, results, filled, leased) == (RunnerStatus(3, 0, 2), [7, 7, 7], True, 5)


async def test_an_empty_pool_starts_a_guest_for_the_run() -> None:
    async with PoolRunner(ShellEngine(RETURNS), spares=0) as runner:
        assert (await run_on(runner, a_start("x"))).result == 7


async def test_a_spare_that_dies_is_replaced() -> None:
    engine = ShellEngine(RETURNS)
    async with PoolRunner(engine, spares=1, pool=PoolSettings(first_backoff=0.01)) as runner:
        engine.guests[0].kill()
        await until(lambda: len(engine.guests) == 2)
        replaced = await until(lambda: runner.status().idle_spares == 1)

    assert replaced


async def test_a_guest_that_never_starts_is_tried_again_more_and_more_slowly() -> None:
    engine = ShellEngine("exit 3")
    pool = WarmPool(engine, PoolSettings(spares=1, first_backoff=0.02, last_backoff=10))
    pool.refill_after(0)
    await asyncio.sleep(0.5)
    tried = len(engine.guests)
    await pool.close()

    assert 2 <= tried <= 7


async def test_a_runner_whose_engine_does_not_start_says_so_and_leaves_nothing() -> None:
    engine = ShellEngine("exit 3")
    with pytest.raises(SandbridgeError) as raised:
        await PoolRunner(engine, spares=1).start()

    assert (raised.value.failure.code, engine.is_disposed) == (Code.SANDBOX_LOST, True)


async def test_a_guest_that_says_nothing_is_given_up() -> None:
    engine = ShellEngine("exec sleep 30")
    with pytest.raises(SandbridgeError) as raised:
        await PoolRunner(engine, spares=1, pool=PoolSettings(ready_timeout=0.1)).start()

    assert "did not start in time" in raised.value.failure.message


async def test_an_old_spare_is_replaced_by_a_young_one() -> None:
    engine = ShellEngine(RETURNS)
    async with PoolRunner(engine, spares=1, pool=PoolSettings(max_age=0.1)) as runner:
        assert await until(lambda: len(engine.guests) >= 3 and runner.status().idle_spares == 1)


async def test_stopping_ends_runs_and_leaves_no_guest() -> None:
    engine = ShellEngine(f"{READY}; exec sleep 30")
    runner = PoolRunner(engine, spares=2)
    await runner.start()
    running = asyncio.create_task(run_on(runner, a_start("x")))
    await until(lambda: runner.status().running == 1)
    await runner.stop()

    assert ((await running).failure.code, [guest.ended() is None for guest in engine.guests].count(True)) == (
        Code.CANCELLED,
        0,
    )


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 0", Code.GUEST_EXITED),
        ("exit 1", Code.GUEST_EXITED),
        ("exec 1>&-; exit 0", Code.GUEST_EXITED),
        ("echo this is no frame; exec sleep 30", Code.GUEST_EXITED),
        (f"printf '{a_frame({'t': 'finished', 'ok': True}, b'1') * 2}'; exec sleep 30", Code.GUEST_EXITED),
        ("kill -9 $$", Code.SANDBOX_LOST),
        ("echo 'Fatal process out of memory' >&2; kill -6 $$", Code.MEMORY_EXCEEDED),
    ],
)
async def test_a_guest_that_goes_its_own_way_is_an_error_never_a_success(script: str, code: Code) -> None:
    engine = ShellEngine(f"{READY}; head -c 8 >/dev/null; {script}")
    async with PoolRunner(engine, spares=1) as runner:
        assert (await run_on(runner, a_start("x"))).failure.code is code


async def test_a_slot_is_free_again_after_every_kind_of_end() -> None:
    engine = ShellEngine(f"{READY}; head -c 8 >/dev/null; exit 1")
    async with PoolRunner(engine, slots=1, spares=1) as runner:
        for _ in range(5):
            await run_on(runner, a_start("x"))
        with pytest.raises(ZeroDivisionError):
            async with runner.open(a_start("x")):
                raise ZeroDivisionError

        assert (runner.status().free_slots, runner.status().running) == (1, 0)

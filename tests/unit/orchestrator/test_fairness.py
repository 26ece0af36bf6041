"""Each caller has a share of what all use, and no more."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import pytest

from sandbridge_kit.errors import Code, SandbridgeError, fail
from sandbridge_kit.identity import Caller
from sandbridge_orchestrator.adapters import fair_share
from sandbridge_orchestrator.adapters.fair_share import FairShare
from sandbridge_orchestrator.core.buckets import Bucket
from sandbridge_orchestrator.core.fairness import CallerLimits, TooMuch, Usage, begun, called, ended, unused

LIMITS = CallerLimits(runs_at_once=2, runs_per_minute=30, burst=3, calls_per_hour=7_200)
ANNA, BEN = (Caller(issuer="https://id.example", subject=name, client="c") for name in ("anna", "ben"))


def usage(running: int = 0, runs: float = 3, calls: float = 7_200) -> Usage:
    return Usage(running, Bucket(runs, 100.0), Bucket(calls, 100.0))


@pytest.mark.parametrize(
    ("before", "now_s", "after"),
    [
        (unused(LIMITS, 100), 100, usage(running=1, runs=2)),
        (usage(running=1, runs=1), 100, usage(running=2, runs=0)),
        (usage(running=2), 100, TooMuch("runs at once", 1.0)),
        (usage(runs=0), 100, TooMuch("runs", 2.0)),
        (usage(runs=0.5), 100, TooMuch("runs", 1.0)),
        (usage(runs=0), 101, TooMuch("runs", 1.0)),
        (usage(runs=0), 102, Usage(1, Bucket(0, 102), Bucket(7_200, 100.0))),
        (usage(runs=0), 1_000, Usage(1, Bucket(2, 1_000), Bucket(7_200, 100.0))),
        (usage(runs=1), 50, Usage(1, Bucket(0, 50), Bucket(7_200, 100.0))),
    ],
)
def test_a_run_begins_or_is_told_when_to_come_back(before: Usage, now_s: float, after: Usage | TooMuch) -> None:
    assert begun(before, LIMITS, now_s) == after


@pytest.mark.parametrize(
    ("before", "refund", "after"),
    [
        (usage(running=2, runs=1), False, usage(running=1, runs=1)),
        (usage(running=1, runs=1), True, usage(running=0, runs=2)),
        (usage(running=1, runs=3), True, usage(running=0, runs=3)),
    ],
)
def test_a_run_that_never_came_to_a_sandbox_does_not_count(before: Usage, refund: bool, after: Usage) -> None:
    assert ended(before, LIMITS, refund=refund) == after


@pytest.mark.parametrize(
    ("left", "now_s", "after"),
    [(1, 100, usage(calls=0)), (0, 100, TooMuch("calls", 0.5)), (0, 100.5, Usage(0, Bucket(3, 100), Bucket(0, 100.5)))],
)
def test_calls_are_counted_over_an_hour(left: float, now_s: float, after: Usage | TooMuch) -> None:
    assert called(usage(calls=left), LIMITS, now_s) == after


class Places:
    """As many as are asked for, until it is full."""

    def __init__(self) -> None:
        self.is_full = False
        self.held = 0

    @contextlib.asynccontextmanager
    async def admit(self, caller: Caller) -> AsyncIterator[None]:
        if self.is_full:
            raise fail(Code.AT_CAPACITY, "full", retry_after_ms=1_000)
        self.held += 1
        try:
            yield
        finally:
            self.held -= 1

    def spend(self, caller: Caller) -> None:
        pass


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def refusal(error: pytest.ExceptionInfo[SandbridgeError]) -> tuple[Code, int | None]:
    return error.value.failure.code, error.value.failure.retry_after_ms


async def run_once(share: FairShare, caller: Caller) -> None:
    async with share.admit(caller):
        pass


async def test_a_caller_that_is_busy_keeps_nobody_else_out() -> None:
    places = Places()
    share = FairShare(places, LIMITS, monotonic=Clock())

    async with share.admit(ANNA), share.admit(ANNA):
        with pytest.raises(SandbridgeError) as busy:
            await run_once(share, ANNA)
        await run_once(share, BEN)
    await run_once(share, ANNA)

    assert (refusal(busy), places.held) == ((Code.CALLER_BUSY, 1_000), 0)


async def test_a_burst_is_followed_by_the_steady_rate() -> None:
    clock = Clock()
    share = FairShare(Places(), LIMITS, monotonic=clock)
    for _ in range(3):
        await run_once(share, ANNA)
    with pytest.raises(SandbridgeError) as early:
        await run_once(share, ANNA)
    clock.now_s += 2
    await run_once(share, ANNA)
    with pytest.raises(SandbridgeError) as again:
        await run_once(share, ANNA)

    assert (refusal(early), refusal(again)) == ((Code.RATE_LIMITED, 2_000),) * 2


async def test_a_run_for_which_there_was_no_place_is_given_back() -> None:
    places = Places()
    share = FairShare(places, LIMITS, monotonic=Clock())
    places.is_full = True
    for _ in range(10):
        with pytest.raises(SandbridgeError) as full:
            await run_once(share, ANNA)
    places.is_full = False
    for _ in range(3):
        await run_once(share, ANNA)

    assert refusal(full) == (Code.AT_CAPACITY, 1_000)


async def test_a_run_that_failed_in_its_sandbox_counts() -> None:
    share = FairShare(Places(), LIMITS, monotonic=Clock())
    for _ in range(3):
        with contextlib.suppress(SandbridgeError):
            async with share.admit(ANNA):
                raise fail(Code.SANDBOX_LOST, "gone")
    with pytest.raises(SandbridgeError) as error:
        await run_once(share, ANNA)

    assert refusal(error) == (Code.RATE_LIMITED, 2_000)


async def test_calls_of_all_runs_of_a_caller_are_counted_together() -> None:
    share = FairShare(Places(), CallerLimits(calls_per_hour=2), monotonic=Clock())
    for _ in range(2):
        share.spend(ANNA)
    share.spend(BEN)
    with pytest.raises(SandbridgeError) as error:
        share.spend(ANNA)

    assert refusal(error) == (Code.RATE_LIMITED, 1_800_000)


async def test_the_table_of_callers_is_bounded_and_forgets_quiet_ones_first() -> None:
    share = FairShare(Places(), LIMITS, monotonic=Clock())
    async with share.admit(ANNA), share.admit(ANNA):
        for number in range(fair_share.MOST_CALLERS + 10):
            share.spend(Caller(issuer="https://id.example", subject=str(number), client="c"))
        with pytest.raises(SandbridgeError) as error:
            await run_once(share, ANNA)

    assert (len(share._usages), refusal(error)[0]) == (fair_share.MOST_CALLERS, Code.CALLER_BUSY)

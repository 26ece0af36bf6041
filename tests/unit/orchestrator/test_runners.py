"""Several runners behind one port, each a scripted one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from sandbridge_kit.errors import Code, SandbridgeError, fail
from sandbridge_kit.ports.runner import Run, RunnerStatus, Start
from sandbridge_kit.testing import ScriptedGuest, ScriptedRunner
from sandbridge_orchestrator.runners import QueueSettings, Runners


async def returns_one(guest: ScriptedGuest) -> int:
    return 1


@dataclass
class Remote:
    """A runner at an address: what it takes and what it says of itself can differ, as over a network."""

    address: str
    slots: int = 1
    is_connected: bool = True
    stated_slots: int | None = None
    refusal: SandbridgeError | None = None
    late_status: RunnerStatus | None = None
    """What it says of itself until `tell` is called, where that is not the truth of the moment."""
    begun: list[str] = field(default_factory=list)
    asked: int = 0
    closed: bool = False
    changed: Callable[[], None] = lambda: None
    heard: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self._inner = ScriptedRunner(returns_one, slots=self.slots)
        self.joined = asyncio.Event()

    def status(self) -> RunnerStatus:
        if self.late_status is not None:
            return self.late_status
        slots = self.slots if self.stated_slots is None else self.stated_slots
        return RunnerStatus(max(0, slots - self._inner.running), self._inner.running, 0)

    @contextlib.asynccontextmanager
    async def open(self, start: Start) -> AsyncIterator[Run]:
        self.asked += 1
        await asyncio.sleep(0)
        if self.refusal is not None:
            raise self.refusal
        try:
            async with self._inner.open(start) as run:
                self.begun.append(start.run_id)
                yield run
        finally:
            self.changed()


class Pool:
    """Runners by address, whichever are listed at the moment."""

    def __init__(self, *remotes: Remote) -> None:
        self.remotes = {remote.address: remote for remote in remotes}
        self.listed = set(self.remotes)
        self.fails = False

    async def discover(self) -> frozenset[str]:
        if self.fails:
            raise OSError("no answer")
        return frozenset(self.listed)

    @contextlib.asynccontextmanager
    async def connect(self, address: str, on_status: Callable[[], None]) -> AsyncIterator[Remote]:
        self.remotes[address].changed = on_status
        self.remotes[address].joined.set()
        yield self.remotes[address]
        self.remotes[address].closed = True

    def runners(self, **settings: Any) -> Runners:
        return Runners(self.discover, self.connect, QueueSettings(**{"discover_s": 0.01, **settings}))

    @property
    def begun(self) -> dict[str, list[str]]:
        return {address: remote.begun for address, remote in self.remotes.items()}


def start(run_id: str) -> Start:
    return Start(run_id=run_id, code="", now_ms=0, seed=bytes(32), api_names=())


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_runs_go_to_the_least_busy_runner_also_when_they_start_together() -> None:
    pool = Pool(Remote("a", slots=2), Remote("b", slots=2))
    release = asyncio.Event()

    async def hold(name: str) -> None:
        async with runners.open(start(name)):
            await release.wait()

    async with pool.runners() as runners:
        tasks = [asyncio.create_task(hold(f"run-{number}")) for number in range(4)]
        await settled()
        release.set()
        await asyncio.gather(*tasks)

    assert {address: len(runs) for address, runs in pool.begun.items()} == {"a": 2, "b": 2}


async def test_those_who_wait_are_served_in_the_order_they_came() -> None:
    pool = Pool(Remote("a", slots=1))
    order: list[str] = []

    async def run(name: str) -> None:
        async with runners.open(start(name)):
            order.append(name)
            await asyncio.sleep(0)

    async with pool.runners() as runners:
        await asyncio.gather(*(run(f"run-{number}") for number in range(6)))

    assert order == [f"run-{number}" for number in range(6)]


async def test_a_run_that_one_runner_has_no_room_for_goes_to_the_next() -> None:
    full = Remote("a", refusal=fail(Code.AT_CAPACITY, "full"), slots=4)
    pool = Pool(full, Remote("b", slots=4))

    async with pool.runners() as runners:
        for number in range(3):
            async with runners.open(start(f"run-{number}")):
                pass

    assert pool.begun == {"a": [], "b": ["run-0", "run-1", "run-2"]}


@pytest.mark.parametrize("reachable", [True, False])
async def test_a_runner_that_cannot_be_reached_is_passed_over(reachable: bool) -> None:
    gone = Remote("a", is_connected=reachable, refusal=fail(Code.SANDBOX_LOST, "unreachable"))
    pool = Pool(gone, Remote("b"))

    async with pool.runners() as runners:
        for number in range(3):
            async with runners.open(start(f"run-{number}")):
                pass

    assert pool.begun["b"] == ["run-0", "run-1", "run-2"]


async def test_what_a_runner_says_of_the_run_itself_is_not_tried_elsewhere() -> None:
    pool = Pool(*(Remote(name, refusal=fail(Code.CODE_TOO_LARGE, "long")) for name in "ab"))

    async with pool.runners() as runners:
        with pytest.raises(SandbridgeError) as caught:
            async with runners.open(start("run")):
                pass

    assert caught.value.failure.code is Code.CODE_TOO_LARGE


async def test_a_second_start_of_a_run_goes_elsewhere_and_stays_where_there_is_nothing_else() -> None:
    pool = Pool(Remote("a", slots=4), Remote("b", slots=4))

    async with pool.runners() as runners:
        for name in ("twice", "other", "twice"):
            async with runners.open(start(name)):
                pass
        pool.listed = {"a"}
        while runners.status().free_slots > 4:
            await asyncio.sleep(0.001)
        for _ in range(2):
            async with runners.open(start("only-a")):
                pass

    assert (sorted(pool.begun["a"]), pool.begun["b"]) == (["only-a", "only-a", "twice"], ["other", "twice"])


async def test_a_full_queue_turns_away_at_once_and_a_long_wait_ends_with_the_time_to_come_back() -> None:
    pool = Pool(Remote("a", slots=1))

    async def refused() -> SandbridgeError:
        with pytest.raises(SandbridgeError) as caught:
            async with runners.open(start("waits")):
                pass
        return caught.value

    async with pool.runners(timeout_ms=50, for_each_slot=2) as runners, runners.open(start("runs")):
        errors = await asyncio.gather(*(refused() for _ in range(3)))

    told = [(error.failure.code, error.failure.message, error.failure.retryable) for error in errors]
    assert told == [
        (Code.AT_CAPACITY, "No sandbox became free within 0.05 s.", True),
        (Code.AT_CAPACITY, "No sandbox became free within 0.05 s.", True),
        (Code.AT_CAPACITY, "All sandboxes are in use and the queue is full.", True),
    ]
    assert all(error.failure.retry_after_ms for error in errors)


async def test_who_is_cancelled_while_waiting_leaves_the_slot_to_the_next() -> None:
    pool = Pool(Remote("a", slots=1))

    async def run(name: str) -> None:
        async with runners.open(start(name)):
            pass

    async with pool.runners() as runners:
        async with runners.open(start("first")):
            waiting = [asyncio.create_task(run(name)) for name in ("second", "third")]
            await settled()
            waiting[0].cancel()
        await asyncio.wait_for(waiting[1], 5)
        async with runners.open(start("fourth")):
            pass

    assert pool.begun["a"] == ["first", "third", "fourth"]


@pytest.mark.parametrize("steps", range(12))
async def test_who_is_cancelled_in_the_moment_of_its_turn_gives_the_slot_back(steps: int) -> None:
    pool = Pool(Remote("a", slots=1))

    async def run(name: str) -> None:
        async with runners.open(start(name)):
            pass

    async with pool.runners() as runners:
        held = contextlib.AsyncExitStack()
        await held.enter_async_context(runners.open(start("first")))
        second = asyncio.create_task(run("second"))
        await settled()
        closing = asyncio.create_task(held.aclose())
        for _ in range(steps):
            await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait([second])
        await closing
        await asyncio.wait_for(run("third"), 5)

    assert pool.begun["a"][-1] == "third"


async def test_runners_join_and_leave_as_their_addresses_do() -> None:
    pool = Pool(Remote("a"), Remote("b"))
    pool.listed = {"a"}

    async with pool.runners() as runners:
        async with runners.open(start("on-a")):
            pool.listed = {"b"}
            await asyncio.wait_for(pool.remotes["b"].joined.wait(), 5)
            async with runners.open(start("on-b")):
                left_open = not pool.remotes["a"].closed
        await settled()
        closed = pool.remotes["a"].closed

    assert (pool.begun, left_open, closed) == ({"a": ["on-a"], "b": ["on-b"]}, True, True)


async def test_runners_stay_while_their_addresses_cannot_be_looked_up() -> None:
    pool = Pool(Remote("a"))

    async with pool.runners() as runners:
        pool.fails = True
        await asyncio.sleep(0.03)
        async with runners.open(start("run")):
            pass

    assert pool.begun == {"a": ["run"]}


async def test_without_any_runner_the_wait_ends_with_that_reason() -> None:
    pool = Pool(Remote("a", is_connected=False))

    async with pool.runners(timeout_ms=20) as runners:
        with pytest.raises(SandbridgeError, match="No runner can be reached"):
            async with runners.open(start("run")):
                pass


async def test_closing_turns_away_who_waits_and_lets_runs_end() -> None:
    pool = Pool(Remote("a", slots=1))

    async def refused() -> Code:
        with pytest.raises(SandbridgeError) as caught:
            async with runners.open(start("waits")):
                pass
        return caught.value.failure.code

    async with pool.runners() as runners, runners.open(start("runs")) as run:
        waiting = asyncio.create_task(refused())
        await settled()
        runners.close()
        codes = [await waiting, await refused()]
        events = [type(event).__name__ async for event in run.events()]

    assert (codes, events) == ([Code.AT_CAPACITY] * 2, ["Started", "Finished"])


async def test_a_status_that_is_late_costs_a_try_but_no_run() -> None:
    pool = Pool(Remote("a", slots=1, stated_slots=3), Remote("b", slots=1))

    async def run(name: str) -> None:
        async with runners.open(start(name)):
            await asyncio.sleep(0)

    async with pool.runners() as runners:
        await asyncio.gather(*(run(f"run-{number}") for number in range(8)))

    assert sorted(pool.begun["a"] + pool.begun["b"]) == [f"run-{number}" for number in range(8)]


async def test_own_runs_count_before_a_status_tells_of_them() -> None:
    remote = Remote("a", slots=1, late_status=RunnerStatus(1, 0, 0))
    pool = Pool(remote)

    async def run(name: str) -> None:
        async with runners.open(start(name)):
            await asyncio.sleep(0)

    async with pool.runners() as runners:
        await asyncio.gather(*(run(f"run-{number}") for number in range(5)))

    assert (len(remote.begun), remote.asked) == (5, 5)


async def test_runs_of_other_orchestrators_count_from_the_status_on() -> None:
    remote = Remote("a", slots=2, late_status=RunnerStatus(2, 0, 0))
    pool = Pool(remote)

    async with pool.runners(timeout_ms=30) as runners:
        async with runners.open(start("ours")):
            # Two of theirs and one of ours is more than it has: the last status is a moment old.
            remote.late_status = RunnerStatus(0, 2, 0)
            remote.changed()
            with pytest.raises(SandbridgeError):
                async with runners.open(start("too many")):
                    pass
        remote.late_status = RunnerStatus(1, 1, 0)
        remote.changed()
        async with runners.open(start("next")):
            pass

    assert remote.begun == ["ours", "next"]


async def test_a_full_runner_is_tried_again_as_soon_as_it_says_that_it_has_room() -> None:
    remote = Remote("a", refusal=fail(Code.AT_CAPACITY, "full"))
    pool = Pool(remote)

    async def run() -> None:
        async with runners.open(start("run")):
            pass

    # Time stands still: a rest would never end by itself.
    async with Runners(pool.discover, pool.connect, QueueSettings(), monotonic=lambda: 0.0) as runners:
        waiting = asyncio.create_task(run())
        while not remote.asked:
            await asyncio.sleep(0)
        await settled()
        remote.refusal = None
        remote.changed()
        await asyncio.wait_for(waiting, 5)

    assert remote.begun == ["run"]


class Shared:
    """One runner with one slot that two orchestrators see, each by a status that comes a moment after a change."""

    def __init__(self) -> None:
        self.inner = ScriptedRunner(returns_one, slots=1)
        self.views: list[Remote] = []

    @contextlib.asynccontextmanager
    async def connect(self, address: str, on_status: Callable[[], None]) -> AsyncIterator[Remote]:
        view = Remote(address, late_status=RunnerStatus(1, 0, 0))
        view._inner, view.changed = self.inner, self.told
        self.views.append(view)
        view.heard = on_status
        yield view

    def told(self) -> None:
        asyncio.get_running_loop().call_later(0.002, self._tell)

    def _tell(self) -> None:
        for view in self.views:
            view.late_status = self.inner.status()
            view.heard()


async def test_a_busy_orchestrator_does_not_keep_another_out() -> None:
    shared, order = Shared(), []
    pool = Pool()
    pool.listed = {"a"}

    async def run(runners: Runners, name: str) -> None:
        async with runners.open(start(name)):
            order.append(name)
            await asyncio.sleep(0)

    settings = QueueSettings(for_each_slot=100)
    async with (
        Runners(pool.discover, shared.connect, settings) as first,
        Runners(pool.discover, shared.connect, settings) as second,
    ):
        busy = [asyncio.create_task(run(first, "first")) for _ in range(60)]
        await settled()
        other = [asyncio.create_task(run(second, "second")) for _ in range(4)]
        await asyncio.wait_for(asyncio.gather(*busy, *other), 20)

    assert (len(order), order.index("second") < 40) == (64, True)

"""Processes that say anything at all in a guest's place: each run ends typed, and the next one is none the wiser."""

from __future__ import annotations

from pathlib import Path

import pytest
from guests import Ran, a_start, run_on
from shell_guests import READY, RETURNS

from sandbridge_kit.ports.runner import Finished
from sandbridge_runner.engines.base import Guest
from sandbridge_runner.engines.process import Launch, ProcessGuest
from sandbridge_runner.service import PoolRunner

CORPUS = sorted((Path(__file__).parents[2] / "unit" / "runner" / "corpus").glob("*.bin"))


class Turns:
    """An engine whose every second guest says what a file holds; the others return 7."""

    build = "turns"

    def __init__(self, saying: str) -> None:
        self.saying = saying
        self.spawned = 0

    def prepare(self) -> None:
        pass

    def spawn(self) -> Guest:
        self.spawned += 1
        script = self.saying if self.spawned % 2 else RETURNS
        return ProcessGuest(Launch(["/bin/sh", "-c", script], {"PATH": "/usr/bin:/bin"}))

    def dispose(self) -> None:
        pass


def is_typed(ran: Ran) -> bool:
    kinds = [type(event) for event in ran.events]
    return kinds[-1] is Finished and kinds.count(Finished) == 1


@pytest.mark.parametrize("after", ["exec sleep 30", "exit 0"], ids=["and stays", "and leaves"])
async def test_whatever_a_guest_says_ends_its_own_run_and_no_other(after: str) -> None:
    ends, results = {}, []
    for path in CORPUS:
        engine = Turns(f"{READY}; head -c 8 >/dev/null; cat {path}; {after}")
        async with PoolRunner(engine, slots=1, spares=0) as runner:
            hostile = await run_on(runner, a_start("x", wall_clock_ms=300), lambda ask: None)
            results.append((await run_on(runner, a_start("x"))).result)
        ends[path.stem] = is_typed(hostile)

    assert (ends, set(results)) == (dict.fromkeys(ends, True), {7})

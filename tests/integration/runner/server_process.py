"""A process that runs an endless script and says which guests it has. Started by the tests, and killed by them."""

from __future__ import annotations

import asyncio
import json
import sys

from sandbridge_kit.ports.runner import RunLimits, Start
from sandbridge_runner.engines.base import Guest
from sandbridge_runner.engines.deno import DenoEngine
from sandbridge_runner.service import PoolRunner


class Noting(DenoEngine):
    """Remembers what it started."""

    def __init__(self, dies_by: str) -> None:
        super().__init__(dies_by="watchdog" if dies_by == "watchdog" else "signal")
        self.guests: list[Guest] = []

    def spawn(self) -> Guest:
        guest = super().spawn()
        self.guests.append(guest)
        return guest


async def main(dies_by: str) -> None:
    engine = Noting(dies_by)
    start = Start("r", "while(true){}", 0, bytes(32), (), RunLimits())
    async with PoolRunner(engine, spares=2) as runner, runner.open(start):
        await asyncio.sleep(0.5)
        print(json.dumps([pid for guest in engine.guests for pid in guest.pids]), flush=True)
        await asyncio.sleep(60)


asyncio.run(main(sys.argv[1]))

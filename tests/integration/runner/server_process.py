"""A process that runs an endless script and says which guests it has. Started by the tests, and killed by them."""

from __future__ import annotations

import asyncio
import json
import sys

from guests import SOFT_ENGINES

from sandbridge_kit.ports.runner import RunLimits, Start
from sandbridge_runner.engines.base import Engine, Guest
from sandbridge_runner.service import PoolRunner


class Noting:
    """An engine that remembers what it started."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.guests: list[Guest] = []
        self.build = engine.build
        self.prepare = engine.prepare
        self.dispose = engine.dispose

    def spawn(self) -> Guest:
        guest = self.engine.spawn()
        self.guests.append(guest)
        return guest


async def main(name: str, dies_by: str) -> None:
    engine = Noting(SOFT_ENGINES[name](dies_by=dies_by))
    start = Start("r", "while(true){}", 0, bytes(32), (), RunLimits())
    async with PoolRunner(engine, spares=2) as runner, runner.open(start):
        await asyncio.sleep(0.5)
        print(json.dumps([pid for guest in engine.guests for pid in guest.pids]), flush=True)
        await asyncio.sleep(60)


asyncio.run(main(sys.argv[1], sys.argv[2]))

"""A process that runs the scripts on its standard input, one by one, as whoever it is. Started by the tests."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from guests import SOFT_ENGINES, a_start, run_on

from sandbridge_kit.ports.runner import Failed
from sandbridge_runner.service import PoolRunner


async def main(engine: str, binary: Path, codes: list[str]) -> None:
    outcomes = []
    async with PoolRunner(SOFT_ENGINES[engine](binary=binary), spares=1) as runner:
        for code in codes:
            outcome = (await run_on(runner, a_start(code))).finished.outcome
            outcomes.append(str(outcome.failure.code) if isinstance(outcome, Failed) else json.loads(outcome.result))
    print(json.dumps({"uid": os.geteuid(), "outcomes": outcomes}))


asyncio.run(main(sys.argv[1], Path(sys.argv[2]), json.load(sys.stdin)))

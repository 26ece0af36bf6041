"""A runner with two spares and an endless script, in a process of its own. Started by the tests, and killed by them."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import cast

import psutil
from guests import a_start
from subjects import Subject

from sandbridge_runner.engines.options import EngineName
from sandbridge_runner.runtimes.base import RuntimeName
from sandbridge_runner.service import PoolRunner


async def main(engine: str, runtime: str, runsc: str) -> None:
    subject = Subject(cast(EngineName, engine), cast(RuntimeName, runtime), Path(runsc) if runsc else None)
    runner = PoolRunner(subject.make(), spares=2)
    try:
        await runner.start()
    except OSError as refused:
        print(json.dumps({"refused": str(refused)}), flush=True)
        return
    async with runner.open(a_start("while(true){}")):
        while runner.status().idle_spares < 2:
            await asyncio.sleep(0.02)
        print(json.dumps({"pids": [child.pid for child in psutil.Process().children(recursive=True)]}), flush=True)
        await asyncio.sleep(60)


asyncio.run(main(*sys.argv[1:]))

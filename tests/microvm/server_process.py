"""A runner on the stand-in, in a process of its own. Started by the tests, and killed by them."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import psutil
from guests import a_start

from sandbridge_runner.core.microvm import HostFacts
from sandbridge_runner.engines.microsandbox import MicrosandboxEngine
from sandbridge_runner.engines.options import EngineOptions
from sandbridge_runner.runtimes.deno import Deno
from sandbridge_runner.service import PoolRunner

GOOD = HostFacts("linux", "x86_64", True, True, 12, True, frozenset({"kvm_amd"}), "0.7.11")


async def main(folder: str, library: str) -> None:
    options = EngineOptions(folder=Path(folder))
    runner = PoolRunner(MicrosandboxEngine(Deno(), options, library=Path(library), facts=lambda: GOOD), spares=1)
    await runner.start()
    async with runner.open(a_start("while(true){}")):
        print(json.dumps([child.pid for child in psutil.Process().children(recursive=True)]), flush=True)
        await asyncio.sleep(60)


asyncio.run(main(*sys.argv[1:]))

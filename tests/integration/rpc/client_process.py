"""An orchestrator's side that opens an endless run and says so. Started by the tests, and killed by them."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from sandbridge_kit.ports.runner import RunLimits, Start
from sandbridge_kit.rpc import TlsFiles, TlsSource
from sandbridge_orchestrator.adapters.runner_client import RunnerClient


async def main(address: str, folder: str) -> None:
    start = Start("r", "for(;;);", 0, bytes(32), (), RunLimits())
    async with RunnerClient(address, TlsSource(TlsFiles.in_folder(Path(folder)))) as client, client.open(start):
        print("open", flush=True)
        await asyncio.sleep(60)


asyncio.run(main(*sys.argv[1:]))

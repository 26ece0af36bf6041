"""Runs in a pod: starts the engine as a runner process would, runs a script, and says what it found."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import tempfile
from pathlib import Path

from guests import a_start, run_on

from sandbridge_runner.engines import cgroup
from sandbridge_runner.engines.choice import engine_of
from sandbridge_runner.engines.options import EngineOptions
from sandbridge_runner.pod import require_confinement
from sandbridge_runner.service import PoolRunner


async def main() -> None:
    require_confinement()
    engine = engine_of("gvisor", EngineOptions(runtime="node" if "node" in sys.argv else "deno"))
    async with PoolRunner(engine, spares=1) as runner:
        ran = await run_on(runner, a_start("return 6 * 7"))
        endless = await run_on(runner, a_start("for (;;);", wall_clock_ms=300))
        balloon = await run_on(runner, a_start("const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))"))
    left = [path.name for path in Path(tempfile.gettempdir()).glob("sandbridge-*")]
    print(
        json.dumps(
            {
                "result": ran.result,
                "ends": [endless.failure.code, balloon.failure.code],
                "groups": cgroup.find() is not None,
                "left": left,
                "sandboxes": sum(b"runsc" in text for text in _command_lines()),
            }
        )
    )


def _command_lines() -> list[bytes]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_bytes())
    return found


asyncio.run(main())

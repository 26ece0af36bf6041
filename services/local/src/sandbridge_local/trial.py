"""One engine tried in a process of its own: `python -m sandbridge_local.trial OPTIONS`, with the options as JSON.

It prints two lines of JSON: the layers, then the trouble (null where a script ran). Whoever started it may kill it at
any time, and the engine's guests die with it.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import time
from typing import Any

from sandbridge_kit.errors import SandbridgeError
from sandbridge_kit.ports.runner import Failed, Finished, Start
from sandbridge_kit.telemetry import set_up_logs
from sandbridge_local.composition import start_trouble
from sandbridge_local.engines import chosen_engine, options_of
from sandbridge_local.settings import LocalSandboxSettings
from sandbridge_runner.engines.choice import layers_of
from sandbridge_runner.service import PoolRunner


def layers(sandbox: LocalSandboxSettings) -> list[dict[str, Any]]:
    """Return the engine's layers of protection on this machine, as JSON data."""
    return [
        {"name": one.name, "active": one.is_active, "detail": one.detail, "needs": one.needs}
        for one in layers_of(sandbox.engine, options_of(sandbox))
    ]


async def trouble(sandbox: LocalSandboxSettings, *, now_ms: int, seed: bytes) -> str | None:
    """Run one script on the engine; return why that failed, None where it did not."""
    start = Start("doctor", "return 1 + 1", now_ms, seed, ("api",))
    try:
        async with PoolRunner(chosen_engine(sandbox), slots=1, spares=1) as runner, runner.open(start) as run:
            async for event in run.events():
                if isinstance(event, Finished) and isinstance(event.outcome, Failed):
                    return event.outcome.failure.message
    except (OSError, ValueError, SandbridgeError) as error:
        return start_trouble(error)
    return None


def main(options: str) -> None:
    """Print what is found for the sandbox settings in `options`."""
    # Standard output is for the answer alone.
    set_up_logs(sys.stderr)
    sandbox = LocalSandboxSettings.model_validate_json(options)
    print(json.dumps(layers(sandbox)), flush=True)
    found = asyncio.run(trouble(sandbox, now_ms=int(time.time() * 1000), seed=secrets.token_bytes(32)))
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

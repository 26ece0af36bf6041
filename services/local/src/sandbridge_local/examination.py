"""`sandbridge doctor`: which engines and protection layers work on this machine, and what each missing one needs."""

from __future__ import annotations

import asyncio
import platform
import secrets
import sys
import time
from collections.abc import Mapping
from typing import Any

from sandbridge_kit.errors import SandbridgeError
from sandbridge_kit.ports.runner import Failed, Finished, Start
from sandbridge_local.composition import start_trouble
from sandbridge_runner.engines.deno import DenoEngine, layers
from sandbridge_runner.service import PoolRunner


def examine() -> Mapping[str, Any]:
    """Try each engine with one script, and ask which layers it has."""
    trouble = asyncio.run(_trial())
    return {
        "platform": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "engines": [
            {
                "name": "deno",
                "works": trouble is None,
                "trouble": trouble,
                "layers": [
                    {"name": one.name, "active": one.is_active, "detail": one.detail, "needs": one.needs}
                    for one in layers()
                ],
            }
        ],
    }


def as_text(outcome: Mapping[str, Any]) -> str:
    """Return the report for a terminal."""
    lines = [f"{outcome['platform']}, Python {outcome['python']}"]
    for engine in outcome["engines"]:
        state = "works" if engine["works"] else f"does not work: {engine['trouble']}"
        lines.append(f"engine {engine['name']}: {state}")
        for layer in engine["layers"]:
            needs = f" (needs: {layer['needs']})" if layer["needs"] and not layer["active"] else ""
            lines.append(f"  [{'x' if layer['active'] else ' '}] {layer['name']}: {layer['detail']}{needs}")
    return "\n".join(lines)


async def _trial() -> str | None:
    if sys.platform == "win32":
        return "Windows is not supported; use WSL"
    start = Start("doctor", "return 1 + 1", int(time.time() * 1000), secrets.token_bytes(32), ("api",))
    try:
        async with PoolRunner(DenoEngine(), slots=1, spares=1) as runner, runner.open(start) as run:
            async for event in run.events():
                if isinstance(event, Finished) and isinstance(event.outcome, Failed):
                    return event.outcome.failure.message
    except (OSError, SandbridgeError) as error:
        return start_trouble(error)
    return None

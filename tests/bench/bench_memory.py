"""Memory of an idle spare with four alive, from the kernel's own counters."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil
from serving import connected, execute
from timing import row, spread

SPARES, TARGET_MIB = 4, 20.0


def rollup(pid: int) -> dict[str, float]:
    """Return the process's memory counters in MiB (`/proc/PID/smaps_rollup`)."""
    found = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, value, *_ = line.split()
        found[name.rstrip(":")] = float(value) / 1024
    return found


def guests(root: psutil.Process) -> list[int]:
    """Return the process ids of the engines below `root`."""
    return [child.pid for child in root.children(recursive=True) if child.name().startswith("deno")]


async def main() -> None:
    """Print the figures."""
    me = psutil.Process()
    async with connected("--pool-size", str(SPARES)) as (client, _):
        await execute(client, "return 1")
        for _ in range(100):
            alive = guests(me)
            if len(alive) >= SPARES:
                break
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        counters = [rollup(pid) for pid in guests(me)]
        server = next(child for child in me.children() if "sandbridge" in " ".join(child.cmdline()))
        server_mib = rollup(server.pid)["Pss"]
    pss = spread([one["Pss"] for one in counters])
    private = spread([one["Private_Clean"] + one["Private_Dirty"] for one in counters])
    row(f"idle spare, {len(counters)} alive: PSS MiB", f"{pss:.1f}", f"≤ {TARGET_MIB}", met=pss.median <= TARGET_MIB)
    row(f"idle spare, {len(counters)} alive: private MiB", f"{private:.1f}", "", met=None)
    row("the server itself, orders document: PSS MiB", f"{server_mib:.0f}", "", met=None)

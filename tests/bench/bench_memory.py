"""Memory of an idle spare with four alive, from the kernel's own counters."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil
from serving import connected, execute
from timing import row, spread

SPARES, TARGET_MIB = 4, 20.0
ENGINES = ("deno", "node")


def rollup(pid: int) -> dict[str, float]:
    """Return the process's memory counters in MiB (`/proc/PID/smaps_rollup`)."""
    found = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, value, *_ = line.split()
        found[name.rstrip(":")] = float(value) / 1024
    return found


def guests(root: psutil.Process, engine: str) -> list[int]:
    """Return the process ids of the engines below `root`."""
    return [child.pid for child in root.children(recursive=True) if Path(child.exe()).name == engine]


async def of_engine(engine: str) -> None:
    """Print the figures of one engine."""
    me = psutil.Process()
    async with connected("--pool-size", str(SPARES), "--engine", engine) as (client, _):
        await execute(client, "return 1")
        for _ in range(100):
            alive = guests(me, engine)
            if len(alive) >= SPARES:
                break
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        counters = [rollup(pid) for pid in guests(me, engine)]
        server = next(child for child in me.children() if "sandbridge" in " ".join(child.cmdline()))
        server_mib = rollup(server.pid)["Pss"]
        zygotes = [rollup(child.pid)["Pss"] for child in server.children() if "zygote" in " ".join(child.cmdline())]
    pss = spread([one["Pss"] for one in counters])
    private = spread([one["Private_Clean"] + one["Private_Dirty"] for one in counters])
    name = f"idle spare on {engine}, {len(counters)} alive"
    row(f"{name}: PSS MiB", f"{pss:.1f}", f"≤ {TARGET_MIB}", met=pss.median <= TARGET_MIB)
    row(f"{name}: private MiB", f"{private:.1f}", "", met=None)
    row("the process that they are forked from: PSS MiB", f"{sum(zygotes):.1f}", "", met=None)
    row("the server itself, orders document: PSS MiB", f"{server_mib:.0f}", "", met=None)


async def main() -> None:
    """Print the figures."""
    for engine in ENGINES:
        await of_engine(engine)

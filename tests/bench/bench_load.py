"""Many runs: 200 one after another and 40 at once over stdio, with nothing failing and nothing leaking."""

from __future__ import annotations

import asyncio
import time

import psutil
from bench_memory import guests
from serving import connected, execute
from timing import percentile, row

SEQUENTIAL, CONCURRENT, WARM_UP = 200, 40, 20


async def settled(root: psutil.Process, spares: int) -> list[int]:
    """Wait until only idle spares are alive, ten seconds at most; return them."""
    for _ in range(100):
        if len(guests(root)) <= spares:
            break
        await asyncio.sleep(0.1)
    return guests(root)


async def survivors_of(pids: list[int]) -> list[int]:
    """Return which of the processes are still there two seconds after the server's end."""
    for _ in range(20):
        if not any(map(psutil.pid_exists, pids)):
            return []
        await asyncio.sleep(0.1)
    return [pid for pid in pids if psutil.pid_exists(pid)]


async def main() -> None:
    """Print the figures."""
    me = psutil.Process()
    async with connected() as (client, _):
        server = next(child for child in me.children() if "sandbridge" in " ".join(child.cmdline()))
        for number in range(WARM_UP):
            await execute(client, f"return {number}")
        await asyncio.sleep(1)
        descriptors, times, failures = server.num_fds(), [], 0
        started = time.perf_counter()
        for number in range(SEQUENTIAL):
            began = time.perf_counter()
            failures += (await execute(client, f"return {number}"))["result"] != number
            times.append((time.perf_counter() - began) * 1000)
        sequential_s = time.perf_counter() - started
        started = time.perf_counter()
        answers = await asyncio.gather(
            *(execute(client, f"return {n}") for n in range(CONCURRENT)), return_exceptions=True
        )
        concurrent_s = time.perf_counter() - started
        failures += sum(
            1 for n, answer in enumerate(answers) if isinstance(answer, BaseException) or answer["result"] != n
        )
        alive = await settled(me, spares=2)
        await asyncio.sleep(1)
        leaked = server.num_fds() - descriptors
    survivors = await survivors_of(alive)
    p50, p95 = percentile(times, 0.5), percentile(times, 0.95)
    row(f"{SEQUENTIAL} executes back to back, pool of 2: p50, p95 ms", f"{p50:.1f}, {p95:.1f}", "", met=None)
    row("the same: runs a second", f"{SEQUENTIAL / sequential_s:.0f}", "", met=None)
    row(f"{CONCURRENT} executes at once: runs a second", f"{CONCURRENT / concurrent_s:.0f}", "", met=None)
    row("errors in both", f"{failures}", "0", met=failures == 0)
    row("descriptors gained by the server", f"{leaked}", "≤ 2", met=leaked <= 2)
    row("guests alive after the server's end", f"{len(survivors)}", "0", met=not survivors)

"""A warm `execute` over MCP stdio, paired with a cold `deno eval` at the same pacing."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time

import deno
from serving import connected, execute
from timing import percentile, row, spread

ROUNDS, CALLS, GAP_S = 3, 50, 0.25
RATIO_TARGET = 0.25
ENGINES = ("deno", "node")


def cold_deno() -> float:
    """Return the milliseconds of one `deno eval 1`."""
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", "/"), "NO_COLOR": "1"}
    started = time.perf_counter()
    subprocess.run([deno.find_deno_bin(), "eval", "1"], check=True, env=environment, stdin=subprocess.DEVNULL)
    return (time.perf_counter() - started) * 1000


async def one_round(number: int, engine: str) -> tuple[list[float], list[float]]:
    """Return the milliseconds of each execute and of each cold start, taken in turns."""
    warm, cold = [], []
    async with connected("--engine", engine) as (client, _):
        await execute(client, "return 0")
        for call in range(CALLS):
            await asyncio.sleep(GAP_S)
            started = time.perf_counter()
            await execute(client, f"return {number * 1000 + call + 1}")
            warm.append((time.perf_counter() - started) * 1000)
            await asyncio.sleep(GAP_S)
            cold.append(await asyncio.to_thread(cold_deno))
    return warm, cold


async def main() -> None:
    """Print the figures."""
    cold_deno()
    for engine in ENGINES:
        rounds = [await one_round(number, engine) for number in range(ROUNDS)]
        warm = spread([percentile(times, 0.5) for times, _ in rounds])
        cold = spread([percentile(times, 0.5) for _, times in rounds])
        ratio = spread([percentile(ours, 0.5) / percentile(peer, 0.5) for ours, peer in rounds])
        p95 = spread([percentile(times, 0.95) for times, _ in rounds])
        row(f"execute on {engine}, warm, MCP stdio, 250 ms apart: p50 ms", f"{warm:.2f}", "", met=None)
        row(f"execute on {engine}, warm, MCP stdio, 250 ms apart: p95 ms", f"{p95:.2f}", "", met=None)
        row("cold `deno eval 1` at the same pacing: p50 ms", f"{cold:.2f}", "", met=None)
        row(
            f"execute on {engine} ÷ cold deno eval",
            f"{ratio:.3f}",
            f"≤ {RATIO_TARGET}",
            met=ratio.median <= RATIO_TARGET,
        )

"""`make bench-engines`: cold, warm, pool-miss and burst times, memory and rate of every engine of this machine.

Each ratio is against a cold `deno eval` taken in turns with what is measured, at the same pacing. Figures are medians
with the smallest and the largest of several rounds; milliseconds are this machine's, ratios travel.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
from bench_execute import cold_deno
from guests import a_start, run_on
from serving import connected, connected_over_grpc, execute
from subjects import Subject
from timing import Spread, percentile, row, spread
from usable import chosen, flags

from sandbridge_kit.ports.runner import Ask
from sandbridge_runner.service import PoolRunner

ROUNDS, CALLS, GAP_S = 3, 15, 0.25
BURSTS = (1, 5, 10)
SPARES, ALIVE = 2, 4
SUSTAINED_S = 5.0
MIB = 1024 * 1024
TARGETS = {"deno": 0.25, "node": 0.25, "gvisor": 0.4, "microsandbox": None}
COLD_TARGET = 10.0
GRPC_TARGET = 0.3


async def timed(action: Callable[[], Awaitable[Any]]) -> float:
    """Return the milliseconds of one action."""
    began = time.perf_counter()
    await action()
    return (time.perf_counter() - began) * 1000


async def paired(action: Callable[[], Awaitable[Any]]) -> tuple[Spread, Spread, Spread, Spread]:
    """Return p50 and p95 of the action, of a cold `deno eval`, and their ratio: in turns, with a pause before each."""
    rounds = []
    for _ in range(ROUNDS):
        ours, peer = [], []
        for _ in range(CALLS):
            await asyncio.sleep(GAP_S)
            ours.append(await timed(action))
            await asyncio.sleep(GAP_S)
            peer.append(await asyncio.to_thread(cold_deno))
        rounds.append((ours, peer))
    medians = [(percentile(ours, 0.5), percentile(peer, 0.5)) for ours, peer in rounds]
    return (
        spread([ours for ours, _ in medians]),
        spread([percentile(ours, 0.95) for ours, _ in rounds]),
        spread([peer for _, peer in medians]),
        spread([ours / peer for ours, peer in medians]),
    )


def label(subject: Subject, what: str) -> str:
    return f"{subject.name}: {what}"


def literal(runner: PoolRunner) -> Callable[[], Awaitable[Any]]:
    """Return an action that runs a script of one new literal."""
    number = iter(range(1, 1_000_000))
    return lambda: run_on(runner, a_start(f"return {next(number)}"))


async def warm_and_cold(subject: Subject) -> None:
    """Print times with a full pool and with none, at the runner and through the whole product."""
    async with PoolRunner(subject.make(), spares=SPARES) as runner:
        p50, p95, _, ratio = await paired(literal(runner))
        row(label(subject, "warm run at the runner: p50 ms"), f"{p50:.2f}", "", met=None)
        row(label(subject, "the same: p95 ms"), f"{p95:.2f}", "", met=None)
        row(label(subject, "the same ÷ cold deno eval"), f"{ratio:.3f}", "", met=None)
    async with PoolRunner(subject.make(), spares=0) as runner:
        p50, _, _, ratio = await paired(literal(runner))
        is_met = ratio.median <= COLD_TARGET if subject.is_hard else None
        row(label(subject, "cold run, no pool: p50 ms"), f"{p50:.1f}", "", met=None)
        target = f"≤ {COLD_TARGET:.0f}" if subject.is_hard else ""
        row(label(subject, "the same ÷ cold deno eval"), f"{ratio:.2f}", target, met=is_met)
    number = iter(range(1, 1_000_000))
    async with connected(*flags(subject)) as (client, _):
        await execute(client, "return 0")
        p50, p95, peer, ratio = await paired(lambda: execute(client, f"return {next(number)}"))
    limit = TARGETS[subject.engine]
    row(label(subject, "warm execute over MCP stdio: p50 ms"), f"{p50:.2f}", "", met=None)
    row(label(subject, "the same: p95 ms"), f"{p95:.2f}", "", met=None)
    row(label(subject, "cold deno eval at the same pacing: p50 ms"), f"{peer:.2f}", "", met=None)
    is_met = ratio.median <= limit if limit else None
    row(label(subject, "execute ÷ cold deno eval"), f"{ratio:.3f}", f"≤ {limit}" if limit else "", met=is_met)


async def over_grpc(subject: Subject) -> None:
    """Print the time of a warm execute whose sandbox is behind gRPC with mutual TLS; for the default engine."""
    if subject.engine != "deno":
        return
    number = iter(range(1, 1_000_000))
    async with connected_over_grpc() as client:
        await execute(client, "return 0")
        p50, _, _, ratio = await paired(lambda: execute(client, f"return {next(number)}"))
    row(label(subject, "warm execute over stdio, then gRPC: p50 ms"), f"{p50:.2f}", "", met=None)
    met = ratio.median <= GRPC_TARGET
    row(label(subject, "the same ÷ cold deno eval"), f"{ratio:.3f}", f"≤ {GRPC_TARGET}", met=met)


async def misses(subject: Subject) -> None:
    """Print the time of a run for which the pool has no sandbox, and of several at once."""
    async with PoolRunner(subject.make(), slots=2, spares=1) as runner:
        times = []
        for _ in range(10):
            await full(runner, 1)
            async with runner.open(a_start("while(true){}")):
                times.append(await timed(literal(runner)))
        row(label(subject, "pool miss: ms"), f"{spread(times):.1f}", "", met=None)
    async with PoolRunner(subject.make(), slots=max(BURSTS), spares=SPARES) as runner:
        for count in BURSTS:
            worst, middle = [], []
            for _ in range(5):
                await full(runner, SPARES)
                times = await asyncio.gather(*(timed(literal(runner)) for _ in range(count)))
                worst.append(max(times))
                middle.append(percentile(times, 0.5))
            row(label(subject, f"{count} at once, pool of {SPARES}: p50 ms"), f"{spread(middle):.1f}", "", met=None)
            row(label(subject, "the same: the last one ms"), f"{spread(worst):.1f}", "", met=None)


async def full(runner: PoolRunner, spares: int) -> None:
    """Wait until the pool is full and quiet."""
    end = time.monotonic() + 30
    while (runner.status().idle_spares < spares or runner.status().running) and time.monotonic() < end:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)


def memory_of(pids: Sequence[int]) -> dict[str, float]:
    """Return PSS and private memory of processes and all below them, in MiB (`/proc/PID/smaps_rollup`)."""
    total = {"Pss": 0.0, "Private": 0.0}
    every = {p.pid for pid in pids if psutil.pid_exists(pid) for p in _tree(psutil.Process(pid))}
    for pid in every:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
        except OSError:
            continue
        for name, value, *_ in (line.split() for line in lines):
            if name == "Pss:":
                total["Pss"] += float(value) / 1024
            elif name in ("Private_Clean:", "Private_Dirty:"):
                total["Private"] += float(value) / 1024
    return total


def _tree(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


async def memory(subject: Subject) -> None:
    """Print memory of spares with four alive, and of one in a run."""
    async with PoolRunner(subject.make(), spares=ALIVE) as runner:
        await full(runner, ALIVE)
        await asyncio.sleep(0.5)
        pool = runner._pool
        assert pool is not None
        idle = [memory_of(pipe.guest.pids) for pipe in pool._alive]
        counted = [(pipe.guest.resident_bytes() or 0) / MIB for pipe in pool._alive]
        code = "const a = new Uint8Array(32 << 20).fill(1); await api.a(); return a.length"
        async with runner.open(a_start(code)) as run:
            async for event in run.events():
                if isinstance(event, Ask):
                    break
            guest = run._guest  # type: ignore[attr-defined]
            active, active_counted = memory_of(guest.pids), (guest.resident_bytes() or 0) / MIB
    for name, what in (("Pss", "PSS"), ("Private", "private")):
        values = spread([one[name] for one in idle])
        row(label(subject, f"idle spare, {len(idle)} alive: {what} MiB"), f"{values:.1f}", "", met=None)
        row(label(subject, f"in a run that holds 32 MiB: {what} MiB"), f"{active[name]:.1f}", "", met=None)
    # A sandbox's kernel keeps memory that no process has mapped: processes alone do not show it.
    row(label(subject, "idle spare: MiB as counted for its limit"), f"{spread(counted):.1f}", "", met=None)
    row(label(subject, "in a run that holds 32 MiB: the same"), f"{active_counted:.1f}", "", met=None)


async def sustained(subject: Subject) -> None:
    """Print single-use runs a second with as many at work as there are processors."""
    workers = os.cpu_count() or 1
    async with PoolRunner(subject.make(), slots=workers + 1, spares=workers) as runner:
        end, done = time.monotonic() + SUSTAINED_S, 0

        async def work() -> None:
            nonlocal done
            action = literal(runner)
            while time.monotonic() < end:
                await action()
                done += 1

        await asyncio.gather(*(work() for _ in range(workers)))
    row(label(subject, f"runs a second, {workers} at work"), f"{done / SUSTAINED_S:.0f}", "", met=None)


def main(arguments: Sequence[str]) -> int:
    """Print the figures of every chosen engine."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--engines", default="")
    options.add_argument("--runtimes", default="")
    options.add_argument("--runsc")
    given = options.parse_args(arguments)
    subjects, troubles = chosen(given.engines, given.runtimes, given.runsc)
    print(f"{platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} cores")
    print("median (smallest to largest) of several rounds\n")
    cold_deno()
    for subject in subjects:
        print(f"{subject.name}: load before {os.getloadavg()[0]:.1f}")
        for bench in (warm_and_cold, over_grpc, misses, memory, sustained):
            asyncio.run(bench(subject))
        print()
    for name, reason in troubles.items():
        print(f"not here: {name}: {reason}")
    return 1 if given.engines and troubles else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

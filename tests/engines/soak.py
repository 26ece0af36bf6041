"""`make soak-engines`: many runs with random kills on each engine, then a look for anything left. One line an engine.

Guests, their wrappers and whole runner processes are killed while they work; a killed runner is started again. At the
end there may be no process below this one, and no more descriptors, threads, mounts, control groups, named network
namespaces or files than before; until then the pool must be full again after the kills.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import logging
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import psutil
import structlog
from bombs import BALLOONS
from guest_trees import tree_of
from guests import a_start, run_on
from subjects import Subject
from usable import chosen

from sandbridge_kit.errors import SandbridgeError
from sandbridge_runner.service import PoolRunner

SERVER = Path(__file__).with_name("server_process.py")
SPARES, AT_ONCE = 2, 3
KILLED_SHARE = 0.25
RUNNER_SHARE = 0.02
PR_SET_CHILD_SUBREAPER = 36
SETTLE_S = 10.0
NOTICE_S = 0.5
"""Time in which the pool notices a spare that was killed last."""
SCRIPTS = (
    "return 6 * 7",
    "return (await api.a()).data",
    "await new Promise((r) => setTimeout(r, 5)); return [...'x'.repeat(1000)].length",
    "throw new Error('x')",
    "while (true) {}",
    BALLOONS["typed arrays"].code,
)


@dataclass(frozen=True, slots=True)
class Machine:
    """What a soak must leave as it was."""

    processes: int
    descriptors: int
    threads: int
    mounts: int
    groups: int
    networks: int
    files: int


def machine(folder: Path) -> Machine:
    """Count everything; what is orphaned is a child of this process."""
    names = Path("/run/netns")
    mine = f"sandbridge-{os.getpid()}-"
    groups = [path for top in ("/sys/fs/cgroup", "/sys/fs/cgroup/memory") for path in Path(top).glob(f"**/{mine}*")]
    return Machine(
        processes=len([child for child in psutil.Process().children(recursive=True) if _runs(child)]),
        descriptors=len(list(Path("/proc/self/fd").iterdir())),
        threads=threading.active_count(),
        mounts=len(Path("/proc/self/mountinfo").read_text().splitlines()),
        groups=len(groups),
        networks=len(list(names.iterdir())) if names.exists() else 0,
        files=sum(1 for _ in folder.rglob("*")),
    )


def _runs(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


async def one_run(runner: PoolRunner, chance: random.Random) -> str:
    """Run one script, perhaps with a kill in its middle; return how it ended."""
    code = chance.choice(SCRIPTS)
    start = a_start(code, wall_clock_ms=chance.choice((50, 150, 400)), memory_bytes=96 << 20)
    if chance.random() > KILLED_SHARE:
        with contextlib.suppress(SandbridgeError):
            outcome = (await run_on(runner, start)).finished.outcome
            return str(outcome.failure.code) if hasattr(outcome, "failure") else "returned"
        return "refused"
    try:
        async with runner.open(start) as run:
            await asyncio.sleep(chance.random() * 0.05)
            tree = tree_of(run)
            if tree:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(chance.choice(tree).pid, signal.SIGKILL)
            async for event in run.events():
                if hasattr(event, "outcome"):
                    return "killed"
    except SandbridgeError:
        pass
    return "killed"


async def kill_a_runner(subject: Subject, chance: random.Random) -> int:
    """Start a runner in a process of its own, kill it in the middle of a run; return how many processes it had."""
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, str(SERVER), subject.engine, subject.runtime, str(subject.runsc or "")),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert server.stdout is not None
    await asyncio.wait_for(server.stdout.readline(), 60)
    await asyncio.sleep(chance.random() * 0.05)
    below = len(psutil.Process(server.pid).children(recursive=True))
    server.kill()
    await server.wait()
    return below


async def until_full(runner: PoolRunner) -> bool:
    """Wait until the pool has all its spares and every slot is free."""
    await asyncio.sleep(NOTICE_S)
    end = time.monotonic() + 3 * SETTLE_S
    while time.monotonic() < end:
        status = runner.status()
        if status.idle_spares == SPARES and status.running == 0:
            return True
        await asyncio.sleep(0.05)
    return False


async def soak(subject: Subject, runs: int, folder: Path, seed: int) -> tuple[Counter[str], list[str]]:
    """Return how the runs ended, and what is wrong."""
    chance = random.Random(seed)
    ends: Counter[str] = Counter()
    wrong: list[str] = []
    runner = PoolRunner(subject.make(folder=folder), slots=AT_ONCE + 1, spares=SPARES)
    await runner.start()
    left = runs

    async def work() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            ends[await one_run(runner, chance)] += 1
            if chance.random() < KILLED_SHARE / 2:
                _kill_a_spare(runner, chance)
            if chance.random() < RUNNER_SHARE:
                await kill_a_runner(subject, chance)
                ends["runners killed"] += 1

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    if not await until_full(runner):
        wrong.append(f"the pool did not fill up again: {runner.status()}")
    else:
        last = (await run_on(runner, a_start("return 6 * 7"))).finished.outcome
        wrong += [] if getattr(last, "result", b"") == b"42" else [f"a run after the soak failed: {last}"]
    await runner.stop()
    return ends, wrong


def _kill_a_spare(runner: PoolRunner, chance: random.Random) -> None:
    pool = runner._pool
    spares = [spare for spare in pool._spares if spare.is_ready] if pool else []
    if spares:
        with contextlib.suppress(ProcessLookupError):
            os.kill(chance.choice(spares).pipe.guest.pids[0], signal.SIGKILL)


def sweep(subject: Subject, folder: Path) -> None:
    """Start the engine once, when what killed runners left is old enough to be removed by the next one's start."""
    for home in folder.iterdir():
        os.utime(home, (time.time() - 3600, time.time() - 3600))
    engine = subject.make(folder=folder)
    engine.prepare()
    engine.dispose()


def leaks(before: Machine, folder: Path) -> list[str]:
    """Return what there is more of than before, once everything has had time to end."""
    end = time.monotonic() + SETTLE_S
    while True:
        after = machine(folder)
        more = [
            f"{item.name}: {getattr(before, item.name)} before, {getattr(after, item.name)} after"
            for item in fields(Machine)
            if getattr(after, item.name) > getattr(before, item.name)
        ]
        if not more or time.monotonic() > end:
            return more
        time.sleep(0.1)


def soaked(subject: Subject, runs: int, seed: int) -> list[str]:
    """Soak one subject, print its line, return what is wrong."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    tempfile.tempdir = str(folder)
    os.environ["TMPDIR"] = str(folder)
    try:
        # Once before the count: threads and descriptors that stay for good come with the first run.
        asyncio.run(soak(subject, 5, folder, seed))
        sweep(subject, folder)
        before, began = machine(folder), time.monotonic()
        ends, wrong = asyncio.run(soak(subject, runs, folder, seed))
        took = time.monotonic() - began
        sweep(subject, folder)
        wrong += leaks(before, folder)
    finally:
        tempfile.tempdir = None
        shutil.rmtree(folder, ignore_errors=True)
    said = ", ".join(f"{count} {end}" for end, count in ends.most_common())
    verdict = "ok" if not wrong else "; ".join(wrong)
    print(f"{subject.name}: {runs} runs in {took:.0f} s, seed {seed}: {said}: {verdict}", flush=True)
    return wrong


def main(arguments: Sequence[str]) -> int:
    """Soak every chosen engine."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=1000)
    options.add_argument("--engines", default="")
    options.add_argument("--runtimes", default="")
    options.add_argument("--runsc")
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args(arguments)
    # Every spare that is killed here would be told of.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    subjects, troubles = chosen(given.engines, given.runtimes, given.runsc)
    wrong = [problem for subject in subjects for problem in soaked(subject, given.runs, given.seed)]
    for name, reason in troubles.items():
        print(f"not here: {name}: {reason}")
    return 1 if wrong or (given.engines and troubles) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

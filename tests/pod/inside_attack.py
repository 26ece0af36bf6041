"""Runs in a pod: four balloons and a fork bomb from scripts that own their process, beside three good runs each."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from guests import Ran, a_start, run_on
from subjects import Subject
from unchained import unchained

from sandbridge_runner.engines.choice import engine_of
from sandbridge_runner.engines.options import EngineOptions
from sandbridge_runner.pod import require_confinement
from sandbridge_runner.service import PoolRunner

BALLOON = "const held = []; for (;;) held.push(new Uint8Array(1 << 22).fill(1))"
FORK_BOMB = "for (;;) { try { native.multiply() } catch {} await new Promise((done) => setTimeout(done, 0)) }"
LAST_S = 75


async def good_runs(runner: PoolRunner, attack: asyncio.Task[list[Ran]]) -> list[object]:
    """Run good scripts, three at a time, for as long as the attack lasts; return what did not come out right."""
    wrong: list[object] = []
    count = 0
    while not attack.done() or count == 0:
        ran = await asyncio.gather(*(run_on(runner, a_start(f"return {count} + {n}")) for n in range(3)))
        wrong += [one.finished for n, one in enumerate(ran) if one.finished.outcome.result != str(count + n).encode()]
        count += 1
    return wrong


async def main() -> None:
    require_confinement()
    good = PoolRunner(engine_of("gvisor", EngineOptions()), spares=3)
    hostile = PoolRunner(unchained(Subject("gvisor", "deno")), spares=4)
    async with asyncio.timeout(LAST_S), good, hostile:
        facts = {}
        for name, scripts, wall_clock_ms in (("balloons", [BALLOON] * 4, 30_000), ("fork bomb", [FORK_BOMB], 4000)):
            starts = [a_start(script, wall_clock_ms=wall_clock_ms) for script in scripts]
            attack = asyncio.ensure_future(asyncio.gather(*(run_on(hostile, start) for start in starts)))
            wrong = await good_runs(good, attack)
            facts[name] = {"ends": [ran.failure.code for ran in attack.result()], "wrong": list(map(str, wrong))}
        after = await run_on(good, a_start("return 1"))
    print(json.dumps({**facts, "after": after.result, "peak": _peak()}))


def _peak() -> int:
    """Most memory that the pod has used, as its control group tells."""
    for name in ("memory.peak", "memory/memory.max_usage_in_bytes"):
        path = Path("/sys/fs/cgroup") / name
        if path.exists():
            return int(path.read_text(encoding="ascii"))
    raise FileNotFoundError("the pod's control group is not to be seen")


asyncio.run(main())

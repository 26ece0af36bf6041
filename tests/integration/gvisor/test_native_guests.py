"""What a guest that has left its runtime behind can do to a sandbox, and what is said of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil
import pytest
from guest_trees import tasks_below
from guests import a_start, run_on
from native_guest import END_WITH_7, FORK_FOREVER, READ_NULL, NativeGuest

from sandbridge_kit.errors import Code
from sandbridge_kit.ports.runner import Failed, Finished
from sandbridge_runner.engines.gvisor import MAX_TASKS, GvisorEngine
from sandbridge_runner.service import PoolRunner


@pytest.mark.parametrize(
    ("payload", "code"), [(END_WITH_7, Code.GUEST_EXITED), (READ_NULL, Code.SANDBOX_LOST)], ids=["exit", "crash"]
)
async def test_a_guest_that_ends_without_a_word_is_named_for_how_it_ended(
    tmp_path: Path, payload: bytes, code: Code
) -> None:
    async with PoolRunner(GvisorEngine(NativeGuest.made(tmp_path, payload)), spares=1) as runner:
        assert (await run_on(runner, a_start("-"))).failure.code is code


async def test_s01_a_native_fork_bomb_takes_down_its_own_sandbox_alone(tmp_path: Path, engine: GvisorEngine) -> None:
    bombs = PoolRunner(GvisorEngine(NativeGuest.made(tmp_path, FORK_FOREVER)), spares=1)
    async with bombs, PoolRunner(engine, spares=1) as good, bombs.open(a_start("-", wall_clock_ms=10_000)) as run:
        outcome = asyncio.ensure_future(_outcome(run))
        most, results = 0, []
        while not outcome.done():
            most = max(most, tasks_below(run))
            if len(results) < 3:
                results.append((await run_on(good, a_start("return 1"))).result)
            await asyncio.sleep(0.01)
        failed = await outcome
        results.append((await run_on(good, a_start("return 1"))).result)

    # The started process counts with the sandbox, and what counts is not what is seen in one look.
    assert (failed.failure.code, set(results), most <= MAX_TASKS + 64) == (Code.SANDBOX_LOST, {1}, True), most


async def _outcome(run: object) -> Failed:
    async for event in run.events():  # type: ignore[attr-defined]
        if isinstance(event, Finished):
            assert isinstance(event.outcome, Failed)
            return event.outcome
    raise AssertionError("a run ends with its end")


async def test_what_runs_for_a_sandbox_has_no_right_on_this_host(engine: GvisorEngine) -> None:
    async with PoolRunner(engine, spares=1) as runner, runner.open(a_start("for (;;);", wall_clock_ms=5000)) as run:
        started, sentry, *stubs = run._guest.pids  # type: ignore[attr-defined]
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{sentry}/status").read_text().splitlines())
        own = Path("/proc/self/ns")
        namespaces = [
            name
            for name in ("user", "net", "pid", "mnt", "ipc", "uts")
            if (own / name).readlink() != Path(f"/proc/{sentry}/ns/{name}").readlink()
        ]
        facts = {
            "capabilities": int(status["CapEff"], 16) | int(status["CapBnd"], 16),
            "no_new_privs": status["NoNewPrivs"],
            "seccomp": status["Seccomp"],
            "root": sorted(path.name for path in Path(f"/proc/{sentry}/root").iterdir()),
            "oom": {Path(f"/proc/{pid}/oom_score_adj").read_text().strip() for pid in (started, sentry, *stubs)},
            "host files": [
                file.path for file in psutil.Process(sentry).open_files() if not file.path.endswith("root.erofs")
            ],
        }

    assert (namespaces, facts) == (
        ["user", "net", "pid", "mnt", "ipc", "uts"],
        {
            "capabilities": 0,
            "no_new_privs": "1",
            "seccomp": "2",
            "root": ["etc", "proc"],
            "oom": {"800"},
            "host files": [],
        },
    )

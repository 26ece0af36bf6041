"""A sandbox serves one run; spares are refilled; whatever is killed, nothing is left and nobody else notices."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from guest_trees import alive, pids_of, tree_of
from guests import NOW_MS, Execute, Ran, a_start, run_on
from subjects import Subject, started

from sandbridge_kit.errors import Code, Failure
from sandbridge_kit.ports.runner import Answer, Failed, Finished
from sandbridge_runner.service import PoolRunner

SERVER = Path(__file__).with_name("server_process.py")
READY_S = 20.0
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def until(condition: Callable[[], object], within: float = READY_S) -> bool:
    """Wait until it holds; False where it does not in time."""
    end = asyncio.get_running_loop().time() + within
    while not condition():
        if asyncio.get_running_loop().time() > end:
            return False
        await asyncio.sleep(0.01)
    return True


async def test_s13_nothing_of_a_run_is_there_in_the_next(execute: Execute) -> None:
    first = await execute(
        "globalThis.left = 1; Array.prototype.left = 2; Object.prototype.left = 3; console.left = 4;"
        " for (const store of ['localStorage', 'sessionStorage', 'caches', 'indexedDB'])"
        "   try { (0, eval)(store).setItem('left', '1') } catch {}"
        " await file('left.txt', 'left'); return 'left'",
        lambda ask: Answer(ask.seq, NOW_MS, {"handle": "h"}),
    )
    second = await execute(
        "return ['left' in globalThis, 'left' in [], 'left' in {}, 'left' in console,"
        " ['localStorage', 'sessionStorage', 'caches', 'indexedDB'].filter((name) => name in globalThis)]"
    )

    assert (first.result, second.result) == ("left", [False, False, False, False, []])


async def test_s13_each_run_has_processes_of_its_own_that_are_gone_after_it(runner: PoolRunner) -> None:
    seen: list[set[int]] = []
    for _ in range(3):
        async with runner.open(a_start("while(true){}")) as run:
            seen.append({process.pid for process in tree_of(run)})
    gone = await until(lambda: not any(alive(pid) for pids in seen for pid in pids), within=5)

    assert (gone, seen[0] & seen[1], seen[1] & seen[2], seen[0] & seen[2]) == (True, set(), set(), set())


async def test_s14_two_runs_at_once_share_no_process_and_no_user(runner: PoolRunner) -> None:
    async with runner.open(a_start("while(true){}")) as one, runner.open(a_start("while(true){}")) as other:
        pids = [{process.pid for process in tree_of(run)} for run in (one, other)]
        users = [psutil.Process(pids_of(run)[-1]).uids().effective for run in (one, other)]

    shares_user = users[0] == users[1] and os.geteuid() == 0
    assert (pids[0] & pids[1], shares_user, 0 in users) == (set(), False, False)


async def test_the_pool_is_full_again_after_runs(runner: PoolRunner, execute: Execute) -> None:
    full = runner.status().idle_spares
    results = [(await execute("return 1")).result for _ in range(3)]

    assert (results, await until(lambda: runner.status().idle_spares >= max(full, 1))) == ([1, 1, 1], True)


async def test_an_empty_pool_starts_a_sandbox_for_the_run(subject: Subject) -> None:
    runner = await started(subject, spares=0)
    try:
        assert (await run_on(runner, a_start("return 6 * 7"))).result == 42
    finally:
        await runner.stop()


async def test_more_runs_at_once_than_there_are_spares_all_end(runner: PoolRunner) -> None:
    await until(lambda: runner.status().free_slots == 4)
    rans = await asyncio.gather(*(run_on(runner, a_start(f"return {n}")) for n in range(4)))

    assert [ran.result for ran in rans] == [0, 1, 2, 3]


async def test_f05_a_cancelled_run_ends_with_the_reason_given_and_its_sandbox_is_gone(runner: PoolRunner) -> None:
    reason = Failure(Code.CANCELLED, "the client went away")
    async with runner.open(a_start("while(true){}")) as run:
        pids = [process.pid for process in tree_of(run)]
        await run.cancel(reason)
        ran = Ran([event async for event in run.events()])
    gone = await until(lambda: not any(map(alive, pids)), within=5)

    assert (ran.finished, gone) == (Finished(Failed(reason), ran.finished.peak_memory_bytes), True)


@pytest.mark.parametrize("position", ["outermost", "innermost"])
async def test_f02_a_process_of_a_sandbox_that_is_killed_ends_its_run_alone(runner: PoolRunner, position: str) -> None:
    async with runner.open(a_start("while(true){}")) as run, runner.open(a_start("return await api.wait()")) as other:
        tree = tree_of(run)
        victim = pids_of(run)[0] if position == "outermost" else _innermost(tree)
        os.kill(victim, signal.SIGKILL)
        ran = Ran([event async for event in run.events()])
        gone = await until(lambda: not any(alive(process.pid) for process in tree), within=5)
        await other.cancel(Failure(Code.CANCELLED, "enough"))
        still = Ran([event async for event in other.events()])

    assert (ran.failure.code, gone, still.failure.code) == (Code.SANDBOX_LOST, True, Code.CANCELLED)


def _innermost(tree: list[psutil.Process]) -> int:
    """The process without children that uses the most memory."""
    pids = {process.ppid() for process in tree}
    return max((p for p in tree if p.pid not in pids), key=lambda p: p.memory_info().rss).pid


async def test_spares_that_are_killed_are_replaced(subject: Subject) -> None:
    runner = await started(subject, spares=2)
    try:
        for pipe in list(runner._pool._alive):  # type: ignore[union-attr]
            os.kill(pipe.guest.pids[0], signal.SIGKILL)
        await until(lambda: runner.status().idle_spares < 2)
        refilled = await until(lambda: runner.status().idle_spares == 2)
        result = (await run_on(runner, a_start("return 6 * 7"))).result
    finally:
        await runner.stop()

    assert (refilled, result) == (True, 42)


async def test_stopping_leaves_no_process_and_no_file(subject: Subject, tmp_path: Path) -> None:
    _open_to_all(tmp_path)
    try:
        runner = PoolRunner(subject.make(folder=tmp_path), spares=2)
        await runner.start()
    except OSError as refused:
        pytest.skip(f"{subject.name} is refused here: {refused}")
    running = asyncio.ensure_future(run_on(runner, a_start("while(true){}")))
    await until(lambda: runner.status().running == 1)
    trees = [psutil.Process(pipe.guest.pids[0]) for pipe in runner._pool._alive]  # type: ignore[union-attr]
    pids = [one.pid for top in trees for one in (top, *top.children(recursive=True))]
    await runner.stop()

    gone = await until(lambda: not any(map(alive, pids)), within=5)
    left = [path.name for path in tmp_path.iterdir()]
    assert ((await running).failure.code, len(pids) >= 2, gone, left) == (Code.CANCELLED, True, True, [])


async def test_s13_what_an_engine_writes_for_a_run_goes_with_the_run(subject: Subject, tmp_path: Path) -> None:
    _open_to_all(tmp_path)
    runner = PoolRunner(subject.make(folder=tmp_path), spares=1)
    try:
        await runner.start()
        await run_on(runner, a_start("const canary: string = 'a-canary-in-the-code'; return canary"))
        await run_on(runner, a_start("return 1"))
        small = [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size < 1 << 20]
        left = [path for path in small if b"a-canary" in path.read_bytes()]
    finally:
        await runner.stop()

    assert left == []


def _open_to_all(path: Path) -> None:
    path.chmod(0o755)
    for parent in path.parents[:2]:
        parent.chmod(0o755)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes as on Linux")
@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM], ids=lambda number: number.name)
async def test_f02_no_sandbox_outlives_a_runner_that_is_killed_while_a_script_spins(
    subject: Subject, signum: int
) -> None:
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, str(SERVER), subject.engine, subject.runtime, str(subject.runsc or "")),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        assert server.stdout is not None
        said = json.loads(await asyncio.wait_for(server.stdout.readline(), 30))
        if "refused" in said:
            pytest.skip(f"{subject.name} is refused here: {said['refused']}")
        before = [pid for pid in said["pids"] if alive(pid)]
        os.kill(server.pid, signum)
        await server.wait()
    finally:
        with contextlib.suppress(ProcessLookupError):
            server.kill()
    gone = await until(lambda: not any(map(alive, before)), within=5)

    assert (len(before) >= 3, gone) == (True, True), [pid for pid in before if alive(pid)]

"""All that is around a micro-VM, with a stand-in for its library that starts a process of this host instead.

Bytes, ends, kills and leftovers are the real engine's; the boundary is not, and is tested where micro-VMs start.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import psutil
import pytest
from guests import NOW_MS, a_start, run_on

from sandbridge_kit.errors import Code, Failure
from sandbridge_kit.ports.runner import Answer, Ask
from sandbridge_runner.core.microvm import HostFacts, Owner
from sandbridge_runner.engines import microvm_host
from sandbridge_runner.engines.microsandbox import HOME_PREFIX, MicrosandboxEngine
from sandbridge_runner.engines.options import EngineOptions
from sandbridge_runner.pool import PoolSettings
from sandbridge_runner.runtimes.deno import Deno
from sandbridge_runner.service import PoolRunner

STAND_IN = Path(__file__).parents[1] / "data" / "host_sdk"
SERVER = Path(__file__).with_name("server_process.py")
MIB = 1024 * 1024
GOOD = HostFacts("linux", "x86_64", True, True, 12, True, frozenset({"kvm_amd"}), "0.7.11")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="micro-VMs need Linux")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A path that every user may pass."""
    with tempfile.TemporaryDirectory(prefix="vm-") as path:
        Path(path).chmod(0o755)
        yield Path(path)


@pytest.fixture
def library(folder: Path) -> Path:
    return Path(shutil.copytree(STAND_IN, folder / "sdk"))


@pytest.fixture
def engine(folder: Path, library: Path) -> MicrosandboxEngine:
    return MicrosandboxEngine(Deno(), EngineOptions(folder=folder), library=library, facts=lambda: GOOD)


@pytest.fixture
async def runner(engine: MicrosandboxEngine) -> AsyncIterator[PoolRunner]:
    async with PoolRunner(engine, spares=1) as runner:
        yield runner


async def until(condition: Callable[[], object], within: float = 10) -> bool:
    end = asyncio.get_running_loop().time() + within
    while not condition():
        if asyncio.get_running_loop().time() > end:
            return False
        await asyncio.sleep(0.01)
    return True


def below(pid: int) -> list[psutil.Process]:
    return [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]


async def test_a_script_runs_and_what_was_made_for_it_is_gone_after_it(runner: PoolRunner, folder: Path) -> None:
    results = [(await run_on(runner, a_start(f"return {n} + 1"))).result for n in range(2)]
    homes = await until(lambda: len([*folder.glob(f"{HOME_PREFIX}*/vms/*")]) == 1)

    assert (results, homes) == ([1, 2], True)


async def test_ten_mebibytes_cross_both_ways_unchanged(runner: PoolRunner) -> None:
    body = os.urandom(10 * MIB)
    seen: list[Ask] = []

    def answer(ask: Ask) -> Answer:
        seen.append(ask)
        return Answer(ask.seq, NOW_MS, {"status": 200, "headers": {}, "payload": {"kind": "bytes"}}, body)

    code = (
        "const got = await fetch('http://x.example/'); const all = new Uint8Array(await got.arrayBuffer());"
        " await fetch('http://x.example/', {method: 'POST', body: all}); return all.length"
    )
    ran = await run_on(runner, a_start(code, wall_clock_ms=20_000), answer)

    assert (ran.result, len(seen), seen[1].body == body) == (10 * MIB, 2, True)


async def test_a_guest_that_never_reads_makes_the_process_beside_it_hold_little(engine: MicrosandboxEngine) -> None:
    engine.prepare()
    guest = engine.spawn()
    try:
        assert await until(lambda: _has_spoken(guest.output))
        guest.ready()
        os.kill(guest.pids[-1], signal.SIGSTOP)
        written = 0
        for _ in range(200):
            with contextlib.suppress(BlockingIOError):
                written += os.write(guest.input, bytes(64 * 1024))
            await asyncio.sleep(0.002)
    finally:
        guest.kill()
        ended = await until(lambda: guest.ended() is not None)
        guest.release()
        engine.dispose()

    assert (ended, written < 2 * MIB) == (True, True), written


async def test_a_start_waits_for_its_turn(engine: MicrosandboxEngine, folder: Path) -> None:
    engine.prepare()
    turns = [os.open(path, os.O_RDONLY) for path in folder.glob(f"{HOME_PREFIX}*/turns/*")]
    for turn in turns:
        fcntl.flock(turn, fcntl.LOCK_EX)
    guest = engine.spawn()
    try:
        early = await until(lambda: [*folder.glob(f"{HOME_PREFIX}*/vms/1/sandboxes/*")], within=1)
        os.close(turns.pop())
        late = await until(lambda: _has_spoken(guest.output))
    finally:
        guest.kill()
        await until(lambda: guest.ended() is not None)
        guest.release()
        engine.dispose()
        for turn in turns:
            os.close(turn)

    assert (early, late) == (False, True)


def _has_spoken(descriptor: int) -> bool:
    with contextlib.suppress(BlockingIOError):
        return bool(os.read(descriptor, 65536))
    return False


@pytest.mark.parametrize(
    ("code", "end"),
    [
        ("while(true){}", Code.TIMED_OUT),
        ("const all = []; for (;;) all.push(new Uint8Array(4 << 20).fill(1))", Code.MEMORY_EXCEEDED),
        ("throw new Error('x')", Code.SCRIPT_ERROR),
    ],
)
async def test_a_script_that_is_too_much_is_ended_by_its_name_and_the_next_runs(
    runner: PoolRunner, code: str, end: Code
) -> None:
    ran = await run_on(runner, a_start(code, wall_clock_ms=900, memory_bytes=96 * MIB))
    after = await run_on(runner, a_start("return 42"))

    assert (ran.failure.code, after.result) == (end, 42)


@pytest.mark.parametrize("position", [0, -1], ids=["outermost", "innermost"])
async def test_a_process_around_a_micro_vm_that_is_killed_takes_all_of_it_along(
    runner: PoolRunner, position: int
) -> None:
    async with runner.open(a_start("while(true){}")) as run:
        tree = below(run._guest.pids[0])  # type: ignore[attr-defined]
        tree[position].kill()
        events = [event async for event in run.events()]
        gone = await until(lambda: not any(_runs(process) for process in tree))

    assert (gone, events[-1].outcome.failure.code) == (True, Code.SANDBOX_LOST)  # type: ignore[union-attr]


async def test_a_kill_of_the_guest_by_its_own_kernel_is_told_as_too_much_memory(
    runner: PoolRunner, folder: Path
) -> None:
    async with runner.open(a_start("while(true){}")) as run:
        # The spare that comes after writes to another log.
        logs = [*folder.glob(f"{HOME_PREFIX}*/vms/1/sandboxes/*/logs/kernel.log")]
        logs[0].chmod(0o600)
        logs[0].write_text("[    3.1] Out of memory: Killed process 70 (deno) total-vm:1kB\n")
        os.kill(run._guest.pids[-1], signal.SIGKILL)  # type: ignore[attr-defined]
        events = [event async for event in run.events()]

    assert events[-1].outcome.failure.code is Code.MEMORY_EXCEEDED  # type: ignore[union-attr]


async def test_what_a_script_says_is_in_no_file_that_has_a_name(runner: PoolRunner, folder: Path) -> None:
    async with runner.open(a_start("console.log('a-canary'); return await api.wait()")) as run:
        events = run.events()
        while "a-canary" not in repr(await anext(events)):
            pass
        logs = [path.name for path in folder.glob(f"{HOME_PREFIX}*/vms/1/sandboxes/*/logs/*")]
        modes = [path.stat().st_mode & 0o222 for path in folder.glob(f"{HOME_PREFIX}*/vms/1/sandboxes/*/logs")]
        await run.cancel(Failure(Code.CANCELLED, "enough"))

    assert (logs, modes) == (["kernel.log"], [0])


async def test_a_start_that_fails_once_is_tried_once_more(folder: Path, library: Path) -> None:
    (library / "microsandbox" / "refusals").write_text("1")
    (library / "microsandbox" / "refusals").chmod(0o666)
    engine = MicrosandboxEngine(Deno(), EngineOptions(folder=folder), library=library, facts=lambda: GOOD)
    async with PoolRunner(engine, spares=0) as runner:
        ran = await run_on(runner, a_start("return 42"))

    assert ran.result == 42


async def test_a_start_that_fails_twice_is_a_lost_sandbox_and_leaves_nothing(folder: Path, library: Path) -> None:
    (library / "microsandbox" / "refusals").write_text("9")
    (library / "microsandbox" / "refusals").chmod(0o666)
    engine = MicrosandboxEngine(Deno(), EngineOptions(folder=folder), library=library, facts=lambda: GOOD)
    runner = PoolRunner(engine, spares=1, pool=PoolSettings(ready_timeout=5))
    with pytest.raises(Exception, match="the sandbox did not start"):
        await runner.start()

    assert [path.name for path in folder.iterdir()] == ["sdk"]


async def test_stopping_leaves_no_process_and_no_file(engine: MicrosandboxEngine, folder: Path) -> None:
    async with PoolRunner(engine, spares=2) as runner:
        trees = [p for pipe in runner._pool._alive for p in below(pipe.guest.pids[0])]  # type: ignore[union-attr]
    gone = await until(lambda: not any(_runs(process) for process in trees))

    assert (len(trees) >= 4, gone, [path.name for path in folder.iterdir()]) == (True, True, ["sdk"])


def _runs(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def test_a_server_that_is_killed_takes_its_micro_vms_along_and_the_next_removes_what_it_left(
    engine: MicrosandboxEngine, folder: Path, library: Path
) -> None:
    path = os.pathsep.join(filter(None, sys.path))
    server = subprocess.Popen(
        [sys.executable, str(SERVER), str(folder), str(library)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert server.stdout is not None
    pids = json.loads(server.stdout.readline())
    processes = [psutil.Process(pid) for pid in pids]
    server.kill()
    server.wait()
    server.stdout.close()
    end = time.monotonic() + 5
    while (alive := [p for p in processes if _runs(p)]) and time.monotonic() < end:
        time.sleep(0.01)
    left = [*folder.glob(f"{HOME_PREFIX}*")]
    for home in left:
        os.utime(home, (0, 0))
    engine.prepare()
    homes = [*folder.glob(f"{HOME_PREFIX}*")]
    engine.dispose()

    assert (len(pids) >= 3, alive, len(left), len(homes), left == homes) == ((True, [], 1, 1, False))


def test_a_micro_vm_whose_server_is_gone_is_killed_and_no_other(folder: Path) -> None:
    host = os.uname().nodename
    names = {
        "gone": Owner(host, 2**22 - 1, 1).name(1),
        "mine": microvm_host.this_owner().name(1),
        "another host's": Owner("another", 2**22 - 1, 1).name(1),
        "somebody's own": "devbox",
    }
    # Python takes the first argument for its script: a process whose arguments are a micro-VM's, and that sleeps.
    (folder / "machine").write_text("import time; time.sleep(60)")
    sleepers = {
        who: subprocess.Popen(["msb", "machine", "--name", name], executable=sys.executable, cwd=folder)
        for who, name in names.items()
    }
    try:
        killed = microvm_host.kill_orphans()
        sleepers["gone"].wait(5)
        alive = [who for who, process in sleepers.items() if process.poll() is None]
    finally:
        for process in sleepers.values():
            process.kill()
            process.wait()

    assert (killed >= 1, alive) == (True, ["mine", "another host's", "somebody's own"])


async def test_a_host_without_virtualisation_is_refused_with_what_it_lacks(folder: Path, library: Path) -> None:
    lacking = HostFacts("linux", "x86_64", True, True, 12, False, frozenset({"kvm_pvm"}), None)
    engine = MicrosandboxEngine(Deno(), EngineOptions(folder=folder), library=library, facts=lambda: lacking)
    with pytest.raises(OSError, match=r"sandbridge-runner\[microsandbox\]; /dev/kvm is paravirtual"):
        engine.prepare()

    assert [path.name for path in folder.iterdir()] == ["sdk"]


async def test_an_image_that_cannot_be_loaded_is_told_and_leaves_nothing(folder: Path, library: Path) -> None:
    (library / "microsandbox" / "__init__.py").write_text("raise RuntimeError('no such library')")
    engine = MicrosandboxEngine(Deno(), EngineOptions(folder=folder), library=library, facts=lambda: GOOD)
    with pytest.raises(OSError, match="was not loaded: RuntimeError: no such library"):
        engine.prepare()

    assert [path.name for path in folder.iterdir()] == ["sdk"]

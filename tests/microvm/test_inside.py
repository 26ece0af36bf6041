"""Real micro-VMs: what the library that drives them would leave open, and what the engine does about it."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from guests import a_start, empty, run_on
from subjects import Subject
from unchained import unchained

from sandbridge_kit.errors import Code, Failure
from sandbridge_kit.ports.runner import Ask, Finished, Returned, RunLimits
from sandbridge_runner.engines.microsandbox import HOME_PREFIX
from sandbridge_runner.service import PoolRunner

MIB = 1024 * 1024
MICROSANDBOX = Subject("microsandbox", "deno")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A deep path with user attributes: sockets have to be reached below it all the same."""
    path = Path("/var/tmp") / f"vm-{os.getpid()}-{'deep' * 30}"
    path.mkdir()
    path.chmod(0o755)
    yield path
    assert [*path.iterdir()] == []
    path.rmdir()


@pytest.fixture
async def runner(folder: Path) -> AsyncIterator[PoolRunner]:
    async with PoolRunner(MICROSANDBOX.make(folder=folder), spares=1) as runner:
        yield runner


@pytest.fixture
async def hostile(folder: Path) -> AsyncIterator[PoolRunner]:
    ceilings = RunLimits(wall_clock_ms=600_000)
    async with PoolRunner(unchained(MICROSANDBOX, folder=folder), spares=1, ceilings=ceilings) as runner:
        yield runner


def virtual_machine_of(run: Any) -> psutil.Process:
    return next(p for pid in run._guest.pids for p in [psutil.Process(pid)] if Path(p.exe()).name == "msb")


def layers(folder: Path) -> dict[str, str]:
    files = sorted(folder.glob(f"{HOME_PREFIX}*/template/cache/layers/*.erofs"))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


async def test_the_process_of_a_micro_vm_has_no_privilege_no_user_of_ours_and_no_network(runner: PoolRunner) -> None:
    async with runner.open(a_start("while(true){}")) as run:
        process = virtual_machine_of(run)
        status = Path(f"/proc/{process.pid}/status").read_text()
        found = dict(re.findall(r"^(CapEff|CapBnd|NoNewPrivs|Seccomp):\s+(\w+)$", status, re.MULTILINE))
        devices = Path(f"/proc/{process.pid}/net/dev").read_text()
        uids = set(process.uids())

    links = re.findall(r"^\s*(\S+):", devices, re.MULTILINE)
    assert (0 in uids, len(uids), found["CapEff"].strip("0"), found["NoNewPrivs"], links) == (False, 1, "", "1", ["lo"])


async def test_nothing_a_guest_writes_changes_the_image_or_lies_on_the_host(hostile: PoolRunner, folder: Path) -> None:
    before = layers(folder)
    code = (
        "const places = ['/bin/deno', '/bin/new', '/srv/guest/guest.mjs', '/etc/passwd', '/.msb/x', '/init.krun',"
        " '/dev/shm/x', '/tmp/x', '/cache/gen/data/x'];"
        " return places.filter((place) => 'did' in tried(() => native.write(place, 'a-canary-in-a-file')))"
    )
    wrote = (await run_on(hostile, a_start(code))).result
    found = [
        path
        for path in folder.rglob("*")
        if path.is_file() and path.stat().st_size < 8 * MIB and b"a-canary-in-a-file" in path.read_bytes()
    ]
    again = (await run_on(hostile, a_start("return 'did' in tried(() => native.read('/tmp/x'))"))).result

    assert (wrote, found, again, len(before), layers(folder) == before) == (
        ["/dev/shm/x", "/tmp/x", "/cache/gen/data/x"],
        [],
        False,
        1,
        True,
    )


async def test_the_library_s_record_of_all_output_has_no_name_and_no_end_of_it_stops_a_guest(
    runner: PoolRunner, folder: Path
) -> None:
    code = "for (let n = 0; n < 5; n++) await fetch('http://x.example/', {method: 'POST', body: new Uint8Array(4e6)})"
    asked = 0
    async with runner.open(a_start(f"{code}; return 'through'", wall_clock_ms=200_000)) as run:
        async for event in run.events():
            if isinstance(event, Ask):
                asked += len(event.body)
                await run.answer(empty(event))
            if isinstance(event, Finished):
                outcome = event.outcome
        # The guest's end is noticed by this loop, so its home is still there.
        names = sorted({path.name for path in folder.glob(f"{HOME_PREFIX}*/vms/1/sandboxes/*/logs/*")})

    assert (asked, outcome, names) == (20_000_000, Returned(b'"through"'), ["kernel.log", "runtime.log"])


async def test_no_shared_memory_of_the_library_is_left(folder: Path) -> None:
    before = {path.name for path in Path("/dev/shm").iterdir()}
    async with PoolRunner(MICROSANDBOX.make(folder=folder), spares=1) as runner:
        assert (await run_on(runner, a_start("return 1"))).result == 1

    assert {path.name for path in Path("/dev/shm").iterdir()} - before == set()


async def test_memory_that_the_guest_takes_from_its_own_kernel_is_bounded_by_the_machine_it_has(
    hostile: PoolRunner,
) -> None:
    code = "const all = []; for (;;) all.push(new Uint8Array(4 << 20).fill(1))"
    async with hostile.open(a_start(code, wall_clock_ms=240_000, memory_bytes=256 * MIB)) as run:
        process = virtual_machine_of(run)
        most = 0
        reading = asyncio.ensure_future(_last(run))
        while not reading.done():
            if process.is_running():
                most = max(most, process.memory_info().rss)
            await asyncio.sleep(0.05)
        failure = (await reading).outcome.failure

    assert (failure.code, most < 1024 * MIB) == (Code.MEMORY_EXCEEDED, True), (failure, most)


async def _last(run: Any) -> Any:
    return [event async for event in run.events()][-1]


async def test_a_cancelled_run_is_gone_at_once_with_its_home(runner: PoolRunner, folder: Path) -> None:
    async with runner.open(a_start("while(true){}")) as run:
        process = virtual_machine_of(run)
        await run.cancel(Failure(Code.CANCELLED, "enough"))
        for _ in range(200):
            if not process.is_running() and not [*folder.glob(f"{HOME_PREFIX}*/vms/1")]:
                break
            await asyncio.sleep(0.05)
        gone = (process.is_running(), [*folder.glob(f"{HOME_PREFIX}*/vms/1")])

    assert gone == (False, [])

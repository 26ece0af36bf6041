"""A script that owns its process: what the engine's boundary alone still holds, seen from outside."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import psutil
import pytest
import worlds
from bombs import BALLOONS
from guest_trees import alive, pids_of, tasks_below, tree_of
from guests import Ran, a_start, run_on
from subjects import Subject
from unchained import hostile

from sandbridge_kit.errors import Code
from sandbridge_runner.service import PoolRunner

MIB = 1024 * 1024
CANARY = f"canary-{uuid.uuid4().hex}"
pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(sys.platform != "linux", reason="boundaries are looked at as on Linux"),
]
needs_world = pytest.mark.skipif(worlds.trouble() is not None, reason=worlds.trouble() or "")


TARGETS = (
    *("127.0.0.1", "::1", "0.0.0.0", "::", worlds.OWN_V4, worlds.OWN_V6, worlds.FAR_V4, worlds.FAR_V6),
    *("169.254.169.254", "fd00:ec2::254", "100.100.100.200", "10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1"),
    *("224.0.0.1", "ff02::1", "255.255.255.255", "198.51.100.255", "::ffff:127.0.0.1", "64:ff9b::7f00:1"),
)
DIAL = f"""
const reached = [];
const attempts = [];
const attempt = (name, action) => attempts.push((async () => action())().then(() => reached.push(name), () => 0));
for (const host of {json.dumps(TARGETS)}) {{
  const written = host.includes(':') ? '[' + host + ']' : host;
  attempt('tcp ' + host, () => native.tcp(host, {worlds.PORT}));
  attempt('udp ' + host, () => native.udp(host, {worlds.PORT}));
  attempt('http ' + host, () => native.http('http://' + written + ':{worlds.PORT}/'));
}}
attempt('name', () => native.name('example.com'));
attempt('localhost', () => native.tcp('localhost', {worlds.PORT}));
attempt('metadata', () => native.http('http://metadata.google.internal/'));
await Promise.all(attempts);
return reached;
"""


@needs_world
async def test_the_world_of_these_tests_sees_every_packet() -> None:
    with worlds.world() as outside:
        nothing = outside.seen()
        code = (
            "import socket as s\n"
            f"for f, h in ((s.AF_INET, '{worlds.FAR_V4}'), (s.AF_INET6,"
            f" '{worlds.FAR_V6}'), (s.AF_INET, '127.0.0.1')):\n"
            f"    s.socket(f, s.SOCK_DGRAM).sendto(b'x', (h, {worlds.PORT}))\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True)
        packets, callers = outside.seen(), list(outside.callers)

    assert (nothing, len(packets) >= 4, len(callers)) == ([], True, 1)


@needs_world
async def test_e01_e02_e04_e05_e17_no_packet_leaves_a_sandbox_whose_script_owns_its_process(subject: Subject) -> None:
    with worlds.world() as outside:
        async with hostile(subject) as runner:
            ran = await run_on(runner, a_start(DIAL, wall_clock_ms=15_000))
            seen = outside.seen()

    # What a guest reaches on a loopback of its own is itself; nothing of that may be seen outside.
    reached = [name for name in ran.result if not name.startswith("udp")]
    assert (seen, [name for name in reached if worlds.OWN_V4 in name or worlds.OWN_V6 in name]) == ([], [])


@needs_world
async def test_e08_a_resolver_that_a_sandbox_makes_for_itself_asks_nobody(subject: Subject) -> None:
    code = (
        f"tried(() => native.write('/etc/hosts', '{worlds.OWN_V4} api.example'));"
        " tried(() => native.write('/etc/resolv.conf', 'nameserver 203.0.113.53'));"
        " return await native.http('http://api.example/').then(() => 'reached', () => 'not')"
    )
    hosts = Path("/etc/hosts").read_bytes()
    with worlds.world() as outside:
        async with hostile(subject) as runner:
            ran = await run_on(runner, a_start(code, wall_clock_ms=5000))
            seen = outside.seen()

    assert (ran.result, seen, Path("/etc/hosts").read_bytes() == hosts) == ("not", [], True)


async def test_e19_a_sandbox_has_no_network_device_to_leave_by(subject: Subject) -> None:
    async with hostile(subject) as runner, runner.open(a_start("for (;;);", wall_clock_ms=5000)) as run:
        devices = worlds.interfaces_of(pids_of(run)[-1])
        routes = Path(f"/proc/{pids_of(run)[-1]}/net/route").read_text().splitlines()[1:]

    assert (set(devices) <= {"lo"}, routes) == (True, [])


async def test_s20_a_sandbox_can_signal_nobody(subject: Subject) -> None:
    victim = subprocess.Popen(["/bin/sleep", "60"])
    try:
        pids = [os.getpid(), os.getppid(), victim.pid]
        code = (
            "const tries = [];"
            f"for (const pid of [...{json.dumps(pids)}, native.ppid, -1])"
            " for (const name of ['SIGTERM', 'SIGKILL', 'SIGSTOP'])"
            "   if (pid > 1 || pid === -1 && native.pid !== 1) tries.push(tried(() => native.kill(pid, name)));"
            " return tries.length"
        )
        async with hostile(subject) as runner:
            try:
                await run_on(runner, a_start(code, wall_clock_ms=3000))
            finally:
                statuses = [psutil.Process(pid).status() for pid in (victim.pid, os.getpid())]
    finally:
        victim.kill()
        victim.wait()

    assert [s in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE) for s in statuses] == [False, False]


PROC = """
const found = {};
for (const pid of tried(() => native.list('/proc')).did ?? []) {
  if (!/^\\d+$/.test(pid)) continue;
  for (const name of ['environ', 'cmdline']) {
    const text = tried(() => native.read(`/proc/${pid}/${name}`)).did;
    if (text) found[`${pid} ${name}`] = text;
  }
}
return {found, environment: native.environment(), pid: native.pid};
"""


async def test_s14_c01_a_sandbox_sees_no_secret_and_no_environment_of_the_host(subject: Subject) -> None:
    os.environ["SANDBRIDGE_API_KEY"] = CANARY
    sleeper = subprocess.Popen(["/bin/sleep", "60"], env={"OTHER_TENANT": CANARY})
    try:
        async with hostile(subject) as runner:
            ran = await run_on(runner, a_start(PROC, wall_clock_ms=5000))
    finally:
        del os.environ["SANDBRIDGE_API_KEY"]
        sleeper.kill()
        sleeper.wait()

    text = json.dumps(ran.result)
    # deno makes up a PATH of its own where it may write.
    assert (CANARY in text, ran.result["environment"].get("PATH") == os.environ["PATH"]) == (False, False)


async def test_s14_no_process_outside_has_the_canary_in_a_sandbox_tree(subject: Subject) -> None:
    os.environ["SANDBRIDGE_API_KEY"] = CANARY
    try:
        async with hostile(subject) as runner, runner.open(a_start("for (;;);", wall_clock_ms=5000)) as run:
            texts = [
                (process.pid, (Path(f"/proc/{process.pid}/environ").read_bytes() if os.geteuid() == 0 else b""))
                for process in tree_of(run)
            ]
    finally:
        del os.environ["SANDBRIDGE_API_KEY"]

    assert [pid for pid, text in texts if CANARY.encode() in text] == []


async def test_s01_a_bomb_of_processes_is_bounded_and_disturbs_no_other_run(subject: Subject) -> None:
    code = "for (let n = 0; n < 4000; n++) { tried(() => native.multiply()); tried(() => native.thread()) } for (;;);"
    before = len(psutil.pids())
    async with hostile(subject, spares=2) as runner:
        most, other = 0, ""
        async with runner.open(a_start(code, wall_clock_ms=1500, memory_bytes=512 * MIB)) as run:
            reading = asyncio.ensure_future(_all(run))
            while not reading.done():
                most = max(most, tasks_below(run))
                if not other:
                    other = (await run_on(runner, a_start("return 'unharmed'", wall_clock_ms=8000))).result
                await asyncio.wait([reading], timeout=0.05)
            pids = [process.pid for process in tree_of(run)]
        await _until(lambda: not any(map(alive, pids)))
        after = (await run_on(runner, a_start("return 'unharmed'", wall_clock_ms=8000))).result
        await _until(lambda: len(psutil.pids()) < before + 40)

    codes = {Code.TIMED_OUT, Code.PROCESS_LIMIT, Code.MEMORY_EXCEEDED, Code.SANDBOX_LOST}
    assert (reading.result().failure.code in codes, most < 400, other, after) == (True, True, "unharmed", "unharmed"), (
        reading.result().failure,
        most,
    )


async def _all(run: Any) -> Ran:
    return Ran([event async for event in run.events()])


async def _until(condition: Any, within: float = 5.0) -> bool:
    end = time.monotonic() + within
    while not condition() and time.monotonic() < end:
        await asyncio.sleep(0.02)
    return bool(condition())


async def test_s02_a_balloon_of_native_memory_is_named_and_bounded(broken_out: PoolRunner) -> None:
    limit = 128 * MIB
    ran = await run_on(broken_out, a_start(BALLOONS["typed arrays"].code, memory_bytes=limit, wall_clock_ms=15_000))

    assert (ran.failure.code, (ran.finished.peak_memory_bytes or 0) <= 1.5 * limit) == (Code.MEMORY_EXCEEDED, True)


PLACES = (
    "/tmp",
    "/dev/shm",
    "/var/tmp",
    "/run",
    "/",
    "/etc",
    "/root",
    "/home",
    ".",
    "/proc/self/cwd",
    "/sys/fs/cgroup",
)
FILL = f"""
const block = new Uint8Array(1 << 20).fill(7), wrote = {{}};
for (const place of {json.dumps(PLACES)}) {{
  const path = place + '/sandbridge-fill-{CANARY[-8:]}';
  for (let n = 0; n < 600; n++) if (tried(() => native.append(path, block)).failed) break; else wrote[place] = n + 1;
}}
return wrote;
"""


async def test_s22_s02_files_that_a_sandbox_writes_stay_inside_and_count_as_its_memory(broken_out: PoolRunner) -> None:
    limit = 128 * MIB
    ran = await run_on(broken_out, a_start(FILL, memory_bytes=limit, wall_clock_ms=15_000))
    after = (await run_on(broken_out, a_start("return 1"))).result

    wrote = {} if hasattr(ran.finished.outcome, "failure") else ran.result
    left = [path for place in PLACES[:8] for path in Path(place).glob("sandbridge-fill-*")]
    for path in left:
        path.unlink()
    assert (left, sum(wrote.values()) <= 1.5 * limit / MIB, after) == ([], True, 1), wrote


MANY = """
let made = 0;
for (const place of ['/tmp', '/dev/shm', '/var/tmp', '.']) {
  for (let n = 0; n < 20000; n++) if (tried(() => native.write(`${place}/s22-${n}`, '')).failed) break; else made++;
  let deep = place + '/s22-deep'; tried(() => native.makeDirectory(deep));
  for (let n = 0; n < 500; n++) { deep += '/d'; if (tried(() => native.makeDirectory(deep)).failed) break; }
  tried(() => native.truncate(`${place}/s22-sparse`, 2 ** 40));
}
return made;
"""


async def test_s22_inodes_deep_folders_and_sparse_files_leave_the_host_alone(broken_out: PoolRunner) -> None:
    free = os.statvfs("/tmp").f_ffree
    ran = await run_on(broken_out, a_start(MANY, wall_clock_ms=10_000))
    began = time.monotonic()
    after = (await run_on(broken_out, a_start("return 1"))).result
    took = time.monotonic() - began
    left = [path for place in ("/tmp", "/dev/shm", "/var/tmp") for path in Path(place).glob("s22-*")]

    assert (left, os.statvfs("/tmp").f_ffree > free - 10_000, after, took < 4) == ([], True, 1, True), ran


async def test_s13_a_file_of_one_run_is_not_there_in_the_next(broken_out: PoolRunner) -> None:
    leave = (
        f"const places = {json.dumps(PLACES)};"
        f" return places.filter((p) => !tried(() => native.write(p + '/{CANARY}', '{CANARY}')).failed)"
    )
    look = f"return {json.dumps(PLACES)}.filter((p) => !tried(() => native.read(p + '/{CANARY}')).failed)"
    await run_on(broken_out, a_start(leave, wall_clock_ms=5000))
    found = (await run_on(broken_out, a_start(look, wall_clock_ms=5000))).result
    left = [place for place in PLACES[:8] if (Path(place) / CANARY).exists()]
    for place in left:
        (Path(place) / CANARY).unlink()

    assert (found, left) == ([], [])


async def test_s23_open_files_and_sockets_run_out_inside_only(broken_out: PoolRunner) -> None:
    code = (
        "const held = []; let failed = '';"
        " for (let n = 0; n < 200000 && !failed; n++) {"
        "   const r = tried(() => native.open('/proc/self/exe')); if (r.failed)"
        " failed = r.failed; else held.push(r.did) }"
        " return held.length"
    )
    ran = await run_on(broken_out, a_start(code, wall_clock_ms=8000))
    after = (await run_on(broken_out, a_start("return 1"))).result

    opened = 0 if hasattr(ran.finished.outcome, "failure") else ran.result
    assert (opened < 200_000, after) == (True, 1)


async def test_s08_a_forged_second_end_and_a_frame_of_another_run_end_in_an_error(broken_out: PoolRunner) -> None:
    twice = "say({t: 'finished', ok: true}, '1'); say({t: 'finished', ok: true}, '2'); for (;;);"
    other = "say({t: 'ask', seq: 7, kind: 'api', api: 'orders', call: 'a'}); for (;;);"
    codes = [(await run_on(broken_out, a_start(code, wall_clock_ms=3000))).finished.outcome for code in (twice, other)]

    failures = [getattr(outcome, "failure", None) for outcome in codes]
    assert [failure and failure.code for failure in failures] in (
        [Code.GUEST_EXITED, Code.GUEST_EXITED],
        # The first end may be read, and believed, before the second has been written.
        [None, Code.GUEST_EXITED],
    )


async def test_s17_no_descriptor_of_the_host_comes_along(subject: Subject, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    mark.write_text(CANARY)
    folder, file = os.open(tmp_path, os.O_RDONLY), os.open(mark, os.O_RDONLY)
    try:
        for descriptor in (folder, file):
            os.set_inheritable(descriptor, True)
        async with hostile(subject) as runner, runner.open(a_start("for (;;);", wall_clock_ms=5000)) as run:
            links = [
                (process.name(), link.readlink())
                for process in tree_of(run)
                for link in Path(f"/proc/{process.pid}/fd").glob("*")
            ]
    finally:
        os.close(folder)
        os.close(file)

    assert (len(links) >= 3, [link for link in links if str(tmp_path) in str(link[1])]) == (True, [])


async def test_s14_a_file_of_the_host_cannot_be_read(broken_out: PoolRunner, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    mark.write_text(CANARY)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    paths = [str(mark), f"/proc/self/root{mark}", f"/proc/{os.getpid()}/root{mark}", f"/proc/self/cwd/../../..{mark}"]
    ran = await run_on(broken_out, a_start(f"return {json.dumps(paths)}.map((p) => tried(() => native.read(p)).did)"))

    assert CANARY not in json.dumps(ran.result)


async def test_s20_a_frozen_sandbox_is_ended_at_its_limit(subject: Subject) -> None:
    async with hostile(subject) as runner, runner.open(a_start("for (;;);", wall_clock_ms=800)) as run:
        for pid in pids_of(run):
            os.kill(pid, signal.SIGSTOP)
        ran = await _all(run)
        pids = [process.pid for process in tree_of(run)]
        gone = await _until(lambda: not any(map(alive, pids)))

    assert (ran.failure.code, gone) == (Code.TIMED_OUT, True)

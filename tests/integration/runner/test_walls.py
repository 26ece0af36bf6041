"""The kernel's walls: a program behind them tries what they forbid, and guests are looked at from outside."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import socket
import sys
import time
from pathlib import Path

import pytest
from guests import SOFT_ENGINES, NewEngine, a_start, run_on

from sandbridge_kit.errors import Code
from sandbridge_runner.engines import landlock, walls
from sandbridge_runner.engines.launcher import Launcher, Start, Started, Walls
from sandbridge_runner.engines.soft import SoftEngine
from sandbridge_runner.pool import PoolSettings
from sandbridge_runner.service import PoolRunner

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(sys.platform != "linux", reason="the walls are those of Linux"),
]
PROGRAM = Path(__file__).with_name("walled_process.py")


def read_all(started: Started) -> bytes:
    said = b""
    while chunk := os.read(started.descriptors[1], 65536):
        said += chunk
    return said


def walled(tmp_path: Path, port: int, **members: object) -> dict[str, object]:
    """What the program says that was started behind these walls, with all of Python to read."""
    filtered = "filtered" if members.get("has_filter") else "open"
    command = (sys.executable, str(PROGRAM), str(tmp_path), str(port), filtered)
    python = {Path(sys.prefix), Path(sys.base_prefix), *(Path(path) for path in sys.path if Path(path).exists())}
    grants = (
        *walls.grants_for(Path(sys.executable), PROGRAM.parent, has_network=False),
        *(landlock.runnable(str(path)) for path in python),
        landlock.writable(str(tmp_path)),
    )
    start = Start(command, {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}, tmp_path, tmp_path)
    launcher = Launcher()
    try:
        started = launcher.start(Walls(**{"grants": grants, **members}), start)  # type: ignore[arg-type]
        said = read_all(started)
        assert said, os.read(started.descriptors[2], 4000).decode()
        started.close()
    finally:
        launcher.close()
    return dict(json.loads(said))


@pytest.fixture
def namespaces() -> int:
    """All of them; skips where this host gives none."""
    kinds = walls.NAMESPACES | 0x40000000 | (0 if os.geteuid() == 0 else 0x10000000)
    launcher = Launcher()
    try:
        trouble = launcher.failure_of(Walls(kinds), Start(("/bin/true",), {}, Path("/"), Path("/tmp")))
    finally:
        launcher.close()
    if trouble is not None:
        pytest.skip(f"this host gives no namespaces: {trouble}")
    return kinds


FORBIDDEN = {
    "a process": "EPERM",
    "a program": "EACCES",
    "signal the parent": "EPERM",
    "signal the first process": "EPERM",
    "read the users": "EACCES",
    "list the root": "EACCES",
    "list the processes": "EACCES",
    "read its own memory map": "EACCES",
    "an internet socket": "EPERM",
    "call a port of the host": "EPERM",
    "an abstract socket": "EPERM",
}
ALLOWED = {"a thread": "done", "a pair of sockets": "done", "a file of its own": "done"}


async def test_landlock_and_the_filter_hold_by_themselves_even_against_the_servers_own_user(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        said = walled(tmp_path, server.getsockname()[1], has_filter=True)

    written = {"write to /tmp": "EACCES", "write to /dev/shm": "EACCES"}
    assert (said["attempts"], said["let in"], said["inherited"]) == ({**FORBIDDEN, **ALLOWED, **written}, [], [])


async def test_all_walls_together_leave_what_an_engine_needs(tmp_path: Path, namespaces: int) -> None:
    said = walled(tmp_path, 1, has_filter=True, namespaces=namespaces)

    written = {"write to /tmp": "EROFS", "write to /dev/shm": "EROFS"}
    assert (said["attempts"], said["let in"]) == ({**FORBIDDEN, **ALLOWED, **written}, [])


async def test_namespaces_hold_by_themselves(tmp_path: Path, namespaces: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        attempts = walled(tmp_path, server.getsockname()[1], grants=None, namespaces=namespaces)["attempts"]

    assert isinstance(attempts, dict)
    assert {name: attempts[name] for name in ("call a port of the host", "an abstract socket", "write to /tmp")} == {
        "call a port of the host": "ENETUNREACH",
        "an abstract socket": "ECONNREFUSED",
        "write to /tmp": "EROFS",
    }


async def test_a_guest_is_seen_from_outside_to_stand_behind_every_active_layer(
    runner: PoolRunner, new_engine: NewEngine
) -> None:
    engine: SoftEngine = new_engine()
    engine.prepare()
    active = {layer.name for layer in engine.layers() if layer.is_active}
    engine.dispose()
    async with runner.open(a_start("while(true){}")) as run:
        pid = run._guest.pids[-1]  # type: ignore[attr-defined]
        lines = (line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        status = {name: value for name, *rest in lines for value in rest}
        own = {
            kind: (Path(f"/proc/{pid}/ns/{kind}").readlink() != Path(f"/proc/self/ns/{kind}").readlink())
            for kind in ("net", "pid", "mnt", "ipc", "uts")
        }

    assert (status["Seccomp"] == "2", status["NoNewPrivs"] == "1", status["CapEff"].strip("0"), all(own.values())) == (
        "system-call-filter" in active,
        "no-new-privileges" in active,
        "",
        "namespaces" in active,
    )


async def test_every_layer_that_is_missing_says_what_it_needs(new_engine: NewEngine) -> None:
    engine = new_engine()
    engine.prepare()
    found = engine.layers()
    engine.dispose()

    assert [layer for layer in found if layer.is_active == bool(layer.needs)] == []


async def test_guests_die_with_the_zygote_and_the_next_one_has_another(new_engine: NewEngine) -> None:
    engine = new_engine()
    async with PoolRunner(engine, spares=0, pool=PoolSettings(first_backoff=0.01)) as runner:
        async with runner.open(a_start("while(true){}")) as run:
            assert engine._launcher is not None
            os.kill(engine._launcher.pid, signal.SIGKILL)
            events = [event async for event in run.events()]
        after = await run_on(runner, a_start("return 1"))

    assert (events[-1].outcome.failure.code, after.result) == (Code.SANDBOX_LOST, 1)  # type: ignore[union-attr]


async def test_a_program_that_cannot_be_started_says_why(tmp_path: Path) -> None:
    launcher = Launcher()
    started = launcher.start(Walls(), Start((f"{tmp_path}/missing",), {}, tmp_path, tmp_path))
    while (code := started.poll()) is None:
        time.sleep(0.001)
    reason = os.read(started.descriptors[2], 1000).decode()
    started.close()
    launcher.close()

    assert (code, os.strerror(errno.ENOENT) in reason) == (126, True)


async def test_node_does_not_start_where_it_would_share_the_hosts_network() -> None:
    with pytest.raises(PermissionError, match="does not start without namespaces"):
        await asyncio.to_thread(SOFT_ENGINES["node"](dies_by="watchdog").prepare)

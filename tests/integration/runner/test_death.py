"""No guest outlives its run or its server, however these end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

SERVER = Path(__file__).with_name("server_process.py")
pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="process ids and death signals are looked at as on Linux"
)


def environment() -> dict[str, str]:
    """With what this process can import."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def all_gone(pids: list[int], within: float = 2.0) -> list[int]:
    """Return those still alive after `within` seconds; early where none is."""
    deadline = asyncio.get_running_loop().time() + within
    while (alive := [pid for pid in pids if is_alive(pid)]) and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.01)
    return alive


WAYS = [("deno", "signal"), ("deno", "watchdog"), ("node", "signal")]
"""Node has no watchdog's way: it starts nowhere but behind the kernel's walls."""


@pytest.mark.parametrize(("engine", "dies_by"), WAYS)
@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM], ids=lambda number: number.name)
async def test_no_guest_outlives_a_server_that_is_killed_while_a_script_spins(
    engine: str, signum: int, dies_by: str
) -> None:
    server = await asyncio.create_subprocess_exec(
        sys.executable, str(SERVER), engine, dies_by, stdout=asyncio.subprocess.PIPE, env=environment()
    )
    assert server.stdout is not None
    pids = json.loads(await asyncio.wait_for(server.stdout.readline(), 20))
    before = [pid for pid in pids if is_alive(pid)]

    os.kill(server.pid, signum)
    await server.wait()

    assert (len(before) >= 2, await all_gone(pids)) == (True, [])

"""Services as processes of their own, as a deployment runs them, for tests."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import psutil


@dataclass
class ServiceProcess:
    """One process, and the log it has written so far."""

    process: asyncio.subprocess.Process
    logs: list[dict[str, Any]] = field(default_factory=list)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    async def follow(self) -> None:
        """Read the log to its end. A line that is no JSON fails the test."""
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self.logs.append(json.loads(line))
            self._news.set()
        self._news.set()

    async def logged(self, event: str, within: float = 20.0) -> dict[str, Any]:
        """Wait for a log line of this name."""
        async with asyncio.timeout(within):
            while True:
                self._news.clear()
                for line in self.logs:
                    if line["event"] == event:
                        return line
                await self._news.wait()

    async def address(self) -> str:
        """Where it listens, once it is ready."""
        await self.logged("ready")
        return f"127.0.0.1:{(await self.logged('listening'))['port']}"

    def children(self) -> list[int]:
        """Processes below this one that are alive."""
        with contextlib.suppress(psutil.NoSuchProcess):
            below = psutil.Process(self.process.pid).children(recursive=True)
            return [child.pid for child in below if child.status() != psutil.STATUS_ZOMBIE]
        return []


@contextlib.asynccontextmanager
async def service(module: str, **settings: object) -> AsyncIterator[ServiceProcess]:
    """Start `python -m module` with `SANDBRIDGE_*` settings on a free port; it is killed after the test."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SANDBRIDGE_")}
    own = {"ADDRESS": "127.0.0.1:0", **settings}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        env={**inherited, **{f"SANDBRIDGE_{name}": str(value) for name, value in own.items()}},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    started = ServiceProcess(process)
    following = asyncio.create_task(started.follow())
    try:
        yield started
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await following


async def all_gone(pids: list[int], within: float = 2.0) -> list[int]:
    """Return those still alive after `within` seconds; early where none is."""
    deadline = asyncio.get_running_loop().time() + within
    while (alive := [pid for pid in pids if _is_alive(pid)]) and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.01)
    return alive


def _is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False

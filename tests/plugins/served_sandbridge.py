"""A served Sandbridge as a child process, over HTTP or as a command for stdio clients."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from sandbridge_command import COMMAND, clean_environment

from orders_service.process import OrdersApi

START_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Served:
    """One server: its endpoint and its process."""

    url: str
    process: subprocess.Popen[str]

    def guests(self) -> list[int]:
        """Return the process ids of the engines that the server has now."""
        return guests_of(self.process.pid)


def guests_of(pid: int) -> list[int]:
    """Return the process ids of the engines below a process."""
    children = psutil.Process(pid).children(recursive=True)
    return [child.pid for child in children if child.name().startswith("deno")]


def gone(pids: list[int], *, within: float) -> bool:
    """Wait until none of the processes is alive; False where one still is after `within` seconds."""
    deadline = time.monotonic() + within
    while any(alive(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def alive(pid: int) -> bool:
    """True for a process that runs; a zombie does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def orders_arguments(api: OrdersApi) -> list[str]:
    """Return the arguments that serve one orders service."""
    return ["serve", "--openapi", str(api.document), "--base-url", api.url]


@contextlib.contextmanager
def served_http(*arguments: str, environ: dict[str, str]) -> Iterator[Served]:
    """Serve over HTTP on a free port for the length of the block."""
    command = [str(COMMAND), *arguments, "--transport", "http", "--single-tenant", "--port", "0"]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=clean_environment(**environ)
    )
    try:
        yield Served(_endpoint(process), process)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _endpoint(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    seen = []
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        line = process.stderr.readline()
        if not line:
            break
        seen.append(line)
        if found := re.search(r"http://127\.0\.0\.1:\d+/mcp", line):
            return found.group()
    raise RuntimeError("the server did not start: " + "".join(seen))


def wait_for_endpoint(process: subprocess.Popen[str], log: Path) -> str:
    """Wait until a server that logs into a file says where it serves, and return that."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if found := re.search(r"serving (http://127\.0\.0\.1:\d+/mcp)", log.read_text(encoding="utf-8")):
            return found[1]
        time.sleep(0.05)
    raise RuntimeError("the server did not start: " + log.read_text(encoding="utf-8"))

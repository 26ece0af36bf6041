"""The service as a child process: started, waited for, stopped. For tests, benchmarks and the demo."""

from __future__ import annotations

import contextlib
import json
import select
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
DOCUMENT = HERE / "openapi.yaml"
START_SECONDS = 20
STOP_SECONDS = 5


@dataclass(frozen=True, slots=True)
class OrdersApi:
    """A service that runs: where, what key it takes, its process id, and its OpenAPI document."""

    url: str
    key: str
    pid: int
    document: Path = DOCUMENT


def _first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
    line = process.stdout.readline() if ready else ""
    if not line:
        raise RuntimeError(f"The orders service did not start within {START_SECONDS} s; see its messages above.")
    return line


@contextlib.contextmanager
def running(key: str = "orders-test-key", *arguments: str) -> Iterator[OrdersApi]:
    """Run the service on a free port of 127.0.0.1 for the length of the block, with data of its own.

    `arguments` are more of the command's own, such as `"--issuer", URL`.
    """
    command = [sys.executable, str(HERE / "server.py"), "--port", "0", "--key", key, *arguments]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        yield OrdersApi(json.loads(_first_line(process))["url"], key, process.pid)
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

"""The same walls where the server is an ordinary user."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from guests import SOFT_ENGINES

from sandbridge_runner.engines.confinement import is_reachable
from sandbridge_runner.runtimes import deno, node

PROCESS = Path(__file__).with_name("user_process.py")
USER = "65533"
SCRIPTS = {
    "return 1 + 1": 2,
    "const a = []; for (;;) { const b = new Uint8Array(1 << 20); b.fill(1); a.push(b) }": "memory_exceeded",
    "return localStorage.length": "script_error",
    "return typeof caches": "undefined",
    "return (await import('node:fs')).writeFileSync('/tmp/sandbridge-left', 'x')": "script_error",
    "return (await import('node:child_process')).execSync('id')": "script_error",
    "return await import('http://127.0.0.1:1/')": "script_error",
    "globalThis.left = 1; return 1": 1,
    "return 'left' in globalThis": False,
}


BINARIES = {"deno": deno.find_binary, "node": node.find_binary}


def command(binary: Path) -> list[str]:
    """The interpreter, as an ordinary user; skips where root has none that such a user can run."""
    if os.geteuid() != 0:
        return [sys.executable]
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    choices = [sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"]
    python = next((path for path in choices if Path(path).exists() and is_reachable(Path(path))), None)
    setpriv = shutil.which("setpriv")
    if python is None or setpriv is None or not is_reachable(binary):
        pytest.skip("root, and no interpreter or engine here that an ordinary user can run")
    return [setpriv, "--reuid", USER, "--regid", USER, "--clear-groups", python]


@pytest.mark.parametrize("engine", SOFT_ENGINES)
async def test_scripts_meet_the_same_walls_where_the_server_is_an_ordinary_user(engine: str) -> None:
    binary = BINARIES[engine]()
    path = os.pathsep.join(filter(None, sys.path))
    done = await asyncio.to_thread(
        subprocess.run,
        [*command(binary), str(PROCESS), engine, str(binary)],
        input=json.dumps(list(SCRIPTS)),
        env={
            "PYTHONPATH": path,
            "PATH": "/usr/bin:/bin",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        cwd="/",
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert done.returncode == 0, done.stderr

    said = json.loads(done.stdout)

    assert (said["uid"] != 0, dict(zip(SCRIPTS, said["outcomes"], strict=True))) == (True, SCRIPTS)

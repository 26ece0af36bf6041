"""Nested names in a query or form (`a[b][0]=c`), read by qs in a node process of its own."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@cache
def _qs() -> subprocess.Popen[str]:
    # It ends with this process: its input closes then.
    command = [str(ROOT / ".venv/bin/node"), str(Path(__file__).with_name("brackets.mjs"))]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def parse(text: str) -> dict[str, Any]:
    """Return the nested values of `text`. Raises OSError or ValueError where qs has gone."""
    process = _qs()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(text) + "\n")
    process.stdin.flush()
    found: dict[str, Any] = json.loads(process.stdout.readline())
    return found

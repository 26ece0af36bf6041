"""The quick part of `make roundtrip`: the project's own documents and a few small ones."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path


def test_requests_say_what_was_intended_and_seeded_faults_are_seen(project_root: Path) -> None:
    command = [".venv/bin/python", "tests/roundtrip/run.py", "--quick", "--json"]

    ended = subprocess.run(command, cwd=project_root, capture_output=True, text=True, check=False, timeout=55)

    assert ended.stdout, ended.stderr
    found = json.loads(ended.stdout)
    assert (found["violations"], found["missed"], found["wrong"]) == ([], [], [])
    assert (found["caught"], found["faults"], found["documents"] >= 4, found["requests"] > 300) == (30, 30, True, True)

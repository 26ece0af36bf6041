"""A short soak of each engine; `make soak-engines` is the long one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from subjects import Subject
from usable import trouble

SOAK = Path(__file__).with_name("soak.py")
RUNS, HARD_RUNS = 50, 25
"""A sandbox of a hard engine takes longer to start, and kills make it start often."""


@pytest.mark.timeout(120)
@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes and mounts as on Linux")
def test_f16_many_runs_with_kills_leave_nothing(subject: Subject) -> None:
    if reason := trouble(subject):
        pytest.skip(reason)
    runsc = ("--runsc", str(subject.runsc)) if subject.runsc else ()
    done = subprocess.run(
        [
            sys.executable,
            str(SOAK),
            f"--runs={HARD_RUNS if subject.is_hard else RUNS}",
            f"--engines={subject.engine}",
            f"--runtimes={subject.runtime}",
            *runsc,
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=110,
    )

    assert (done.returncode, done.stdout.rstrip().endswith(": ok")) == (0, True), done.stdout + done.stderr[-3000:]

"""The engine suite, run by pytest inside a runner's pod: `make test-pod`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pods
from pods import Context

from sandbridge_runner.engines.installed_runsc import find_runsc

SECONDS = 900
UNREADABLE = "tests/engines/test_lifecycle.py::test_s13_what_an_engine_writes_for_a_run_goes_with_the_run"
"""Reads files of the users of sandboxes, which root of a pod cannot; test_pod.py looks at what is left of them."""
OPTIONS = ("-q", "-p", "no:cacheprovider", "--engine", "gvisor", "--deselect", UNREADABLE)


def main(*arguments: str) -> int:
    """Run it and print what pytest says; its exit code."""
    if reason := pods.trouble():
        print(f"test-pod: {reason}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="pod-") as name:
        Path(name).chmod(0o755)
        command = (sys.executable, "-m", "pytest", *OPTIONS, "--runsc", str(find_runsc(None)), *arguments)
        ended = pods.run(Path(name), command, Context(memory_bytes=4 << 30), seconds=SECONDS)
    print(ended.output, ended.errors, sep="\n")
    return ended.code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

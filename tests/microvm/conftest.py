"""What needs real micro-VMs is collected only where they are asked for by `--engine microsandbox`."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what `make test-microvm` runs, unless this is its run; and there, what needs no micro-VM."""
    asked = "microsandbox" in ",".join(config.getoption("--engine", None) or ())
    if collection_path.name in ("test_inside.py", "test_around.py"):
        return (collection_path.name == "test_inside.py") != asked or None
    return None

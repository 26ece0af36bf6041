"""Sandboxes of gVisor around guests that no JavaScript runtime holds back."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from sandbridge_runner.engines.gvisor import GvisorEngine
from sandbridge_runner.engines.installed_runsc import find_runsc
from sandbridge_runner.runtimes.deno import Deno

sys.path.insert(0, str(Path(__file__).parent))


def _trouble() -> str:
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return "the native guest is machine code for Linux on x86-64"
    try:
        find_runsc(None)
    except FileNotFoundError as error:
        return str(error)
    return ""


@pytest.fixture(scope="session", autouse=True)
def _gvisor_is_here() -> None:
    if reason := _trouble():
        pytest.skip(reason)


@pytest.fixture
def engine() -> GvisorEngine:
    """The engine on deno, not prepared."""
    return GvisorEngine(Deno())

"""A silent end has a name."""

from __future__ import annotations

import pytest

from sandbridge_kit.errors import Code
from sandbridge_kit.ports.runner import RunLimits
from sandbridge_runner.core.limits import clamp
from sandbridge_runner.core.verdict import of_silent_end
from sandbridge_runner.engines.cgroup import own_groups


@pytest.mark.parametrize(
    ("code", "out_of_memory", "errors", "expected"),
    [
        (0, False, "", Code.GUEST_EXITED),
        (1, False, "error: Uncaught Error: x", Code.GUEST_EXITED),
        (-9, False, "", Code.SANDBOX_LOST),
        (139, False, "", Code.SANDBOX_LOST),
        (-9, True, "", Code.MEMORY_EXCEEDED),
        (-5, False, "# Fatal JavaScript out of memory: Reached heap limit", Code.MEMORY_EXCEEDED),
        (-6, False, "memory allocation of 1048576 bytes failed", Code.MEMORY_EXCEEDED),
        (-6, False, "failed to spawn thread: Os { code: 11 }", Code.PROCESS_LIMIT),
    ],
)
def test_a_silent_end_is_named_after_its_cause(code: int, out_of_memory: bool, errors: str, expected: Code) -> None:
    assert of_silent_end(code, out_of_memory=out_of_memory, errors=errors).code is expected


def test_what_the_engine_printed_is_not_shown() -> None:
    assert "secret" not in of_silent_end(1, out_of_memory=False, errors="secret path").message


def test_each_limit_is_clamped_between_one_and_its_ceiling() -> None:
    asked = RunLimits(wall_clock_ms=10**9, memory_bytes=-5, result_bytes=7)

    assert clamp(asked, RunLimits()) == RunLimits(wall_clock_ms=30_000, memory_bytes=1, result_bytes=7)


def test_own_groups_are_read_in_both_versions() -> None:
    assert own_groups("4:memory:/a\n3:cpu,cpuacct:/b\n0::/c\n") == {
        "memory": "/a",
        "cpu": "/b",
        "cpuacct": "/b",
        "": "/c",
    }

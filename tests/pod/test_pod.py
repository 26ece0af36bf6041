"""The engine gvisor inside a runner's pod: what it needs there, and that nothing gets out of hand."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pods
import pytest
from pods import Context, Ended

from sandbridge_runner.core.pod import CAPABILITIES

HERE = Path(__file__).parent
pytestmark = [
    pytest.mark.skipif(pods.trouble() is not None, reason=pods.trouble() or ""),
    pytest.mark.timeout(120),
]
Run = Callable[..., Ended]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for a pod's files; not pytest's own, which the pod's users cannot pass through."""
    with tempfile.TemporaryDirectory(prefix="pod-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def run_inside(folder: Path) -> Run:
    """Runs a program of this folder in a fresh pod."""

    def run(script: str, *arguments: str, context: Context | None = None) -> Ended:
        return pods.run(folder, (sys.executable, str(HERE / script), *arguments), context)

    return run


@pytest.fixture
def run_runner(folder: Path) -> Run:
    """Starts the runner's own process in a fresh pod, without the certificates that it would need to serve."""

    def run(context: Context) -> Ended:
        confined = replace(context, environment={"SANDBRIDGE_REQUIRE_POD": "true"})
        return pods.run(folder, (sys.executable, "-m", "sandbridge_runner"), confined)

    return run


GOOD: dict[str, Any] = {
    "result": 42,
    "ends": ["timed_out", "memory_exceeded"],
    "groups": False,
    "left": [],
    "sandboxes": 0,
}


@pytest.mark.parametrize("runtime", ["deno", "node"])
def test_scripts_run_and_are_stopped_in_a_pod_with_exactly_these_rights(run_inside: Run, runtime: str) -> None:
    assert run_inside("inside_facts.py", runtime).facts == GOOD


def test_an_ordinary_user_of_the_pod_needs_no_capability_at_all(run_inside: Run) -> None:
    assert run_inside("inside_facts.py", context=Context(capabilities=(), user=1000)).facts == GOOD


@pytest.mark.parametrize("missing", CAPABILITIES)
def test_without_any_one_of_the_capabilities_no_sandbox_starts(run_inside: Run, missing: str) -> None:
    rest = tuple(name for name in CAPABILITIES if name != missing)

    ended = run_inside("inside_facts.py", context=Context(capabilities=rest))

    assert (ended.code, "gVisor starts no sandbox here" in ended.errors) == (1, True), ended.errors[-2000:]


def test_balloons_and_a_fork_bomb_beside_good_runs_disturb_nobody(run_inside: Run) -> None:
    facts = run_inside("inside_attack.py").facts

    peak = facts.pop("peak")
    bomb = facts["fork bomb"].pop("ends")
    assert facts == {
        "balloons": {"ends": ["memory_exceeded"] * 4, "wrong": []},
        "fork bomb": {"wrong": []},
        "after": 1,
    }
    assert bomb[0] in ("process_limit", "sandbox_lost", "memory_exceeded", "timed_out")
    assert peak < pods.MEMORY_BYTES


@pytest.mark.parametrize(
    ("context", "reason"),
    [
        (Context(has_user_namespace=False), "root of the node is mapped into this pod"),
        (Context(no_new_privileges=False), "no_new_privs is off"),
        (Context(has_seccomp=False), "no seccomp filter is set"),
        (
            Context(capabilities=(*CAPABILITIES, "CAP_SYS_ADMIN")),
            "capabilities beyond the list are held (capability 21)",
        ),
    ],
)
def test_a_runner_refuses_a_pod_with_more_rights_than_needed(run_runner: Run, context: Context, reason: str) -> None:
    ended = run_runner(context)

    assert (ended.code, f"this pod may not run scripts: {reason}" in ended.errors) == (2, True), ended.errors


def test_a_runner_goes_on_in_a_pod_with_exactly_the_rights_it_needs(run_runner: Run) -> None:
    ended = run_runner(Context())

    assert ("this pod may not" in ended.errors, "certificate" in ended.errors.lower()) == (False, True), ended.errors

"""`sandbridge doctor`: honest about what works, whatever an engine does when it is tried."""

from __future__ import annotations

import json
import sys

import pytest

from sandbridge_local.examination import Finding, as_text, examine, report
from sandbridge_local.settings import LocalSandboxSettings

LAYERS = (
    {"name": "kernel", "active": True, "detail": "its own", "needs": ""},
    {"name": "cgroup", "active": False, "detail": "watched", "needs": "delegate one"},
)


def test_an_engine_works_where_one_of_its_runtimes_does() -> None:
    outcome = report(
        [
            Finding("deno", "deno", "no deno here"),
            Finding("gvisor", "deno", "no deno here", LAYERS),
            Finding("gvisor", "node", None, LAYERS),
        ]
    )

    assert [(one["name"], one["works"], one["trouble"], one["modes"]) for one in outcome["engines"]] == [
        ("deno", False, "no deno here", ["local"]),
        ("gvisor", True, None, ["local", "hosted"]),
    ]
    assert as_text(outcome).splitlines()[1:] == [
        "engine deno (local mode): does not work: no deno here",
        "engine gvisor (local and hosted mode): works",
        "  runtime deno: does not work: no deno here",
        "  runtime node: works",
        "  [x] kernel: its own",
        "  [ ] cgroup: watched (needs: delegate one)",
    ]


@pytest.mark.parametrize(
    ("program", "trouble"),
    [
        ("print('[]'); print('null')", None),
        ("print('[]'); print('\"no KVM\"')", "no KVM"),
        ("print('[]')", "the trial broke off without an answer"),
        ("raise SystemExit(3)", "the trial broke off without an answer"),
        ("print('{')", "the trial broke off without an answer"),
        ("print('x' * 3_000_000)", "the trial broke off without an answer"),
    ],
)
def test_every_engine_and_runtime_has_an_answer_whatever_its_trial_does(program: str, trouble: str | None) -> None:
    outcome = examine(LocalSandboxSettings(), command=lambda sandbox: (sys.executable, "-S", "-c", program))

    found = [(e["name"], r["name"], r["trouble"]) for e in outcome["engines"] for r in e["runtimes"]]
    assert found == [
        ("deno", "deno", trouble),
        ("node", "node", trouble),
        ("gvisor", "deno", trouble),
        ("gvisor", "node", trouble),
        ("microsandbox", "deno", trouble),
        ("microsandbox", "node", trouble),
    ]


def test_a_trial_that_hangs_is_ended_and_keeps_the_layers_it_told_of() -> None:
    program = f"print({json.dumps(list(LAYERS[:1]))!r}, flush=True); import time; time.sleep(60)"

    outcome = examine(LocalSandboxSettings(), command=lambda _: (sys.executable, "-S", "-c", program), seconds=0.5)

    assert {(e["trouble"], len(e["layers"])) for e in outcome["engines"]} == {("no answer within 0.5 s", 1)}


def test_a_trial_is_told_which_engine_and_runtime_to_try_and_where_gvisor_is() -> None:
    asked: list[tuple[str, str | None, str | None]] = []

    def command(sandbox: LocalSandboxSettings) -> tuple[str, ...]:
        asked.append((sandbox.engine, sandbox.runtime, sandbox.runsc))
        return (sys.executable, "-S", "-c", "")

    examine(LocalSandboxSettings(runsc="/opt/runsc"), command=command)

    assert sorted(asked, key=str) == sorted(
        [
            ("deno", None, "/opt/runsc"),
            ("node", None, "/opt/runsc"),
            ("gvisor", "deno", "/opt/runsc"),
            ("gvisor", "node", "/opt/runsc"),
            ("microsandbox", "deno", "/opt/runsc"),
            ("microsandbox", "node", "/opt/runsc"),
        ],
        key=str,
    )

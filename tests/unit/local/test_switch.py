"""`sandbridge switch`: what it refuses before it asks anybody, and the state that it asks for."""

from __future__ import annotations

from pathlib import Path

import pytest
from deployments import Deployment

from sandbridge_kit.certificates import Service
from sandbridge_local.__main__ import main
from sandbridge_orchestrator.core.switches import SwitchState, latest, switched


@pytest.mark.parametrize(
    ("changes", "code", "reason"),
    [
        ({"target": "search"}, 2, "There is no switch 'search'; use execute, or api:NAME for one API."),
        ({"target": "api:Orders"}, 2, "There is no switch 'api:Orders'"),
        ({"control": "somewhere"}, 2, "--control is 'somewhere'; use HOST:PORT"),
        ({"control": "no..host:7400"}, 2, "--control: cannot look up no..host"),
        ({"tls": "nowhere"}, 2, "--tls-dir: cannot read nowhere/tls.crt"),
        ({}, 1, "No orchestrator of this deployment answers at 127.0.0.1:1."),
    ],
)
def test_what_cannot_be_switched_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, str], code: int, reason: str
) -> None:
    Deployment(tmp_path).files(Service.CONTROL)
    given = {"target": "execute", "control": "127.0.0.1:1", "tls": str(tmp_path / Service.CONTROL), **changes}

    ended = main(["switch", given["target"], "off", "--control", given["control"], "--tls-dir", given["tls"]])

    printed = capsys.readouterr()
    assert (ended, reason in printed.err, printed.out) == (code, True, "")


def test_the_state_asked_for_is_above_every_replica_and_keeps_what_is_off() -> None:
    replicas = [SwitchState(True, {"orders": False}, 4), SwitchState(True, {}, 7), SwitchState(False, {}, 7)]

    assert switched(latest(replicas), "billing", on=False) == SwitchState(False, {"billing": False}, 8)
    assert switched(latest(replicas[:1]), None, on=False) == SwitchState(False, {"orders": False}, 5)
    assert switched(latest(replicas[:1]), "orders", on=True) == SwitchState(True, {"orders": True}, 5)

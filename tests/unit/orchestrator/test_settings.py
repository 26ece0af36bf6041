"""The settings of an orchestrator process, and what may start."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sandbridge_kit.config import Deployment, SettingsError
from sandbridge_kit.environment import settings_from
from sandbridge_orchestrator.core.switches import SwitchState
from sandbridge_orchestrator.gate import ControlledGate
from sandbridge_orchestrator.settings import OrchestratorSettings, banners, deployment_from, first_state

CONFIG = "apis: [{name: orders, openapi: {inline: '{}'}}]\n"


def settings(**variables: str) -> OrchestratorSettings:
    given = {"config": "deployment.yaml", **variables}
    return settings_from(OrchestratorSettings, {f"SANDBRIDGE_{name.upper()}": value for name, value in given.items()})


def deployment(**sandbox: Any) -> Deployment:
    api = {"name": "orders", "openapi": {"inline": "{}"}}
    return Deployment.model_validate({"apis": [api], "sandbox": sandbox})


@pytest.mark.parametrize(
    ("runners", "addresses"),
    [
        ("127.0.0.1:7402", {"127.0.0.1:7402"}),
        ("a:1, b:2,[::1]:3", {"a:1", "b:2", "[::1]:3"}),
        ("dns:127.0.0.1:7402", {"127.0.0.1:7402"}),
        ("dns:[::1]:7402", {"[::1]:7402"}),
    ],
)
def test_runners_are_listed_or_looked_up(runners: str, addresses: set[str]) -> None:
    assert asyncio.run(settings(runners=runners).discover()) == addresses


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"runners": "nowhere"}, "SANDBRIDGE_RUNNERS: 'nowhere' is not HOST:PORT"),
        ({"runners": "a:1,b:99999"}, "SANDBRIDGE_RUNNERS: 'b:99999' is not HOST:PORT"),
        ({"runners": "dns:a:1,b:2"}, "SANDBRIDGE_RUNNERS: give one name after dns:"),
        ({"docs": "http://docs"}, "SANDBRIDGE_DOCS: 'http://docs' is not HOST:PORT"),
        ({"mode": "hostd"}, "SANDBRIDGE_MODE"),
        ({"runers": "a:1"}, "did you mean SANDBRIDGE_RUNNERS?"),
        ({"when_switched_off": "kill"}, "SANDBRIDGE_WHEN_SWITCHED_OFF"),
    ],
)
def test_a_wrong_variable_is_named(variables: dict[str, str], reason: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings(**variables)

    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("variables", "engine", "refusal"),
    [
        ({"acknowledge_single_tenant": "1"}, "deno", None),
        ({}, "deno", "HTTP without sign-in is refused"),
        ({"acknowledge_single_tenant": "1", "host": "10.0.0.1"}, "deno", "listens on loopback only"),
        ({"mode": "hosted", "acknowledge_single_tenant": "1"}, "deno", "needs a hard boundary"),
        ({"mode": "hosted", "acknowledge_single_tenant": "1"}, "gvisor", "Hosted mode over HTTP needs sign-in"),
    ],
)
def test_only_one_tenant_on_loopback_is_served(variables: dict[str, str], engine: str, refusal: str | None) -> None:
    try:
        found: str | tuple[str, ...] = banners(settings(**variables), deployment(engine=engine), platform="linux")
    except SettingsError as error:
        found = str(error)

    if refusal is None:
        assert found == ("SINGLE TENANT: whoever reaches this port acts with these API keys",)
    else:
        assert refusal in found


@pytest.mark.parametrize(
    ("mode", "disabled", "state"),
    [
        ("local", False, SwitchState(execute=True)),
        ("local", True, SwitchState(execute=False)),
        ("hosted", False, None),
        ("hosted", True, None),
    ],
)
def test_a_hosted_replica_begins_switched_off(mode: str, disabled: bool, state: SwitchState | None) -> None:
    given = deployment().model_copy(update={"execute_disabled": disabled})

    assert first_state(settings(mode=mode), given) == state
    assert ControlledGate(state).state.execute is (state is not None and state.execute)


def test_a_deployment_is_read_and_what_is_wrong_in_it_named(tmp_path: Path) -> None:
    good, wrong = tmp_path / "good.yaml", tmp_path / "wrong.yaml"
    good.write_text(CONFIG)
    wrong.write_text(CONFIG + "sandbox: {pooolSize: 3}\n")

    assert [api.name for api in deployment_from(good).apis] == ["orders"]
    with pytest.raises(SettingsError, match="pooolSize: there is no such setting; did you mean poolSize"):
        deployment_from(wrong)
    with pytest.raises(SettingsError, match="Cannot read the config file"):
        deployment_from(tmp_path / "absent.yaml")

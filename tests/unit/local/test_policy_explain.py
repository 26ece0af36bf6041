"""What `policy explain` says is what would be decided."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sandbridge_kit.config import SettingsError
from sandbridge_local.__main__ import main
from sandbridge_local.arguments import parser
from sandbridge_local.commands.policy import run
from sandbridge_local.settings import settings_from

DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "1"},
    "paths": {"/things": {"get": {"operationId": "things.list"}, "post": {"operationId": "things.make"}}},
}
AUTH = {"resource": "https://m.example/mcp", "issuers": [{"issuer": "https://i.example", "audiences": ["a"]}]}
SHARED = {"mode": "static", "sharedIdentity": "acknowledged"}
ALLOW = {"rules": [{"name": "ops", "effect": "allow", "operations": ["things.*"], "claims": {"group": "ops"}}]}


def explained(capsys: pytest.CaptureFixture[str], settings: dict[str, Any], *arguments: str) -> tuple[str, str]:
    api = {"openapi": {"inline": json.dumps(DOCUMENT)}, **settings.pop("api", {})}
    chosen = settings_from(flags={}, environ={}, config_text=json.dumps({"apis": [api], **settings}), apis=())
    given = parser("0").parse_args(["policy", "explain", "--json", "--operation", "things.make", *arguments])
    assert run(chosen, given) == 0
    told = json.loads(capsys.readouterr().out)
    return told["effect"], told["rule"]


@pytest.mark.parametrize(
    ("settings", "arguments", "expected"),
    [
        ({}, (), ("allow", "default-write")),
        ({"mode": "hosted"}, (), ("approve", "default-write")),
        ({"policy": {}}, (), ("approve", "default-write")),
        ({"policy": ALLOW}, ("--claim", "group=ops"), ("allow", "ops")),
        ({"policy": ALLOW}, ("--claim", 'group=["dev", "ops"]'), ("allow", "ops")),
        ({"policy": ALLOW}, ("--claim", "group=dev"), ("approve", "default-write")),
        ({"auth": AUTH, "api": {"credential": SHARED}}, (), ("deny", "shared-key")),
        ({"auth": AUTH, "api": {"credential": SHARED}, "policy": ALLOW}, ("--claim", "group=ops"), ("allow", "ops")),
    ],
)
def test_the_rule_that_would_decide_is_named(
    capsys: pytest.CaptureFixture[str], settings: dict[str, Any], arguments: tuple[str, ...], expected: tuple[str, str]
) -> None:
    assert explained(capsys, dict(settings), *arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--claim", "group"), "use NAME=VALUE"),
        (("--arguments", "{"), "is not JSON"),
        (("--arguments", '{"bodi": 1}'), "is an object with the members"),
        (("--operation", "things.mak"), "the nearest are api:things.make"),
    ],
)
def test_what_cannot_be_explained_is_refused_with_the_fix(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], problem: str
) -> None:
    with pytest.raises(SettingsError, match=problem):
        explained(capsys, {}, *arguments)


def test_a_trail_is_verified_only_with_files_and_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert (main(["audit", "verify"]), main(["audit", "keys"])) == (2, 2)
    assert "--key FILE" in capsys.readouterr().err

"""`sandbridge egress-policy`: the same policy in every form, and what may not start has none."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from sandbridge_command import Ran

from orders_service.process import OrdersApi

Command = Callable[..., Ran]


@pytest.fixture
def document(project_root: Path) -> str:
    return str(project_root / "examples" / "orders" / "openapi.yaml")


def digest(ran: Ran) -> str:
    (found,) = re.findall(r"^policySha256=([0-9a-f]{64})$", ran.err, re.MULTILINE)
    return str(found)


def test_every_form_prints_the_same_fingerprint_which_is_that_of_the_json(sandbridge: Command, document: str) -> None:
    arguments = ("--openapi", document, "--base-url", "https://api.example.com/v1", "--format")
    ran = {form: sandbridge("egress-policy", *arguments, form) for form in ("json", "srt", "networkpolicy", "cilium")}

    canonical = json.dumps(ran["json"].json, sort_keys=True, separators=(",", ":"))
    assert {(one.code, digest(one)) for one in ran.values()} == {(0, hashlib.sha256(canonical.encode()).hexdigest())}
    assert (
        [one["host"] for one in ran["json"].json["server"]["allow"]],
        ran["srt"].json["network"]["allowedDomains"],
        "~" in ran["srt"].json["filesystem"]["denyRead"],
        yaml.safe_load(ran["networkpolicy"].out)["kind"],
        yaml.safe_load(ran["cilium"].out)["spec"]["egress"][1]["toFQDNs"],
    ) == (["api.example.com"], ["api.example.com"], True, "NetworkPolicy", [{"matchName": "api.example.com"}])


def test_the_policy_is_that_of_the_config_file_and_changes_with_it(
    sandbridge: Command, document: str, tmp_path: Path
) -> None:
    config = tmp_path / "sandbridge.yaml"
    seen = []
    for private, authority in (("[]", "bridge"), ("['10.0.0.5:8443']", "bridge"), ("['10.0.0.5:8443']", "executor")):
        config.write_text(
            f"apis: [{{name: shop, openapi: {{path: {document}}}, baseUrl: 'https://10.0.0.5:8443', "
            f"allowPrivate: {private}}}]\negress: {{authority: {authority}}}\n"
        )
        ran = sandbridge("egress-policy", "--config", str(config))
        seen.append((digest(ran), len(ran.json["server"]["allow"]), ran.json["sandbox"]))

    assert [rest for _, *rest in seen] == [
        [0, {"network": "none", "allow": []}],
        [1, {"network": "none", "allow": []}],
        [1, {"network": "listed", "allow": ["10.0.0.5:8443"]}],
    ]
    assert len({one for one, *_ in seen}) == 3


def test_the_issuers_of_a_config_file_are_reached_at_every_place_that_it_states(
    sandbridge: Command, document: str, tmp_path: Path
) -> None:
    config = tmp_path / "sandbridge.yaml"
    issuer = {
        "issuer": "https://id.example.com/realm",
        "audiences": ["https://mcp.example.com/mcp"],
        "jwksUri": "https://keys.example.com/jwks",
        "exchange": {"clientId": "us", "tokenEndpoint": "https://id.example.com/token"},
    }
    settings = {
        "apis": [{"name": "shop", "openapi": {"path": document}, "baseUrl": "https://api.example.com"}],
        "auth": {"resource": "https://mcp.example.com/mcp", "issuers": [issuer]},
    }
    config.write_text(yaml.safe_dump(settings))
    ran = sandbridge("egress-policy", "--config", str(config))

    assert [(one.get("api"), one.get("issuer"), one["host"]) for one in ran.json["server"]["allow"]] == [
        ("shop", None, "api.example.com"),
        (None, "main", "id.example.com"),
        (None, "main", "keys.example.com"),
    ]


@pytest.mark.parametrize(
    ("arguments", "environ", "words"),
    [
        (["--engine", "node", "--egress-authority", "executor"], {}, "cannot limit egress"),
        (["--engine", "gvisor", "--egress-authority", "none"], {}, "no network at all"),
        (["--egress-authority", "executor"], {"SANDBRIDGE_API_KEY": "canary"}, "api has one"),
        (["--mode", "hosted"], {}, "hard boundary"),
        (["--egress-authority", "none", "--format", "srt"], {}, "only the form json"),
    ],
)
def test_what_must_not_start_has_no_policy(
    sandbridge: Command, document: str, arguments: list[str], environ: dict[str, str], words: str
) -> None:
    ran = sandbridge("egress-policy", "--openapi", document, *arguments, environ=environ)

    assert (ran.code, ran.out, words in ran.err, "canary" in ran.err) == (2, "", True, False)


@pytest.mark.parametrize(
    ("command", "arguments", "words"),
    [
        ("serve", ["--egress-authority", "none"], "SANDBRIDGE_ACKNOWLEDGE_NO_EGRESS_CONTROL=1"),
        ("run", ["--egress-authority", "none"], "SANDBRIDGE_ACKNOWLEDGE_NO_EGRESS_CONTROL=1"),
        ("run", ["--engine", "gvisor", "--egress-authority", "wrapper"], "nests two sandboxes"),
        ("serve", ["--engine", "deno", "--runtime", "node"], "its own runtime"),
    ],
)
def test_what_the_matrix_refuses_ends_the_start_with_its_fix(
    sandbridge: Command, document: str, command: str, arguments: list[str], words: str
) -> None:
    script = ["-"] if command == "run" else []

    ran = sandbridge(command, *script, "--openapi", document, *arguments, given="return 1")

    assert (ran.code, ran.out, words in ran.err) == (2, "", True)


@pytest.mark.parametrize(
    ("authority", "environ", "recorded", "banner"),
    [
        ("bridge", {}, 1, ""),
        ("executor", {}, 0, "EGRESS BY THE ENGINE"),
        ("none", {"SANDBRIDGE_ACKNOWLEDGE_NO_EGRESS_CONTROL": "1"}, 0, "NO EGRESS CONTROL"),
    ],
)
def test_a_scripts_own_fetch_crosses_the_bridge_unless_another_authority_lets_it_out(
    sandbridge: Command,
    shared_orders: OrdersApi,
    tmp_path: Path,
    authority: str,
    environ: dict[str, str],
    recorded: int,
    banner: str,
) -> None:
    trail = tmp_path / "audit.jsonl"
    arguments = ["--openapi", str(shared_orders.document), "--base-url", shared_orders.url, "--audit-file", str(trail)]
    code = f"return (await fetch('{shared_orders.url}/health')).status"

    ran = sandbridge("run", "-", *arguments, "--egress-authority", authority, given=code, environ=environ)

    calls = [line for line in trail.read_text().splitlines() if json.loads(line)["event"] == "api_call"]
    assert (ran.out.strip(), len(calls), banner in ran.err) == ("200", recorded, True)

"""Rules decide every call to the orders API, and can be explained."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from sandbridge_command import Ran

from orders_service.process import OrdersApi

POLICY: dict[str, Any] = {
    "revision": 7,
    "hidden": ["files.*"],
    "rules": [
        {"name": "staff", "effect": "allow", "operations": ["orders.create", "orders.cancel"]},
        {
            "name": "no-second-order",
            "effect": "deny",
            "operations": ["orders.cancel"],
            "arguments": {"/path/order_id": "ord_0002"},
            "reason": "that one is kept",
        },
    ],
}
SCRIPT = """
const tried = {};
const attempt = async (name, call) => {
  try { tried[name] = (await call()).response?.status ?? 'answered' } catch (error) { tried[name] = error.code }
};
await attempt('read', () => api.orders.list({query: {per_page: 1}}));
await attempt('cancel', () => api.orders.cancel({path: {order_id: 'ord_0001'}}));
await attempt('cancel kept', () => api.orders.cancel({path: {order_id: 'ord_0002'}}));
await attempt('fetch kept', () => fetch('/orders/ord_0002/cancel', {method: 'POST'}));
await attempt('hidden', () => api.files.list());
await attempt('fetch hidden', () => fetch('/files'));
return tried;
"""


@pytest.fixture
def decided(
    sandbridge: Callable[..., Ran], orders_with_data: OrdersApi, tmp_path: Path
) -> Callable[..., tuple[Ran, list[dict[str, Any]]]]:
    """Run a script under the policy; return how it ended, and the records of its calls."""

    def run(code: str, *arguments: str) -> tuple[Ran, list[dict[str, Any]]]:
        trail = tmp_path / "audit.jsonl"
        config = configuration(orders_with_data, tmp_path)
        given = ("run", "-", "--config", str(config), "--json", "--audit-file", str(trail), *arguments)
        ran = sandbridge(*given, given=code, environ={"SANDBRIDGE_API_KEY": orders_with_data.key})
        records = [json.loads(line) for line in trail.read_text(encoding="utf-8").splitlines()]
        return ran, [record for record in records if record["event"] == "api_call"]

    return run


@pytest.fixture
def orders_with_data() -> Any:
    """An orders service that only this test changes."""
    from orders_service.process import running

    with running("policy-canary-key") as api:
        yield api


def configuration(api: OrdersApi, folder: Path) -> Path:
    file = folder / "sandbridge.yaml"
    listed = [api.url.removeprefix("http://")]
    one = {"openapi": {"path": str(api.document)}, "baseUrl": api.url, "allowPrivate": listed}
    file.write_text(yaml.safe_dump({"apis": [one], "policy": POLICY}), encoding="utf-8")
    return file


def test_each_call_of_a_script_is_decided_and_recorded_with_its_rule(
    decided: Callable[..., tuple[Ran, list[dict[str, Any]]]],
) -> None:
    ran, calls = decided(SCRIPT)

    assert ran.json["result"] == {
        "read": 200,
        "cancel": 409,
        "cancel kept": "denied_by_policy",
        "fetch kept": "denied_by_policy",
        "hidden": "unknown_operation",
        "fetch hidden": "egress_denied",
    }
    assert [(one["decision"], one.get("rule"), one.get("policy_revision")) for one in calls] == [
        ("allowed", "default-read", 7),
        ("allowed", "staff", 7),
        ("denied", "no-second-order", 7),
        ("denied", "no-second-order", 7),
        ("refused", None, None),
        ("refused", None, None),
    ]


def test_what_needs_a_person_ends_the_run_unsent_and_a_dry_run_lists_it(
    decided: Callable[..., tuple[Ran, list[dict[str, Any]]]],
) -> None:
    code = (
        "await api.orders.cancel({path: {order_id: 'ord_0001'}});"
        "await api.orders.delete({path: {order_id: 'ord_0003'}})"
    )

    dry, _ = decided(code, "--dry-run")
    held, calls = decided(code + "; return 'not reached'")
    after, _ = decided("return (await api.orders.get({path: {order_id: 'ord_0003'}})).response.status")

    assert [(one["operation"], one["decision"], one["status"]) for one in dry.json["calls"]] == [
        ("api:orders.cancel", "dry_run", 0),
        ("api:orders.delete", "held", 0),
    ]
    error = held.json["error"]
    assert (held.code, error["code"], calls[-1]["decision"], calls[-1]["rule"]) == (
        1,
        "approval_required",
        "held",
        "default-destructive",
    )
    asked = "api:orders.delete (DELETE /orders/ord_0003): a destructive call needs a person's approval"
    assert asked in error["message"]
    assert after.json["result"] == 200


def test_a_decision_is_explained_as_it_would_be_made(
    sandbridge: Callable[..., Ran], orders_with_data: OrdersApi, tmp_path: Path
) -> None:
    config = str(configuration(orders_with_data, tmp_path))
    given = '{"path": {"order_id": "ord_0002"}}'
    arguments = ("--operation", "orders.cancel", "--caller", "alice", "--arguments", given)

    told = sandbridge("policy", "explain", "--config", config, *arguments)
    data = sandbridge("policy", "explain", "--config", config, *arguments, "--json").json
    unknown = sandbridge("policy", "explain", "--config", config, "--operation", "orders.cancle")

    assert told.out.splitlines() == [
        "api:orders.cancel (POST /orders/{order_id}/cancel, write), caller alice: denied",
        "rule no-second-order: that one is kept",
        "  staff (allow): matches",
        "  no-second-order (deny): matches",
        "policy revision 7; of the rules that match the most restrictive holds",
    ]
    assert (data["effect"], data["rule"], data["class"], data["revision"]) == ("deny", "no-second-order", "write", 7)
    assert (unknown.code, "the nearest are api:orders.cancel" in unknown.err) == (2, True)


def test_a_hidden_operation_is_not_found(
    sandbridge: Callable[..., Ran], orders_with_data: OrdersApi, tmp_path: Path
) -> None:
    config = str(configuration(orders_with_data, tmp_path))

    found = sandbridge("search", "files.list", "--config", config, "--json").json

    assert [card["id"] for card in found["cards"] if card["id"].startswith("files")] == []

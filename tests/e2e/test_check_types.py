"""`run --check`, and `execute` with `check`: a script that misuses the API fails before any call."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from mcp.client.client import Client
from sandbridge_command import Ran
from served_sandbridge import orders_arguments, served_http

from orders_service.process import OrdersApi
from sandbridge_runner.engines.soft import has_walls

pytestmark = pytest.mark.skipif(not has_walls(), reason="the compiler's cage needs Linux")

MISUSE = "await api.orders.list();\nreturn (await api.orders.get({path: {id: 'x'}})).data"


def test_a_misuse_fails_before_the_first_call_and_a_right_script_runs(
    run_script: Callable[..., Ran], project_root: Path, tmp_path: Path
) -> None:
    trail = tmp_path / "audit.jsonl"
    arguments = ("--check", "--typescript", str(project_root / "tools" / "npm"), "--audit-file", str(trail))

    wrong = run_script(MISUSE, *arguments)
    right = run_script("return (await api.orders.list({query: {per_page: 2}})).data.items.length", *arguments)

    error = wrong.json["error"]
    assert (wrong.code, error["code"], error["position"]) == (1, "type_error", {"line": 2, "column": 38})
    assert ("'id' does not exist" in error["message"], "{ path: { order_id } }" in error["hint"]) == (True, True)
    assert (right.code, right.json["result"]) == (0, 2)
    records = [json.loads(line) for line in trail.read_text().splitlines()]
    assert [(one["event"], one["outcome"]) for one in records if "outcome" in one] == [
        ("tool_call", "type_error"),
        ("api_call", "answered"),
        ("tool_call", "returned"),
    ]


def test_a_check_without_a_compiler_is_refused_with_what_to_install(
    run_script: Callable[..., Ran], tmp_path: Path
) -> None:
    ran = run_script("return 1", "--check", "--typescript", str(tmp_path))

    assert (ran.code, "npm install -g typescript@7" in ran.err) == (2, True)


async def test_execute_takes_check_where_there_is_a_compiler(shared_orders: OrdersApi, project_root: Path) -> None:
    arguments = [*orders_arguments(shared_orders), "--typescript", str(project_root / "tools" / "npm")]
    with served_http(*arguments, environ={"SANDBRIDGE_API_KEY": shared_orders.key}) as served:
        async with Client(served.url, mode="auto") as client:
            execute = next(tool for tool in (await client.list_tools()).tools if tool.name == "execute")
            wrong = await client.call_tool("execute", {"code": MISUSE, "check": True})
            unchecked = await client.call_tool("execute", {"code": MISUSE})

    assert execute.input_schema["properties"]["check"]["type"] == "boolean"
    texts = [answer.content[0].text for answer in (wrong, unchecked)]
    assert [one.split(" ")[0].strip(":") for one in texts] == ["type_error", "invalid_arguments"], texts

"""Real clients: both TypeScript SDKs, the Python client and the Inspector, over HTTP and stdio."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from sandbridge_command import COMMAND, clean_environment
from served_sandbridge import Served, orders_arguments, served_http

from orders_service.process import OrdersApi

# The pause leaves time for a progress report: what has not been sent when the result is ready is dropped.
SCRIPT = (
    "const {data} = await api.orders.list({query: {per_page: 3}}); console.log('three');"
    "await new Promise((done) => setTimeout(done, 100)); return data.items.length"
)


@pytest.fixture(scope="module")
def http_server(shared_orders: OrdersApi) -> Iterator[Served]:
    with served_http(*orders_arguments(shared_orders), environ={"SANDBRIDGE_API_KEY": shared_orders.key}) as served:
        yield served


@pytest.fixture(scope="module")
def node(project_root: Path) -> tuple[str, Path]:
    return str(project_root / ".venv" / "bin" / "node"), project_root / "tools" / "npm"


def typescript(node: tuple[str, Path], sdk: str, where: dict[str, Any]) -> Any:
    program, folder = node
    steps = [
        {"name": "search_docs", "arguments": {"query": "list orders"}},
        {"name": "execute", "arguments": {"code": SCRIPT}},
        {"name": "execute", "arguments": {"code": "throw new Error('boom')"}},
    ]
    done = subprocess.run(
        [program, str(folder / "clients" / "connect.mjs"), sdk, json.dumps(where), json.dumps(steps)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check_typescript(seen: Any, protocol: str) -> None:
    found, ran, failed = seen["results"]
    # The older SDK does not say which version it negotiated over stdio.
    assert seen["protocol"] in (protocol, None)
    assert [tool["name"] for tool in seen["tools"]] == ["search_docs", "execute"]
    assert found["structuredContent"]["cards"][0]["id"] == "orders.list"
    assert ran["structuredContent"]["result"] == 3
    assert [line["text"] for line in ran["structuredContent"]["logs"]] == ["three"]
    assert [one["progress"] for one in seen["progress"]] == [1], "one API call was made and reported"
    assert failed["isError"] is True
    assert "structuredContent" not in failed
    assert "script_error at line 1" in failed["content"][0]["text"]


@pytest.mark.parametrize(("sdk", "protocol"), [("legacy", "2025-11-25"), ("modern", "2026-07-28")])
def test_the_typescript_sdks_work_over_http(
    http_server: Served, node: tuple[str, Path], sdk: str, protocol: str
) -> None:
    check_typescript(typescript(node, sdk, {"url": http_server.url}), protocol)


@pytest.mark.parametrize(("sdk", "protocol"), [("legacy", "2025-11-25"), ("modern", "2026-07-28")])
def test_the_typescript_sdks_work_over_stdio(
    shared_orders: OrdersApi, node: tuple[str, Path], sdk: str, protocol: str
) -> None:
    where = {
        "command": str(COMMAND),
        "args": orders_arguments(shared_orders),
        "env": clean_environment(SANDBRIDGE_API_KEY=shared_orders.key),
    }

    check_typescript(typescript(node, sdk, where), protocol)


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
@pytest.mark.parametrize("transport", ["http", "stdio"])
async def test_the_python_client_works(
    http_server: Served, shared_orders: OrdersApi, transport: str, mode: str
) -> None:
    stdio = StdioServerParameters(
        command=str(COMMAND), args=orders_arguments(shared_orders), env={"SANDBRIDGE_API_KEY": shared_orders.key}
    )
    async with Client(http_server.url if transport == "http" else stdio, mode=mode) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        found = await client.call_tool("search_docs", {"query": "list orders"})
        ran = await client.call_tool("execute", {"code": SCRIPT})

    assert tools == ["search_docs", "execute"]
    assert found.structured_content["cards"][0]["id"] == "orders.list"
    assert ran.structured_content["result"] == 3


def inspect(node: tuple[str, Path], tmp_path: Path, *arguments: str) -> Any:
    program, folder = node
    launcher = folder / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    done = subprocess.run(
        [program, str(launcher), "--cli", "--format", "json", "-q", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        env=clean_environment(MCP_CATALOG_PATH=str(tmp_path / "catalog.json"), HOME=str(tmp_path)),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def call(tool: str, arguments: dict[str, Any]) -> list[str]:
    return ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments)]


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_the_inspector_lists_and_calls_both_tools(
    http_server: Served, shared_orders: OrdersApi, node: tuple[str, Path], tmp_path: Path, transport: str, era: str
) -> None:
    http = ["--server-url", http_server.url, "--transport", "http"]
    before, after = (http, []) if transport == "http" else ([], ["--", str(COMMAND), *orders_arguments(shared_orders)])
    reach = [*before, "--protocol-era", era]

    listed = inspect(node, tmp_path, *reach, "--method", "tools/list", "--strict", *after)
    found = inspect(node, tmp_path, *reach, *call("search_docs", {"query": "list orders"}), *after)
    ran = inspect(node, tmp_path, *reach, *call("execute", {"code": "return 42"}), *after)

    assert {"search_docs", "execute"} <= {tool["name"] for tool in tools_in(listed)}
    assert '"id": "orders.list"' in json.dumps(found)
    assert '"result": 42' in json.dumps(ran)


def tools_in(listed: Any) -> list[dict[str, Any]]:
    """Return the tools of an Inspector answer, wherever its version puts them."""
    if isinstance(listed, dict):
        if isinstance(listed.get("tools"), list):
            return list(listed["tools"])
        return next((tools for value in listed.values() if (tools := tools_in(value))), [])
    return []

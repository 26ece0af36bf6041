"""A served Sandbridge: several APIs, kept results, first contact, cancellation and every way to end."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from sandbridge_command import COMMAND, Ran, clean_environment
from served_sandbridge import Served, gone, guests_of, orders_arguments, served_http

from orders_service.process import OrdersApi

FOR_EVER = "while (true) {}"
FIRST_CONTACT_TOKENS = 1_200


@pytest.fixture
def http_server(orders_api: OrdersApi) -> Iterator[Served]:
    with served_http(*orders_arguments(orders_api), environ={"SANDBRIDGE_API_KEY": orders_api.key}) as served:
        yield served


def stdio_server(api: OrdersApi) -> StdioServerParameters:
    return StdioServerParameters(command=str(COMMAND), args=orders_arguments(api), env={"SANDBRIDGE_API_KEY": api.key})


def text_of(result: object) -> str:
    return "\n".join(getattr(block, "text", "") for block in result.content)  # type: ignore[attr-defined]


async def until(condition: Callable[[], bool], *, within: float) -> bool:
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True


async def test_a_large_result_is_cut_and_opened_again_by_its_handle_in_a_second_script(orders_api: OrdersApi) -> None:
    async with Client(stdio_server(orders_api), mode="auto") as client:
        script = "return Array.from({length: 20000}, (_, i) => ({id: i, text: 'x'.repeat(90)}))"
        first = await client.call_tool("execute", {"code": script})
        cut = first.structured_content
        again = f"const all = await results.get('{cut['truncated']['handle']}'); return [all.length, all[19999].id]"
        second = await client.call_tool("execute", {"code": again})

    assert cut["truncated"]["bytes"] > 2 * 1024 * 1024
    assert len(json.dumps(cut["result"], ensure_ascii=False, separators=(",", ":"))) <= 40_000
    assert cut["result"][0] == {"id": 0, "text": "x" * 90}
    assert second.structured_content["result"] == [20000, 19999]


async def test_two_apis_are_found_and_called_and_each_key_reaches_only_its_own(
    start_orders_api: Callable[[str], OrdersApi],
) -> None:
    one, two = start_orders_api("key-of-one"), start_orders_api("key-of-two")
    server = StdioServerParameters(
        command=str(COMMAND),
        args=[
            *("serve", "--openapi", f"a={one.document}", "--openapi", f"b={two.document}"),
            *("--base-url", f"a={one.url}", "--base-url", f"b={two.url}"),
        ],
        env={"SANDBRIDGE_API_KEY_A": one.key, "SANDBRIDGE_API_KEY_B": two.key},
    )
    async with Client(server, mode="auto") as client:
        found = await client.call_tool("search_docs", {"query": "list orders", "limit": 2})
        script = (
            "const a = await apis.a.orders.list({query: {per_page: 1}});"
            "const b = await apis.b.orders.list({query: {per_page: 1}});"
            "return [a.response.status, b.response.status, api === apis.a]"
        )
        ran = await client.call_tool("execute", {"code": script})

    assert {card["call"].split("(")[0].removeprefix("await ") for card in found.structured_content["cards"]} >= {
        "apis.a.orders.list",
        "apis.b.orders.list",
    }
    assert ran.structured_content["result"][:2] == [200, 200]
    assert [call["operation"] for call in ran.structured_content["calls"]] == ["a:orders.list", "b:orders.list"]


async def test_first_contact_is_cheap(project_root: Path) -> None:
    assert (
        await first_contact_tokens(project_root, project_root / "examples/orders/openapi.yaml") <= FIRST_CONTACT_TOKENS
    )


async def test_first_contact_is_as_cheap_for_a_large_api(project_root: Path, shared_data: Path) -> None:
    assert await first_contact_tokens(project_root, shared_data / "specs/github.json") <= FIRST_CONTACT_TOKENS


async def first_contact_tokens(project_root: Path, document: Path) -> int:
    server = StdioServerParameters(command=str(COMMAND), args=["serve", "--openapi", str(document)])
    async with Client(server, mode="legacy") as client:
        listed = await client.list_tools()
        text = client.instructions or ""
    counted = subprocess.run(
        [str(project_root / ".venv/bin/node"), str(project_root / "tools/npm/clients/tokens.mjs")],
        input=listed.model_dump_json(by_alias=True, exclude_unset=True) + text,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(counted.stdout)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["SIGTERM", "SIGKILL"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_no_guest_outlives_the_server(orders_api: OrdersApi, transport: str, how: signal.Signals) -> None:
    command = [str(COMMAND), *orders_arguments(orders_api)]
    if transport == "http":
        with served_http(*command[1:], environ={"SANDBRIDGE_API_KEY": orders_api.key}) as served:
            await end_while_running(served.process, served.url, how)
        return
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        env=clean_environment(SANDBRIDGE_API_KEY=orders_api.key),
    ) as process:
        assert process.stdin is not None
        for message in opening_messages():
            process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
        assert await until(lambda: busy(process.pid), within=10)
        pids = guests_of(process.pid)
        process.send_signal(how)
        assert gone(pids, within=2)
        process.wait(10)


async def end_while_running(process: subprocess.Popen[str], url: str, how: signal.Signals) -> None:
    async def run() -> None:
        async with Client(url, mode="auto") as client:
            await client.call_tool("execute", {"code": FOR_EVER})

    task = asyncio.ensure_future(run())
    assert await until(lambda: busy(process.pid), within=10)
    pids = guests_of(process.pid)
    process.send_signal(how)
    assert await asyncio.to_thread(gone, pids, within=2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def opening_messages() -> list[dict[str, object]]:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    return [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "execute", "arguments": {"code": FOR_EVER}},
        },
    ]


def busy(pid: int) -> bool:
    """True once a guest below `pid` has burnt processor time that no idle spare burns."""
    import psutil

    for guest in guests_of(pid):
        try:
            times = psutil.Process(guest).cpu_times()
        except psutil.NoSuchProcess:
            continue
        if times.user + times.system > 0.3:
            return True
    return False


async def test_a_cancelled_call_of_the_handshake_era_frees_its_guest(http_server: Served) -> None:
    # A session by hand, so that exactly the cancel notification ends the run and nothing else.
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    async with httpx2.AsyncClient(timeout=30) as http:
        opening, initialized, call = opening_messages()
        answer = await http.post(http_server.url, json=opening, headers=headers)
        headers |= {"mcp-session-id": answer.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
        await http.post(http_server.url, json=initialized, headers=headers)
        running = asyncio.ensure_future(http.post(http_server.url, json=call, headers=headers))
        assert await until(lambda: busy(http_server.process.pid), within=10)
        pids = http_server.guests()
        busy_pids = [pid for pid in pids if busy_itself(pid)]
        notice = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
        await http.post(http_server.url, json=notice, headers=headers)

        assert await asyncio.to_thread(gone, busy_pids, within=1)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    await slots_are_free(http_server)


async def test_a_client_of_the_modern_era_that_goes_away_frees_its_guest(http_server: Served) -> None:
    async def run() -> None:
        async with Client(http_server.url, mode="2026-07-28") as client:
            await client.call_tool("execute", {"code": FOR_EVER})

    task = asyncio.ensure_future(run())
    assert await until(lambda: busy(http_server.process.pid), within=10)
    pids = [pid for pid in http_server.guests() if busy_itself(pid)]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert await asyncio.to_thread(gone, pids, within=1)
    await slots_are_free(http_server)


def busy_itself(pid: int) -> bool:
    import psutil

    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.NoSuchProcess:
        return False
    return times.user + times.system > 0.3


async def slots_are_free(served: Served) -> None:
    async with Client(served.url, mode="auto") as client:
        answers = await asyncio.gather(*(client.call_tool("execute", {"code": f"return {n}"}) for n in range(4)))
    assert [answer.structured_content["result"] for answer in answers] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--transport", "http"], "--single-tenant"),
        (["--transport", "http", "--single-tenant", "--host", "0.0.0.0"], "loopback"),
        (["--mode", "hosted"], "hard boundary"),
        (["--engine", "firecracker"], "engine"),
    ],
)
def test_an_unsound_combination_stops_the_start(
    sandbridge: Callable[..., Ran], project_root: Path, arguments: list[str], named: str
) -> None:
    ran = sandbridge("serve", "--openapi", str(project_root / "examples/orders/openapi.yaml"), *arguments)

    assert ran.code == 2
    assert named in ran.err


async def test_one_audit_record_is_written_for_each_tool_call_and_each_api_call(
    orders_api: OrdersApi, tmp_path: Path
) -> None:
    trail = tmp_path / "audit.jsonl"
    server = stdio_server(orders_api)
    server.args += ["--audit-file", str(trail)]
    async with Client(server, mode="auto") as client:
        await client.call_tool("search_docs", {"query": "orders"})
        script = "await api.orders.list({}); await api.orders.get({path: {order_id: 'nope'}}); return 1"
        await client.call_tool("execute", {"code": script})

    lines = [json.loads(line) for line in trail.read_text().splitlines()]
    records = [record for record in lines if not record["event"].startswith("stream_")]
    assert [record.get("tool") or record.get("operation") for record in records] == [
        "search_docs",
        "api:orders.list",
        "api:orders.get",
        "execute",
    ]
    assert orders_api.key not in trail.read_text()
    assert trail.stat().st_mode & 0o077 == 0

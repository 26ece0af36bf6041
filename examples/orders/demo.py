"""A walk through code mode: start the orders API, serve it with Sandbridge, and use it as an MCP client would.

Run it with `make demo`. It prints each step, and stops everything that it started.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import psutil
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from orders_service.process import OrdersApi, running

QUERY = "create an order"

SCRIPT = """\
// One script instead of a dozen tool calls: list, filter, create.
const pending = [];
for await (const order of paginate(api.orders.list, { query: { status: 'pending' } }, { limit: 100 })) {
  pending.push(order);
}
const largest = pending.sort((a, b) => b.total - a.total)[0];
console.log(`${pending.length} pending orders, the largest is ${largest.id}`);

const { data: created, response } = await api.orders.create({
  body: { customer_id: largest.customer_id, items: [{ sku: largest.items[0].sku, quantity: 1 }] },
});
return {
  pending: pending.length,
  largest: { id: largest.id, total: largest.total },
  created: { id: created.id, status: response.status },
};
"""


def step(title: str) -> None:
    """Print the heading of one step."""
    print(f"\n\033[1m== {title}\033[0m" if sys.stdout.isatty() else f"\n== {title}")


def text_of(result: Any) -> str:
    """Return the text blocks of a tool result."""
    return "\n".join(block.text for block in result.content if block.type == "text")


async def walk(connection: Client, audit: Path) -> bool:
    """Connect as an MCP client does, search, execute; True where the script did what it should."""
    async with connection as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        print(f"connected, protocol {client.protocol_version}, tools: {', '.join(names)}")

        step(f"search_docs: {QUERY!r}")
        found = await client.call_tool("search_docs", {"query": QUERY, "limit": 1})
        print(text_of(found))

        step("execute: this script")
        print(SCRIPT)
        ran = await client.call_tool("execute", {"code": SCRIPT})

        step("its result")
        if ran.is_error:
            print(text_of(ran))
            return False
        print(json.dumps(ran.structured_content["result"], indent=2))
        for line in ran.structured_content["logs"]:
            print(f"[{line['level']}] {line['text']}")

        step("the audit trail: one record for each API call, one for each tool call")
        print(audit.read_text(encoding="utf-8"), end="")
        return bool(ran.structured_content["result"]["created"]["status"] == 201)


def over_stdio(api: OrdersApi, audit: Path) -> Client:
    """Return a client that starts `sandbridge serve` for itself."""
    command = str(Path(sys.executable).parent / "sandbridge")
    arguments = ["serve", "--openapi", str(api.document), "--base-url", api.url, "--audit-file", str(audit)]
    print("$ SANDBRIDGE_API_KEY=… sandbridge " + " ".join(arguments[:4]) + " …")
    server = StdioServerParameters(command=command, args=arguments, env={"SANDBRIDGE_API_KEY": api.key})
    return Client(server, mode="auto")


def left_running(before: set[int]) -> list[int]:
    """Return the processes below this one that were not there before."""
    children = psutil.Process(os.getpid()).children(recursive=True)
    return [child.pid for child in children if child.pid not in before]


def main() -> int:
    """Return 0 where everything worked and nothing is left running."""
    before = {process.pid for process in psutil.process_iter()}
    with tempfile.TemporaryDirectory() as folder, running() as api:
        step("the orders API, a small real HTTP service")
        print(f"{api.url} (process {api.pid})")
        step("Sandbridge serves it over stdio")
        audit = Path(folder) / "audit.jsonl"
        worked = asyncio.run(walk(over_stdio(api, audit), audit))
    left = left_running(before)
    step("done" if worked and not left else "failed")
    print("nothing is left running" if not left else f"left running: {left}")
    return 0 if worked and not left else 1


if __name__ == "__main__":
    sys.exit(main())

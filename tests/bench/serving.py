"""A served orders API with a connected stdio client, for the benchmarks."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from orders_service.process import OrdersApi, running

SANDBRIDGE = str(Path(sys.executable).parent / "sandbridge")


@contextlib.asynccontextmanager
async def connected(*flags: str, mode: str = "auto") -> AsyncIterator[tuple[Client, OrdersApi]]:
    """Start the orders API and `sandbridge serve` over stdio; yield a connected client."""
    with running() as api, Path("/dev/null").open("w") as nowhere:
        server = StdioServerParameters(
            command=SANDBRIDGE,
            args=["serve", "--openapi", str(api.document), "--base-url", api.url, *flags],
            env={"SANDBRIDGE_API_KEY": api.key},
        )
        async with Client(stdio_client(server, errlog=nowhere), mode=mode) as client:
            yield client, api


async def execute(client: Client, code: str) -> Any:
    """Run a script and return its structured result; raises where the run failed."""
    result = await client.call_tool("execute", {"code": code})
    if result.is_error:
        raise RuntimeError("\n".join(getattr(block, "text", "") for block in result.content))
    return result.structured_content

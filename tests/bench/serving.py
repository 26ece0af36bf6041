"""A served orders API with a connected stdio client, for the benchmarks."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from demo_processes import address_of, services
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from orders_service.process import OrdersApi, running
from sandbridge_kit.certificates import Service

OVER_GRPC = Path(__file__).with_name("stdio_over_grpc.py")
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


@contextlib.asynccontextmanager
async def connected_over_grpc() -> AsyncIterator[Client]:
    """As `connected`, with the sandboxes in a runner process of their own, behind gRPC with mutual TLS."""
    with (
        running() as api,
        tempfile.TemporaryDirectory() as folder,
        Path("/dev/null").open("w") as nowhere,
        services(Path(folder), Path(folder)) as ours,
    ):
        runner = ours.runner()
        certificates = ours.certificates.issue(Service.ORCHESTRATOR)
        arguments = (str(api.document), api.url, api.key, address_of(runner), str(certificates))
        server = StdioServerParameters(command=sys.executable, args=[str(OVER_GRPC), *arguments])
        async with Client(stdio_client(server, errlog=nowhere)) as client:
            yield client


async def execute(client: Client, code: str) -> Any:
    """Run a script and return its structured result; raises where the run failed."""
    result = await client.call_tool("execute", {"code": code})
    if result.is_error:
        raise RuntimeError("\n".join(getattr(block, "text", "") for block in result.content))
    return result.structured_content

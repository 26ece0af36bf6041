"""The stdio transport: one client, the one that started the process."""

from __future__ import annotations

from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server


async def serve_stdio(server: Server[Any]) -> None:
    """Serve until the client closes standard input. Standard output carries protocol only; strays go to stderr."""
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

"""The edge for one tenant without sign-in: whoever reaches it is the local caller."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any

from mcp.server.lowlevel import Server
from starlette.types import ASGIApp

from sandbridge_kit.identity import LOCAL_CALLER
from sandbridge_orchestrator.edge.http import loopback_app
from sandbridge_orchestrator.edge.introduction import Introduction
from sandbridge_orchestrator.edge.server import CodeMode, Identity, build_server


def single_tenant_server(
    code_mode: CodeMode, introduction: Callable[[], Introduction], *, identity: Identity, transport: str
) -> Server[Any]:
    """Return the MCP server for stdio or loopback HTTP."""
    return build_server(
        code_mode,
        introduction,
        identity=identity,
        transport=transport,
        caller_of=lambda context: LOCAL_CALLER,
        new_boundary=lambda: secrets.token_hex(8),
    )


def single_tenant_app(
    server: Server[Any],
    introduction: Callable[[], Introduction],
    *,
    ready: Callable[[], bool],
    hosts: Sequence[str],
) -> ASGIApp:
    """Return the application for loopback HTTP; `hosts` are the `Host` headers that mean this server."""
    return loopback_app(server, introduction, ready=ready, hosts=hosts, origins=[f"http://{host}" for host in hosts])

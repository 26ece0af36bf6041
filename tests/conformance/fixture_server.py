"""A server of the product's own edge with the conformance suite's tools, prompts and resources behind it.

From the product: the HTTP application with its guard and its errors, the server object, the handler of `tools/call`
with its error mapping, rendering and progress. From `fixtures`: what they are called with. Usage:

    fixture_server.py             serve on a free port of 127.0.0.1; the first line printed is the endpoint
    fixture_server.py --signed-in the same behind the edge for callers who sign in
    fixture_server.py --names     print the names of all fixtures as JSON
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import socket
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import mcp_types
import uvicorn
from fixtures import prompts, resources
from fixtures.content_tools import CONTENT_TOOLS, change_tools
from fixtures.events import RecentEvents
from fixtures.handshake_tools import HANDSHAKE_TOOLS
from fixtures.questions import QUESTION_TOOLS
from fixtures.registry import Tools
from fixtures.tasks import EXTENSION, TaskParams, Tasks, TaskUpdateParams, task_tools
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from starlette.types import ASGIApp, Receive, Scope, Send

from sandbridge_kit.identity import LOCAL_CALLER, Caller
from sandbridge_orchestrator.core.claims import Refusal, invalid
from sandbridge_orchestrator.core.metadata import Resource
from sandbridge_orchestrator.edge.http import loopback_app
from sandbridge_orchestrator.edge.oauth import Door, caller_of, protected_app
from sandbridge_orchestrator.edge.server import Context, Identity, build_server, calls_of
from sandbridge_orchestrator.edge.testing import INTRODUCTION, ScriptedCodeMode

METHODS = (
    "completion/complete",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
    "subscriptions/listen",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
)
"""Methods that the product does not serve."""

TOKEN = "conformance"
"""What signs the suite in, which cannot send a token itself."""

EVENTS = "events"
"""What `--names` calls the store of past events, which lets streams be resumed."""


def _boundary() -> str:
    return secrets.token_hex(8)


@dataclass(frozen=True, slots=True)
class FixtureServer:
    """The product's server with more behind it; what the fixtures do not know goes to the product's own handlers."""

    server: Server[Any]
    tools: Tools

    def add(self, tasks: Tasks, bus: InMemorySubscriptionBus) -> None:
        """Put the fixtures behind the server."""
        add = self.server.add_request_handler
        self._add_tools()
        self._add_resources()
        add("prompts/list", mcp_types.PaginatedRequestParams, prompts.list_prompts)
        add("prompts/get", mcp_types.GetPromptRequestParams, prompts.get_prompt)
        add("completion/complete", mcp_types.CompleteRequestParams, prompts.complete)
        add("logging/setLevel", mcp_types.SetLevelRequestParams, resources.accepted)
        add("subscriptions/listen", mcp_types.SubscriptionsListenRequestParams, ListenHandler(bus))
        add("tasks/get", TaskParams, tasks.get)
        add("tasks/update", TaskUpdateParams, tasks.update)
        add("tasks/cancel", TaskParams, tasks.cancel)
        self.server.extensions[EXTENSION] = {}
        self.server.middleware.append(
            RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=self.server.name)
        )

    def _own(self, method: str) -> Any:
        entry = self.server.get_request_handler(method)
        assert entry is not None
        return entry.handler

    def _add_tools(self) -> None:
        own_list, own_call = self._own("tools/list"), self._own("tools/call")
        call = calls_of(self.tools.handlers, new_boundary=_boundary)

        async def list_tools(ctx: Context, params: mcp_types.PaginatedRequestParams) -> mcp_types.ListToolsResult:
            own = (await own_list(ctx, params)).tools
            return mcp_types.ListToolsResult(tools=[*own, *self.tools.listed()])

        async def call_tool(ctx: Context, params: mcp_types.CallToolRequestParams) -> Any:
            return await (call if params.name in self.tools.handlers else own_call)(ctx, params)

        self.server.add_request_handler("tools/list", mcp_types.PaginatedRequestParams, list_tools)
        self.server.add_request_handler("tools/call", mcp_types.CallToolRequestParams, call_tool)

    def _add_resources(self) -> None:
        add = self.server.add_request_handler
        own_templates, own_read = self._own("resources/templates/list"), self._own("resources/read")

        async def templates(
            ctx: Context, params: mcp_types.PaginatedRequestParams
        ) -> mcp_types.ListResourceTemplatesResult:
            own = (await own_templates(ctx, params)).resource_templates
            return mcp_types.ListResourceTemplatesResult(resource_templates=[*own, *resources.templates()])

        async def read(ctx: Context, params: mcp_types.ReadResourceRequestParams) -> Any:
            return resources.read(str(params.uri)) or await own_read(ctx, params)

        add("resources/list", mcp_types.PaginatedRequestParams, resources.list_resources)
        add("resources/templates/list", mcp_types.PaginatedRequestParams, templates)
        add("resources/read", mcp_types.ReadResourceRequestParams, read)
        add("resources/subscribe", mcp_types.SubscribeRequestParams, resources.accepted)
        add("resources/unsubscribe", mcp_types.UnsubscribeRequestParams, resources.accepted)


def fixture_server(caller_of: Callable[[Context], Caller] = lambda ctx: LOCAL_CALLER) -> FixtureServer:
    """Return the product's server with all fixtures."""
    tasks = Tasks(now=lambda: datetime.now(UTC).isoformat(), new_id=lambda: secrets.token_hex(12))
    bus = InMemorySubscriptionBus()
    tools = Tools()
    for kind in (CONTENT_TOOLS, change_tools(bus), HANDSHAKE_TOOLS, QUESTION_TOOLS, task_tools(tasks)):
        tools.include(kind)
    server = build_server(
        ScriptedCodeMode(),
        lambda: INTRODUCTION,
        identity=Identity("sandbridge-fixtures", "Fixtures", "0"),
        transport="http",
        caller_of=caller_of,
        new_boundary=_boundary,
    )
    fixtures = FixtureServer(server, tools)
    fixtures.add(tasks, bus)
    return fixtures


def names() -> list[str]:
    """Return the names of all fixtures."""
    behind = [*prompts.PROMPTS, *resources.RESOURCES, resources.TEMPLATE]
    return [*fixture_server().tools.handlers, *behind, *METHODS, EVENTS]


class OneToken:
    """Knows one caller, by one token."""

    async def caller_of(self, token: str) -> Caller | Refusal:
        """Return the caller."""
        return Caller("https://id.example", "suite", "suite") if token == TOKEN else invalid("The token is another")


def with_token(app: ASGIApp) -> ASGIApp:
    """Return the application for clients that cannot send a token: each request gets the one token."""

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], (b"authorization", f"Bearer {TOKEN}".encode())]}
        await app(scope, receive, send)

    return wrapped


def _app(host: str, *, signed_in: bool) -> ASGIApp:
    origin, url = f"http://{host}", f"http://{host}/mcp"
    if signed_in:
        server = fixture_server(caller_of).server
        door = Door(Resource(url, "Fixtures", ("https://id.example",), ()), OneToken(), origins=(origin,))
        return with_token(
            protected_app(server, lambda: INTRODUCTION, door, ready=lambda: True, hosts=[host], events=RecentEvents())
        )
    return loopback_app(
        fixture_server().server,
        lambda: INTRODUCTION,
        ready=lambda: True,
        hosts=[host],
        origins=[origin],
        events=RecentEvents(),
    )


async def _serve(*, signed_in: bool) -> None:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    host = f"127.0.0.1:{listener.getsockname()[1]}"
    app = _app(host, signed_in=signed_in)
    config = uvicorn.Config(app, log_level="error", access_log=False, timeout_graceful_shutdown=1, lifespan="on")
    print(f"http://{host}/mcp", flush=True)
    await uvicorn.Server(config).serve(sockets=[listener])


if __name__ == "__main__":
    # Logging and sampling are on their way out of the protocol, and the suite still asks for them.
    warnings.simplefilter("ignore")
    # Refusals are what the suite provokes; only faults are worth reading.
    logging.disable(logging.WARNING)
    if sys.argv[1:] == ["--names"]:
        print(json.dumps(names()))
    else:
        asyncio.run(_serve(signed_in=sys.argv[1:] == ["--signed-in"]))

"""Streamable HTTP: the ASGI application around the MCP server, for one tenant on loopback.

Routes: `/mcp` and `/mcp/` (no redirect), `/health`, `/ready`, `/` for people. A guard in front of all of them refuses
foreign `Host` and `Origin` headers (DNS rebinding; MCP 2026-07-28, transports) and answers every error as JSON. What is
posted to `/mcp` is read and judged before the protocol sees it.
"""

from __future__ import annotations

import contextlib
import html
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.streamable_http import EventStore
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sandbridge_orchestrator.edge.intake import Intake
from sandbridge_orchestrator.edge.introduction import Introduction

MAX_REQUEST_BYTES = 1024 * 1024
"""Largest request body: a script of 256 KiB, JSON-escaped, with room to spare."""

_KEPT_ON_ERRORS = frozenset({b"allow", b"retry-after", b"www-authenticate", b"mcp-session-id"})
_ADVICE = {
    400: "The request cannot be read; its Content-Type must be application/json.",
    406: "Accept application/json and text/event-stream.",
    413: f"A request has at most {MAX_REQUEST_BYTES:,} bytes.",
}
"""What to do about errors that the SDK answers without JSON."""
MCP_PATHS = ("/mcp", "/mcp/")
_MCP_ACCEPT = "application/json, text/event-stream"
_RETRY_MS = 500
"""How long a client waits before it resumes a stream."""


def loopback_app(
    server: Server[Any],
    introduction: Callable[[], Introduction],
    *,
    ready: Callable[[], bool],
    hosts: Sequence[str],
    origins: Sequence[str],
    events: EventStore | None = None,
) -> ASGIApp:
    """Return the application. `hosts` and `origins` are the exact header values that are let in.

    `events` keeps what the streams of the handshake era carried, for clients that come back with a `Last-Event-ID`
    (MCP 2025-11-25, transports, resumability); without it streams cannot be resumed.
    """

    async def home(request: Request) -> Response:
        return page_response(introduction(), str(request.url_for("mcp")), ("This machine only; nobody signs in.",))

    app = routed(server, home, ready=ready, events=events)
    checked = Intake(app, paths=MCP_PATHS, max_bytes=MAX_REQUEST_BYTES)
    return Guard(checked, frozenset(hosts), frozenset(origins), resumable=events is not None)


def routed(
    server: Server[Any],
    home: Callable[[Request], Awaitable[Response]],
    *,
    ready: Callable[[], bool],
    routes: Sequence[Route] = (),
    events: EventStore | None = None,
) -> Starlette:
    """Return the routes, without what stands in front of them. `home` is the page for people; `routes` are more."""

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readiness(request: Request) -> Response:
        return JSONResponse({"ready": True}) if ready() else JSONResponse({"ready": False}, status_code=503)

    app = server.streamable_http_app(
        streamable_http_path="/mcp",
        event_store=events,
        retry_interval=_RETRY_MS,
        max_request_body_size=MAX_REQUEST_BYTES,
        # The guard below has checked Host and Origin already, with JSON errors.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        custom_starlette_routes=[
            Route("/health", health),
            Route("/ready", readiness),
            Route("/", home),
            *routes,
        ],
    )
    _serve_both_spellings(app)
    app.router.redirect_slashes = False
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _internal_error)
    return app


class Guard:
    """Checks Host and Origin, and widens Accept on `/mcp`, before anything else reads the request.

    Errors leave as JSON, whoever made them.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str], origins: frozenset[str], *, resumable: bool) -> None:
        self._app = app
        self._hosts = hosts
        self._origins = origins
        self._resumable = resumable

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = MutableHeaders(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            refusal = error_response(421, "host_not_allowed", "This server answers only to its own address.")
            await refusal(scope, receive, send)
            return
        origins = headers.getlist("origin")
        if any(origin not in self._origins for origin in origins):
            await error_response(403, "origin_not_allowed", "Pages of this origin may not use this server.")(
                scope, receive, send
            )
            return
        if scope["path"] in MCP_PATHS:
            _widen_accept(headers)
            if not self._resumable:
                # The SDK gives no answer at all where it has no past events to look into.
                del headers["last-event-id"]
        with contextlib.suppress(ClientDisconnect):
            await self._app(scope, receive, _errors_as_json(_unbuffered(send)))


def _widen_accept(headers: MutableHeaders) -> None:
    # The SDK answers 406 unless both types are listed, and well-known clients and proxies send only one of them.
    accept = headers.get("accept", "*/*").lower()
    if any(kind in accept for kind in ("*/*", "application/json", "text/event-stream", "application/*", "text/*")):
        headers["accept"] = _MCP_ACCEPT


def _unbuffered(send: Send) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["x-accel-buffering"] = "no"
            headers["x-content-type-options"] = "nosniff"
        await send(message)

    return wrapped


def _errors_as_json(send: Send) -> Send:
    # The SDK answers some errors with plain text or with nothing.
    replaced = False

    async def wrapped(message: Message) -> None:
        nonlocal replaced
        if message["type"] == "http.response.start" and message["status"] >= 400:
            headers = MutableHeaders(scope=message)
            if not headers.get("content-type", "").startswith("application/json"):
                replaced = True
                status = message["status"]
                body = error_response(status, "http_error", _ADVICE.get(status) or HTTPStatus(status).phrase)
                allowed = [pair for pair in message.get("headers", ()) if pair[0].lower() in _KEPT_ON_ERRORS]
                await send({**message, "headers": [*body.raw_headers, *allowed]})
                await send({"type": "http.response.body", "body": bytes(body.body)})
                return
        if not replaced:
            await send(message)

    return wrapped


def _serve_both_spellings(app: Starlette) -> None:
    # A redirect from one to the other breaks POST in several clients.
    for route in list(app.routes):
        if isinstance(route, Route) and route.path == "/mcp":
            route.name = "mcp"
            app.router.routes.append(Route("/mcp/", endpoint=route.endpoint, name="mcp_slash"))


def error_response(status: int, code: str, message: str) -> JSONResponse:
    """Return an error as it looks on every route."""
    return JSONResponse({"error": {"code": code, "message": message}}, status_code=status)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return error_response(error.status_code, "http_error", str(error.detail))


async def _internal_error(request: Request, error: Exception) -> Response:
    return error_response(500, "internal_error", "The server failed; its log says why.")


_PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


def page_response(introduction: Introduction, url: str, notes: Sequence[str]) -> Response:
    """Return the page for people: what is served at `url`, how to connect, and notes."""
    return HTMLResponse(_page(introduction, url, notes), headers=_PAGE_HEADERS)


def _page(introduction: Introduction, url: str, notes: Sequence[str]) -> str:
    address = html.escape(url)
    told = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    apis = "".join(
        f"<li><strong>{html.escape(api.title)}</strong>: {api.operations} operations</li>" for api in introduction.apis
    )
    served = f" It serves:</p><ul>{apis}</ul><p>" if apis else ""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Sandbridge</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>body{{font:1rem/1.5 system-ui;max-width:42rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}}
pre{{background:#f2f2f2;padding:.75rem;overflow-x:auto}}</style></head><body><main>
<h1>Sandbridge</h1>
<p>This is a code-mode MCP endpoint.{served}</p>
<h2>Connect a client</h2>
<p>Address: <code>{address}</code> (Streamable HTTP)</p>{told}
<h3>Claude Code</h3><pre>claude mcp add --transport http sandbridge {address}</pre>
<h3>Cursor</h3><pre>{{"mcpServers": {{"sandbridge": {{"url": "{address}"}}}}}}</pre>
<h3>VS Code</h3><pre>{{"servers": {{"sandbridge": {{"type": "http", "url": "{address}"}}}}}}</pre>
</main></body></html>
"""

"""Cross-origin requests of web pages (the Fetch standard, section 3.3), outermost so that errors can be read too."""

from __future__ import annotations

import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_METHODS = "GET, POST, DELETE, OPTIONS"
_EXPOSED = "WWW-Authenticate, Mcp-Session-Id, MCP-Protocol-Version, Retry-After"
_KEPT_S = 600
_MOST_CHARS = 2_000
_HEADER_NAME = re.compile(r"[a-z0-9-]+")
_USUAL = "authorization, content-type, accept, mcp-protocol-version, mcp-session-id, mcp-method, mcp-name"


class Cors:
    """Answers preflights of the origins that are let in, and lets their pages read every answer.

    Other origins are left to what stands behind, which refuses them. Nothing is ever allowed with cookies.
    """

    def __init__(self, app: ASGIApp, origins: frozenset[str]) -> None:
        self._app = app
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if origin is None or origin not in self._origins:
            await self._app(scope, receive, _varied(send))
            return
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            await self._preflight(headers)(scope, receive, _readable(send, origin))
            return
        await self._app(scope, receive, _readable(send, origin))

    @staticmethod
    def _preflight(headers: Headers) -> Response:
        asked = headers.get("access-control-request-headers", "")[:_MOST_CHARS].lower()
        names = [name.strip() for name in asked.split(",")]
        allowed = ", ".join(name for name in names if _HEADER_NAME.fullmatch(name)) or _USUAL
        return Response(
            status_code=204,
            headers={
                "access-control-allow-methods": _METHODS,
                "access-control-allow-headers": allowed,
                "access-control-max-age": str(_KEPT_S),
            },
        )


def _readable(send: Send, origin: str) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["access-control-allow-origin"] = origin
            headers["access-control-expose-headers"] = _EXPOSED
            headers.add_vary_header("Origin")
        await send(message)

    return wrapped


def _varied(send: Send) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).add_vary_header("Origin")
        await send(message)

    return wrapped

"""Reads and judges what clients post, before the protocol does: whole, in time, of bounded size, with one reading."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sandbridge_orchestrator.apart import apart
from sandbridge_orchestrator.edge.messages import INVALID_REQUEST, Problem, read

READ = "sandbridge.read"
"""Where in a request's scope what was read of it stands, for the layers behind."""

BODY_S = 30.0
"""Longest wait for a request's body."""


class Intake:
    """Passes on a posted message only after it was read and judged; other requests and types pass as they are.

    It also keeps apart the requests of a session: an id is free again when its answer is complete (JSON-RPC 2.0
    section 4; MCP 2025-11-25, basic, requests).
    """

    def __init__(self, app: ASGIApp, *, paths: Collection[str], max_bytes: int, body_seconds: float = BODY_S) -> None:
        self._app = app
        self._paths = frozenset(paths)
        self._max_bytes = max_bytes
        self._body_seconds = body_seconds
        self._under_way: set[tuple[str, str]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. Raises ClientDisconnect where the client leaves before its body is whole."""
        if scope["type"] != "http" or scope["path"] not in self._paths or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if not _is_json(headers):
            await self._app(scope, receive, send)
            return
        try:
            _require_plain_body(headers)
            body = await self._whole(headers, receive)
        except _Refused as refusal:
            await _answer(refusal.status, Problem(INVALID_REQUEST, refusal.message))(scope, receive, send)
            return
        found = await apart(len(body), read, body)
        if isinstance(found, Problem):
            await _answer(400, found)(scope, receive, send)
            return
        scope[READ] = found
        await self._passed_on(headers.get("mcp-session-id"), found.id, scope, _again(body, receive), send)

    async def _passed_on(
        self, session: str | None, message_id: str | int | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if session is None or message_id is None:
            await self._app(scope, receive, send)
            return
        # The SDK keeps answers by the text of their id: the first of two would never be answered.
        key = (session, str(message_id))
        if key in self._under_way:
            problem = Problem(INVALID_REQUEST, "A request of this session with this id is under way.", message_id)
            await _answer(400, problem)(scope, receive, send)
            return
        self._under_way.add(key)
        try:
            await self._app(scope, receive, send)
        finally:
            self._under_way.discard(key)

    async def _whole(self, headers: Headers, receive: Receive) -> bytes:
        too_large = _Refused(413, f"A request has at most {self._max_bytes:,} bytes.")
        if int(headers.get("content-length", "0")) > self._max_bytes:
            raise too_large
        chunks, size = [], 0
        try:
            async with asyncio.timeout(self._body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnect
                    chunks.append(message.get("body", b""))
                    size += len(chunks[-1])
                    if size > self._max_bytes:
                        raise too_large
                    if not message.get("more_body", False):
                        return b"".join(chunks)
        except TimeoutError:
            raise _Refused(408, f"The body did not arrive within {self._body_seconds:g} s.") from None


class _Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def _is_json(headers: Headers) -> bool:
    return headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


def _require_plain_body(headers: Headers) -> None:
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise _Refused(415, "Send the body as it is, without Content-Encoding.")
    if "transfer-encoding" in headers and "content-length" in headers:
        # RFC 9112 section 6.3: what lies between two readings of a length is how requests are smuggled.
        raise _Refused(400, "Send Content-Length or Transfer-Encoding, not both.")


def _again(body: bytes, receive: Receive) -> Receive:
    given = False

    async def wrapped() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return wrapped


def _answer(status: int, problem: Problem) -> JSONResponse:
    error = {"code": problem.code, "message": problem.message}
    return JSONResponse({"jsonrpc": "2.0", "id": problem.id, "error": error}, status_code=status)

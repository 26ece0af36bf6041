"""The time before there is anything to serve: `/mcp` says to come back, the other routes answer."""

from __future__ import annotations

from collections.abc import Callable

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_PATHS = ("/mcp", "/mcp/")
_RETRY_AFTER_S = 1


class Opening:
    """Refuses `/mcp` with 503 until it is open."""

    def __init__(self, app: ASGIApp, is_open: Callable[[], bool]) -> None:
        self._app = app
        self._is_open = is_open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and scope["path"] in _PATHS and not self._is_open():
            error = {"code": "starting", "message": "The catalogue is not here yet; try again in a moment."}
            refusal = JSONResponse({"error": error}, 503, {"retry-after": str(_RETRY_AFTER_S)})
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)

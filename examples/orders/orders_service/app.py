"""The whole application: routes, who may call, the error handlers."""

from __future__ import annotations

import asyncio
import hmac

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from orders_service import customers, diagnostics, files, orders, reports
from orders_service.data import seeded
from orders_service.problems import Problem, on_problem, respond
from orders_service.tokens import TokenCheck

OPEN_PATHS = frozenset({"/health"})


class RequireCaller:
    """Refuse every request, but those to `OPEN_PATHS`, without the key or a user's token as bearer token (RFC 6750)."""

    def __init__(self, app: ASGIApp, key: str | None, tokens: TokenCheck | None) -> None:
        self.app = app
        self.key = key
        self.tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 401."""
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS:
            caller = await self.caller_of(Request(scope).headers.get("authorization", ""))
            if caller is None:
                challenge = {"WWW-Authenticate": 'Bearer realm="orders"'}
                what = "API key" if self.tokens is None else "access token of a user"
                refusal = Problem(401, f"Send the {what} as a bearer token.", headers=challenge)
                await respond(refusal)(scope, receive, send)
                return
            scope.setdefault("state", {})["caller"] = caller
        await self.app(scope, receive, send)

    async def caller_of(self, authorization: str) -> str | None:
        """Return who sent this header: `key` for the API key, else the subject of the token."""
        if self.key is not None and hmac.compare_digest(authorization.encode(), f"Bearer {self.key}".encode()):
            return "key"
        scheme, _, token = authorization.partition(" ")
        if self.tokens is None or scheme.lower() != "bearer":
            return None
        return await asyncio.to_thread(self.tokens.subject_of, token)


def create_app(key: str | None, tokens: TokenCheck | None = None) -> Starlette:
    """Return a new application with fresh data that accepts `key`, and users' tokens where `tokens` can check them."""
    app = Starlette(
        routes=[*orders.ROUTES, *customers.ROUTES, *reports.ROUTES, *files.ROUTES, *diagnostics.ROUTES],
        middleware=[Middleware(RequireCaller, key=key, tokens=tokens)],
        exception_handlers={Problem: on_problem, HTTPException: on_problem},
    )
    app.state.store = seeded()
    return app

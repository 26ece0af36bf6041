"""The whole application: routes, the key, the error handlers."""

from __future__ import annotations

import hmac

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from orders_service import customers, diagnostics, files, orders, reports
from orders_service.data import seeded
from orders_service.problems import Problem, on_problem, respond

OPEN_PATHS = frozenset({"/health"})


class RequireKey:
    """Refuse every request, but those to `OPEN_PATHS`, that does not carry the key as a bearer token (RFC 6750)."""

    def __init__(self, app: ASGIApp, key: str) -> None:
        self.app = app
        self.expected = f"Bearer {key}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 401."""
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS:
            given = Request(scope).headers.get("authorization", "").encode()
            if not hmac.compare_digest(given, self.expected):
                challenge = {"WWW-Authenticate": 'Bearer realm="orders"'}
                refusal = Problem(401, "Send the API key as a bearer token.", headers=challenge)
                await respond(refusal)(scope, receive, send)
                return
        await self.app(scope, receive, send)


def create_app(key: str) -> Starlette:
    """Return a new application with fresh data that accepts `key`."""
    app = Starlette(
        routes=[*orders.ROUTES, *customers.ROUTES, *reports.ROUTES, *files.ROUTES, *diagnostics.ROUTES],
        middleware=[Middleware(RequireKey, key=key)],
        exception_handlers={Problem: on_problem, HTTPException: on_problem},
    )
    app.state.store = seeded()
    return app

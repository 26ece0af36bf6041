"""The endpoint as an OAuth protected resource (RFC 6750, RFC 9728; MCP, authorization).

In front of the MCP server, from the outside in: CORS, Host and Origin, the well-known documents, sign-in, reading the
body, and the scopes of the tool that is called. What stands behind knows the caller, and never sees its token.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import structlog
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import EventStore
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from sandbridge_kit.errors import Code, SandbridgeError
from sandbridge_kit.identity import Caller
from sandbridge_orchestrator.core.addresses import Network, source_of
from sandbridge_orchestrator.core.buckets import Bucket
from sandbridge_orchestrator.core.challenge import challenge
from sandbridge_orchestrator.core.claims import Refusal, missing_scopes
from sandbridge_orchestrator.core.metadata import Resource
from sandbridge_orchestrator.edge.cors import Cors
from sandbridge_orchestrator.edge.http import (
    MAX_REQUEST_BYTES,
    MCP_PATHS,
    Guard,
    error_response,
    page_response,
    routed,
)
from sandbridge_orchestrator.edge.intake import READ, Intake
from sandbridge_orchestrator.edge.introduction import Introduction
from sandbridge_orchestrator.edge.messages import Read
from sandbridge_orchestrator.edge.server import Context
from sandbridge_orchestrator.ports import Audit, RefusalAudit

log = structlog.get_logger(__name__)

_CALLER = "sandbridge.caller"
_TOKEN_IN_QUERY = re.compile(rb"(?:^|&)access_token=")
_MOST_ADDRESSES = 10_000
_OUTCOMES = {403: Code.DENIED_BY_POLICY, 503: Code.UPSTREAM_UNREACHABLE}


class SignIn(Protocol):
    """Knows callers by their tokens."""

    async def caller_of(self, token: str) -> Caller | Refusal:
        """Return the caller, or why the token is refused."""
        ...


@dataclass(frozen=True, slots=True)
class FailureLimit:
    """How often one address may come without a good token: `size` times at once, `rate` times a second."""

    size: float = 200.0
    rate: float = 20.0


@dataclass(frozen=True, slots=True)
class Door:
    """Who may come in, and what for."""

    resource: Resource
    sign_in: SignIn
    scopes: frozenset[str] = frozenset()
    """What every request needs."""
    tool_scopes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """What a tool needs beside that."""
    trusted_proxies: tuple[Network, ...] = ()
    origins: tuple[str, ...] = ()
    """Origins of web pages that are let in."""
    failures: FailureLimit = FailureLimit()
    audit: Audit | None = None
    """Records who was refused with which token, and for which tool."""
    notes: tuple[str, ...] = ()
    """What people should know, for the page."""

    @property
    def usual_scopes(self) -> frozenset[str]:
        """What a client should ask for at first: enough to search, so that a step-up comes when a script is to run."""
        return self.scopes | self.tool_scopes.get("search_docs", frozenset())

    async def record(
        self, refusal: Refusal, *, caller: Caller | None = None, tool: str | None = None, source: str | None = None
    ) -> None:
        """Record a refusal. To come without any token is how every client begins, and is not recorded."""
        if self.audit is None or refusal.error is None:
            return
        outcome = _OUTCOMES.get(refusal.status, Code.REAUTHORISE).value
        named = None if tool is None else tool[:64].encode(errors="replace").decode()
        with suppress(SandbridgeError):
            await self.audit.write(RefusalAudit("http", outcome, caller, named, refusal.error, source))

    def lacking(self, caller: Caller, tool: str | None) -> Refusal | None:
        """Return why the caller may not do that, None where it may."""
        return missing_scopes(caller, self.scopes | self.tool_scopes.get(tool or "", frozenset()))


def caller_of(context: Context) -> Caller:
    """Return the caller of the request that is being handled: that of its own token, not of its session's first one."""
    caller = context.request.scope.get(_CALLER) if context.request is not None else None
    if not isinstance(caller, Caller):
        raise RuntimeError("a request came to its handler without a caller")
    return caller


def protected_app(
    server: Server[Any],
    introduction: Callable[[], Introduction],
    door: Door,
    *,
    ready: Callable[[], bool],
    hosts: Iterable[str],
    events: EventStore | None = None,
) -> ASGIApp:
    """Return the application. `hosts` are the `Host` headers that are let in; `events` as for `http.loopback_app`."""

    async def metadata(request: Request) -> Response:
        return JSONResponse(door.resource.metadata, headers={"cache-control": "public, max-age=3600"})

    async def home(request: Request) -> Response:
        # Whoever has not signed in learns how to connect, and nothing about what is served.
        return page_response(Introduction((), introduction().limits), door.resource.url, door.notes)

    routes = [Route(path, metadata, methods=["GET"]) for path in door.resource.metadata_paths]
    app = routed(server, home, ready=ready, routes=routes, events=events)
    read = Intake(_ToolScopes(app, door), paths=MCP_PATHS, max_bytes=MAX_REQUEST_BYTES)
    allowed = frozenset(door.origins)
    return Cors(Guard(_SignedIn(read, door), frozenset(hosts), allowed, resumable=events is not None), allowed)


class _SignedIn:
    """Lets requests to the endpoint pass with their caller in their scope and without their token."""

    def __init__(self, app: ASGIApp, door: Door, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._door = door
        self._monotonic = monotonic
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] not in MCP_PATHS:
            await self._app(scope, receive, send)
            return
        headers = MutableHeaders(scope=scope)
        source = source_of(
            (scope.get("client") or ("unknown", 0))[0],
            ",".join(headers.getlist("x-forwarded-for")),
            self._door.trusted_proxies,
        )
        wait = self._wait_of(source)
        if wait:
            refusal = Refusal(429, "too_many_failures", "Too many requests without a good token", retry_after_s=wait)
            await refused(refusal, self._door)(scope, receive, send)
            return
        found = await self._caller(headers, scope.get("query_string", b""))
        refusal_of_caller = found if isinstance(found, Refusal) else self._door.lacking(found, None)
        if refusal_of_caller is not None:
            if refusal_of_caller.status != 503:
                self._spend(source)
            log.info(
                "sign_in_refused",
                status=refusal_of_caller.status,
                error=refusal_of_caller.error,
                reason=refusal_of_caller.description,
                source=source,
            )
            known = found if isinstance(found, Caller) else None
            await self._door.record(refusal_of_caller, caller=known, source=source)
            await refused(refusal_of_caller, self._door)(scope, receive, send)
            return
        assert isinstance(found, Caller)
        del headers["authorization"]
        scope[_CALLER] = found
        scope["user"] = AuthenticatedUser(_for_the_sdk(found))
        await self._app(scope, receive, send)

    async def _caller(self, headers: Headers, query: bytes) -> Caller | Refusal:
        token = bearer(headers.getlist("authorization"), query)
        return token if isinstance(token, Refusal) else await self._door.sign_in.caller_of(token)

    def _wait_of(self, source: str) -> int:
        bucket = self._buckets.get(source)
        if bucket is None:
            return 0
        limit = self._door.failures
        now = bucket.at(self._monotonic(), rate=limit.rate, size=limit.size)
        return 0 if now.level >= 1 else 1

    def _spend(self, source: str) -> None:
        now = self._monotonic()
        limit = self._door.failures
        bucket = self._buckets.pop(source, Bucket(limit.size, now)).at(now, rate=limit.rate, size=limit.size)
        self._buckets[source] = bucket.less_one()
        while len(self._buckets) > _MOST_ADDRESSES:
            self._buckets.popitem(last=False)


class _ToolScopes:
    """Refuses calls of tools that the caller's token does not allow, before anything of them is answered."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        read, caller = scope.get(READ), scope.get(_CALLER)
        if isinstance(read, Read) and isinstance(caller, Caller) and read.tool is not None:
            refusal = self._door.lacking(caller, read.tool)
            if refusal is not None:
                log.info("step_up_asked", tool=read.tool[:64], issuer=caller.issuer, sub=caller.subject)
                await self._door.record(refusal, caller=caller, tool=read.tool)
                await refused(refusal, self._door)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def bearer(authorization: Sequence[str], query: bytes) -> str | Refusal:
    """Return the token of a request (RFC 6750 section 2.1), or why there is none to look at."""
    if _TOKEN_IN_QUERY.search(query):
        # URLs are kept in logs and histories (RFC 9700 section 4.3.2).
        return Refusal(400, "invalid_request", "A token belongs into the Authorization header, not into the URL")
    if len(authorization) > 1:
        return Refusal(400, "invalid_request", "Send one Authorization header")
    scheme, _, token = authorization[0].partition(" ") if authorization else ("", "", "")
    if scheme.lower() != "bearer":
        return Refusal(401, None, "Sign in, and send the token as a bearer token")
    return token.strip(" ")


def refused(refusal: Refusal, door: Door) -> Response:
    """Return the answer to a refused request, with what its client needs to do better."""
    response = error_response(refusal.status, refusal.error or "unauthorized", f"{refusal.description}.")
    if refusal.status in (400, 401, 403):
        response.headers["www-authenticate"] = challenge(
            refusal, resource_metadata=door.resource.metadata_url, scopes=door.usual_scopes
        )
    if refusal.retry_after_s is not None:
        response.headers["retry-after"] = str(refusal.retry_after_s)
    response.headers["cache-control"] = "no-store"
    return response


def _for_the_sdk(caller: Caller) -> AccessToken:
    # It binds sessions to client, issuer and subject; the token itself is not for it.
    return AccessToken(
        token="",
        client_id=caller.client,
        scopes=sorted(caller.scopes),
        subject=caller.subject,
        claims={"iss": caller.issuer},
    )

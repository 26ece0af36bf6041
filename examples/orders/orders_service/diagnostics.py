"""Operations that misbehave on request, for trying out a client: echo, errors, big answers, redirects."""

from __future__ import annotations

import asyncio
import base64
import gzip
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from orders_service.data import Store, keep
from orders_service.problems import Problem, read_bytes, read_query, respond

MIB = 1024 * 1024
MOST_BYTES = 64 * MIB
MOST_ROWS = 200_000
BODILESS = (204, 304)


class StatusQuery(BaseModel, extra="forbid"):
    """Query of `GET /diagnostics/status/{code}`."""

    retry_after: Annotated[int, Field(ge=0, le=3600)] | None = None


class BusyQuery(BaseModel, extra="forbid"):
    """Query of `GET /diagnostics/busy/{name}`."""

    times: Annotated[int, Field(ge=0, le=100)] = 1
    retry_after: Annotated[int, Field(ge=0, le=3600)] = 0


class BytesQuery(BaseModel, extra="forbid"):
    """Query of `GET /diagnostics/bytes/{size}`."""

    compressed: bool = False


class WaitQuery(BaseModel, extra="forbid"):
    """Query of `GET /diagnostics/wait`."""

    seconds: Annotated[float, Field(ge=0, le=120)] = 1.0


class RedirectQuery(BaseModel, extra="forbid"):
    """Query of `GET /diagnostics/redirect`."""

    to: Annotated[str, Field(min_length=1, max_length=2000)]
    status: Annotated[int, Field(ge=301, le=308)] = 302


async def echo(request: Request) -> Response:
    """Say what arrived, the credential included: in the body, in a header, and as a cookie."""
    body = await read_bytes(request)
    authorization = request.headers.get("authorization", "")
    content: dict[str, Any] = {
        "method": request.method,
        "target": request.url.path + (f"?{request.url.query}" if request.url.query else ""),
        "query": [{"name": name, "value": value} for name, value in request.query_params.multi_items()],
        "headers": dict(request.headers),
        "cookies": request.cookies,
        "body": {
            "size": len(body),
            "text": body.decode("utf-8", errors="replace"),
            "base64": base64.b64encode(body).decode(),
        },
        "caller": getattr(request.state, "caller", None),
        "credential": {"plain": authorization, "base64": base64.b64encode(authorization.encode()).decode()},
    }
    return JSONResponse(content, headers={"X-Echo-Authorization": authorization, "Set-Cookie": "session=echo; Path=/"})


def _number(request: Request, name: str, least: int, most: int) -> int:
    text = request.path_params[name]
    if not text.isascii() or not text.lstrip("-").isdigit() or not least <= int(text) <= most:
        raise Problem(400, f"{name} is a whole number from {least} to {most}.")
    return int(text)


async def status(request: Request) -> Response:
    """Answer with the status asked for; from 400 on as a problem."""
    code = _number(request, "code", 200, 599)
    query = read_query(StatusQuery, request)
    headers = {} if query.retry_after is None else {"Retry-After": str(query.retry_after)}
    if code >= 400:
        return respond(Problem(code, f"This is the {code} that was asked for.", headers=headers))
    if code in BODILESS:
        return Response(status_code=code, headers=headers)
    return JSONResponse({"status": code}, code, headers)


async def busy(request: Request) -> Response:
    """Answer 429 the first `times` times for a name, then 200."""
    query = read_query(BusyQuery, request)
    store: Store = request.app.state.store
    name = request.path_params["name"]
    attempts = store.attempts.get(name, 0) + 1
    keep(store.attempts, name, attempts)
    if attempts <= query.times:
        raise Problem(429, "Too many requests; try again.", headers={"Retry-After": str(query.retry_after)})
    return JSONResponse({"name": name, "attempts": attempts})


def _zeros(size: int) -> Iterator[bytes]:
    block = bytes(MIB)
    for start in range(0, size, MIB):
        yield block[: min(MIB, size - start)]


async def zeros(request: Request) -> Response:
    """Answer with so many zero bytes, gzipped if asked."""
    size = _number(request, "size", 0, MOST_BYTES)
    if read_query(BytesQuery, request).compressed:
        packed = await asyncio.to_thread(lambda: gzip.compress(bytes(size), compresslevel=1, mtime=0))
        return Response(packed, media_type="application/octet-stream", headers={"Content-Encoding": "gzip"})
    headers = {"Content-Length": str(size)}
    return StreamingResponse(_zeros(size), media_type="application/octet-stream", headers=headers)


async def rows(request: Request) -> Response:
    """Answer with so many rows of JSON."""
    count = _number(request, "count", 0, MOST_ROWS)
    return JSONResponse({"items": [{"id": n, "name": f"row {n:06}", "even": n % 2 == 0} for n in range(1, count + 1)]})


async def identifier(request: Request) -> Response:
    """Answer with the 64-bit number asked for and its successor, as JSON numbers."""
    number = _number(request, "id", -(2**63), 2**63 - 2)
    return JSONResponse({"id": number, "next": number + 1, "text": str(number)})


async def wait(request: Request) -> Response:
    """Answer after a while."""
    query = read_query(WaitQuery, request)
    await asyncio.sleep(query.seconds)
    return JSONResponse({"waited": query.seconds})


async def redirect(request: Request) -> Response:
    """Send the client elsewhere."""
    query = read_query(RedirectQuery, request)
    if any(ord(c) < 0x21 or ord(c) > 0x7E for c in query.to):
        raise Problem(400, "`to` is a URL in printable ASCII.")
    return Response(status_code=query.status, headers={"Location": query.to})


async def health(_: Request) -> Response:
    """Answer without a credential."""
    return JSONResponse({"status": "ok"})


ROUTES = [
    Route("/health", health, methods=["GET"]),
    Route("/diagnostics/echo", echo, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
    Route("/diagnostics/status/{code}", status, methods=["GET"]),
    Route("/diagnostics/busy/{name}", busy, methods=["GET"]),
    Route("/diagnostics/bytes/{size}", zeros, methods=["GET"]),
    Route("/diagnostics/rows/{count}", rows, methods=["GET"]),
    Route("/diagnostics/identifiers/{id}", identifier, methods=["GET"]),
    Route("/diagnostics/wait", wait, methods=["GET"]),
    Route("/diagnostics/redirect", redirect, methods=["GET"]),
]
